//! Groups the experiments that a run will not simulate: `workload.tp = 1: all 60`.
//!
//! Layer: session. Finds axis values, or pairs of them, all of whose experiments are excluded. Reasons are only texts here.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use hyperfold_config::sweep::{Experiment, Sweep};

/// Most groups that are searched; the remaining experiments are listed one by one.
const GROUPS_UP_TO: usize = 20;
/// Most experiments listed one by one.
const EACH_UP_TO: usize = 8;
/// Most experiments for which pairs of axes are searched.
const PAIRS_UP_TO: usize = 200_000;

/// Excluded experiments, with reasons, and the same in groups.
#[derive(Clone, Debug, Default)]
pub struct Excluded {
    /// Id and reason of each, in ascending order.
    pub experiments: Vec<(u64, Arc<str>)>,
    /// Groups, the largest first.
    pub groups: Vec<ExcludedGroup>,
}

/// Excluded experiments that share axis values which no other experiment has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcludedGroup {
    /// The shared axes and values; empty: all experiments, or a single one.
    pub values: Vec<(String, String)>,
    /// Number of experiments in the group.
    pub n: u64,
    /// Number of them that are also in a group found earlier.
    pub in_others: u64,
    /// Id of the first experiment.
    pub exp_id: u64,
    /// Reason why the first experiment is excluded.
    pub why: Arc<str>,
    /// Whether another experiment has another reason.
    pub reasons_differ: bool,
}

impl fmt::Display for ExcludedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExcludedGroup { values, n, in_others, exp_id, why, reasons_differ } = self;
        if *n == 1 {
            return write!(f, "experiment {exp_id}: {why}");
        }
        let values: Vec<String> = values.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
        let prefix = if values.is_empty() { String::new() } else { format!("{}: ", values.join(", ")) };
        let example = if *reasons_differ { format!("experiment {exp_id}: ") } else { String::new() };
        let shared = match in_others {
            0 => String::new(),
            shared => format!(", {shared} of them in other lines too"),
        };
        write!(f, "{prefix}all {n}{shared}; {example}{why}")
    }
}

impl Excluded {
    /// Groups excluded experiments of a sweep. PRECONDITION: ascending by `exp_id`.
    pub(crate) fn of(sweep: &Sweep, experiments: Vec<(u64, Arc<str>)>) -> Excluded {
        let groups = if experiments.is_empty() { Vec::new() } else { Grouping::new(sweep, &experiments).groups() };
        Excluded { experiments, groups }
    }

    /// Returns the groups, one per line, and how many experiments are not listed.
    pub fn lines(&self) -> Vec<String> {
        let single = |g: &&ExcludedGroup| g.n == 1;
        let mut lines: Vec<String> = self.groups.iter().filter(|g| g.n > 1).map(ToString::to_string).collect();
        lines.extend(self.groups.iter().filter(single).take(EACH_UP_TO).map(ToString::to_string));
        let hidden = self.groups.iter().filter(single).count().saturating_sub(EACH_UP_TO);
        if hidden > 0 {
            lines.push(format!("and {hidden} more, one by one with --json"));
        }
        lines
    }
}

struct Grouping<'a> {
    sweep: &'a Sweep,
    excluded: &'a [(u64, Arc<str>)],
    /// Level of each selected experiment on each axis of the sweep.
    levels: Vec<Vec<u32>>,
    axes: Vec<usize>,
    names: Vec<Vec<String>>,
    /// For each selected experiment, its index in `excluded`, if it is there.
    place: Vec<Option<usize>>,
    /// Whether each excluded experiment is in a group.
    grouped: Vec<bool>,
}

/// Numbers of experiments with a value, or a pair of values: all, excluded, and excluded but in no group yet.
#[derive(Clone, Copy, Default)]
struct Cover {
    all: u64,
    excluded: u64,
    open: u64,
}

impl<'a> Grouping<'a> {
    fn new(sweep: &'a Sweep, excluded: &'a [(u64, Arc<str>)]) -> Grouping<'a> {
        let index_of: HashMap<u64, usize> = excluded.iter().enumerate().map(|(i, e)| (e.0, i)).collect();
        let mut names: Vec<Vec<String>> = vec![Vec::new(); sweep.axes.len()];
        let mut known: Vec<HashMap<String, u32>> = vec![HashMap::new(); sweep.axes.len()];
        let mut levels: Vec<Vec<u32>> = vec![Vec::with_capacity(sweep.experiments.len()); sweep.axes.len()];
        let mut place = Vec::with_capacity(sweep.experiments.len());
        let mut level_of = |experiment: &Experiment| {
            for (axis, value) in sweep.axis_values(experiment).iter().enumerate() {
                let text = value.to_string();
                let next = names[axis].len() as u32;
                let level = *known[axis].entry(text.clone()).or_insert(next);
                if level == next {
                    names[axis].push(text);
                }
                levels[axis].push(level);
            }
        };
        for experiment in &sweep.experiments {
            level_of(experiment);
            place.push(index_of.get(&experiment.exp_id).copied());
        }
        let axes = (0..sweep.axes.len()).filter(|&a| names[a].len() > 1).collect();
        Grouping { sweep, excluded, levels, axes, names, place, grouped: vec![false; excluded.len()] }
    }

    fn groups(mut self) -> Vec<ExcludedGroup> {
        let mut groups = Vec::new();
        if self.excluded.len() == self.place.len() && self.excluded.len() > 1 {
            groups.push(self.take(&[]));
            return groups;
        }
        let mut sets: Vec<Vec<usize>> = self.axes.iter().map(|&a| vec![a]).collect();
        self.cover(&sets, &mut groups);
        if self.place.len() <= PAIRS_UP_TO {
            let pairs = |i: usize| self.axes[i + 1..].iter().map(move |&b| (i, b));
            sets = (0..self.axes.len()).flat_map(pairs).map(|(i, b)| vec![self.axes[i], b]).collect();
            self.cover(&sets, &mut groups);
        }
        groups.sort_by_key(|g| std::cmp::Reverse(g.n));
        for (i, (exp_id, why)) in self.excluded.iter().enumerate() {
            if !self.grouped[i] {
                let (exp_id, why) = (*exp_id, Arc::clone(why));
                groups.push(ExcludedGroup {
                    values: Vec::new(),
                    n: 1,
                    in_others: 0,
                    exp_id,
                    why,
                    reasons_differ: false,
                });
            }
        }
        groups
    }

    /// Adds the largest groups with common values on one of these sets of axes, one after the other.
    fn cover(&mut self, sets: &[Vec<usize>], groups: &mut Vec<ExcludedGroup>) {
        while groups.len() < GROUPS_UP_TO && self.grouped.contains(&false) {
            let mut best: Option<(u64, Vec<(usize, u32)>)> = None;
            for set in sets {
                let mut covers: HashMap<Vec<u32>, Cover> = HashMap::new();
                for (row, place) in self.place.iter().enumerate() {
                    let key = set.iter().map(|&a| self.levels[a][row]).collect();
                    let cover = covers.entry(key).or_default();
                    cover.all += 1;
                    cover.excluded += u64::from(place.is_some());
                    cover.open += u64::from(place.is_some_and(|p| !self.grouped[p]));
                }
                // The first of equally large ones, whatever the order of the map.
                let whole = covers.into_iter().filter(|(_, c)| c.all == c.excluded && c.open > 1);
                let largest = whole.max_by(|(ka, a), (kb, b)| a.open.cmp(&b.open).then_with(|| kb.cmp(ka)));
                if let Some((key, cover)) = largest
                    && best.as_ref().is_none_or(|b| cover.open > b.0)
                {
                    best = Some((cover.open, set.iter().copied().zip(key).collect()));
                }
            }
            let Some((_, values)) = best else { return };
            groups.push(self.take(&values));
        }
    }

    /// Returns the excluded experiments with these values as a group.
    fn take(&mut self, values: &[(usize, u32)]) -> ExcludedGroup {
        let mut members: Vec<usize> = Vec::new();
        let mut in_others = 0;
        for (row, place) in self.place.iter().enumerate() {
            if let Some(place) = place.filter(|_| values.iter().all(|&(a, level)| self.levels[a][row] == level)) {
                members.push(place);
                in_others += u64::from(std::mem::replace(&mut self.grouped[place], true));
            }
        }
        let (exp_id, why) = &self.excluded[members[0]];
        ExcludedGroup {
            values: values
                .iter()
                .map(|&(a, level)| (self.sweep.axes[a].clone(), self.names[a][level as usize].clone()))
                .collect(),
            n: members.len() as u64,
            in_others,
            exp_id: *exp_id,
            why: Arc::clone(why),
            reasons_differ: members.iter().any(|&m| self.excluded[m].1 != *why),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use hyperfold_config::sweep::{self, SetOverrides};

    /// Returns the lines for a grid of two axes, in which `when` decides which experiments are excluded.
    fn excluded(when: impl Fn(u64) -> bool) -> Vec<String> {
        let text = "name = \"t\"\nbase.workload = { kind = \"traffic\", pattern = \"ring\" }\n[axes]\n\
                    transport.cc = [\"dcqcn\", \"hpcc\", \"none\"]\nworkload.bytes = [1, 2, 3, 4]\n";
        let sweep = sweep::parse(text, Path::new("sweep.toml"), &SetOverrides::default()).unwrap();
        let experiments =
            sweep.experiments.iter().map(|e| e.exp_id).filter(|&id| when(id)).map(|id| (id, "why".into())).collect();
        Excluded::of(&sweep, experiments).lines()
    }

    #[test]
    fn a_value_whose_experiments_are_all_excluded_is_one_line() {
        assert_eq!(excluded(|id| id / 4 == 1 || id == 2), ["transport.cc = hpcc: all 4; why", "experiment 2: why"]);
    }

    #[test]
    fn a_line_says_what_other_lines_count_too() {
        // Experiment 6 has both values.
        let lines_of_both = excluded(|id| id / 4 == 1 || id % 4 == 2);
        let lines = ["transport.cc = hpcc: all 4; why", "workload.bytes = 3: all 3, 1 of them in other lines too; why"];
        assert_eq!(lines_of_both, lines);
    }

    #[test]
    fn all_of_a_sweep_are_one_line() {
        assert_eq!(excluded(|_| true), ["all 12; why"]);
    }

    #[test]
    fn many_that_have_nothing_in_common_are_counted() {
        let text = "name = \"t\"\nbase.workload = { kind = \"traffic\", pattern = \"ring\" }\n[axes]\n\
                    workload.bytes = { start = 1, stop = 40, step = 1 }\n";
        let sweep = sweep::parse(text, Path::new("sweep.toml"), &SetOverrides::default()).unwrap();
        let experiments = (0..20).map(|id| (id, format!("{id}").into())).collect();
        let lines = Excluded::of(&sweep, experiments).lines();
        assert_eq!(lines.len(), 9);
        assert_eq!(lines[8], "and 12 more, one by one with --json");
    }
}
