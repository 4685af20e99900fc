//! Experiments as a design: axes with their levels, configurations with their replicas, and groups of configurations that do the same work.
//!
//! Layer: recommendation. Configurations that do different work (another model, other traffic) are in different groups and are never ranked against each other. It
//! knows no metrics.

use std::collections::HashMap;

use crate::compare::Questions;
use crate::compare::fit::{Grid, Point};
use crate::compare::levels::Levels;
use crate::compare::unmodelled::{self, ComparedOutcome, POLICY, Unmodelled};
use hyperfold_config::spec::told_value;

use super::sheet::{Sheet, SheetColumn};

/// An axis and its levels.
#[derive(Clone, Debug)]
pub struct AxisLevels {
    /// Dotted key of the axis.
    pub key: String,
    /// Whether it changes the work, not only how the work is done, or the model that times come from.
    pub question: bool,
    /// Whether experiments that differ in it have their times from different models.
    pub way: bool,
    /// Why its values are not compared although they are designs. `None`: they are, or they are no designs.
    pub not_compared: Option<String>,
    /// Names of the levels, in order of value, or of first appearance for words.
    pub levels: Vec<String>,
    /// Whether levels are ranges of values.
    pub binned: bool,
}

/// A configuration, with its replicas.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Rows of its replicas in the sheet.
    pub rows: Vec<usize>,
    /// Its level on each axis.
    pub levels: Vec<u32>,
    /// Index of its value on each axis, among the values that occur. Equal to the level if values are not binned.
    pub values: Vec<u32>,
    /// Index of its group in [`Design::groups`].
    pub group: usize,
}

/// The design of a sheet.
#[derive(Clone, Debug, Default)]
pub struct Design {
    /// Axes of the sweep, with their levels.
    pub axes: Vec<AxisLevels>,
    /// Configurations, in the order of their first experiment.
    pub configurations: Vec<Configuration>,
    /// Name of each group: the values of the axes that change the work. A single empty text if all experiments do the same work.
    pub groups: Vec<String>,
    /// Axes that were not simulated. They are left out of recommendations.
    pub unmodelled: Unmodelled,
}

/// The names of the groups of a design, for one and for several.
const WORKLOADS: [&str; 2] = ["workload", "workloads"];
const WAYS: [&str; 2] = ["way of simulating", "ways of simulating"];
const WORKLOADS_AND_WAYS: [&str; 2] = ["workload and way of simulating", "workloads and ways of simulating"];

impl Design {
    /// Derives the design of a sheet.
    pub fn of(sheet: &Sheet) -> Design {
        let levels_of_axes: Vec<Levels> = sheet.axes().iter().map(|c| Levels::of(&c.text)).collect();
        let axis = |(column, levels): (&SheetColumn, &Levels)| {
            let (key, asked) = (&column.name, &sheet.asked);
            AxisLevels {
                key: key.clone(),
                question: asked.asks(key),
                way: asked.is_way(key),
                not_compared: asked.why_not_compared(key).map(String::from),
                levels: levels.names.clone(),
                binned: levels.binned,
            }
        };
        let mut design =
            Design { axes: sheet.axes().iter().zip(&levels_of_axes).map(axis).collect(), ..Design::default() };
        // Points of a sweep that resolve to the same configuration have the same key. The values of their axes distinguish them.
        let mut places: HashMap<(&str, Vec<u32>), usize> = HashMap::new();
        let mut groups: HashMap<Vec<&str>, usize> = HashMap::new();
        let keys = sheet.column("config_key");
        for row in 0..sheet.rows() {
            let index = design.configurations.len();
            // A table without keys has no replicas.
            let values = || levels_of_axes.iter().map(|s| s.value[row]).collect();
            let place = keys.map_or(index, |k| *places.entry((&k.text[row], values())).or_insert(index));
            if place < index {
                design.configurations[place].rows.push(row);
                continue;
            }
            // Groups are by exact values, not by bins: two loads are different work, however close they are.
            let asks = |c: &&SheetColumn| sheet.asked.asks(&c.name);
            let asked: Vec<&str> = sheet.axes().iter().filter(asks).map(|c| c.text[row].as_str()).collect();
            let fresh = groups.len();
            let group = *groups.entry(asked.clone()).or_insert(fresh);
            if group == fresh {
                let label = |c: &SheetColumn| told_value(&c.name, &c.text[row]);
                design.groups.push(sheet.axes().iter().filter(asks).map(label).collect::<Vec<_>>().join(", "));
            }
            let levels = levels_of_axes.iter().map(|s| s.level[row]).collect();
            design.configurations.push(Configuration { rows: vec![row], levels, values: values(), group });
        }
        let outcomes: Vec<ComparedOutcome> = design.configurations.iter().map(|c| outcome(sheet, c)).collect();
        let judged = |axis: &AxisLevels| (!axis.question).then(|| axis.key.clone());
        let keys: Vec<Option<String>> = design.axes.iter().map(judged).collect();
        let keys: Vec<Option<&str>> = keys.iter().map(Option::as_deref).collect();
        design.unmodelled = Unmodelled::of(&keys, &outcomes, design.ways());
        design
    }

    /// For each configuration, the index of the way in which it was simulated.
    fn ways(&self) -> Vec<usize> {
        let is_way = |a: &usize| self.axes[*a].way;
        let of_ways: Vec<usize> = (0..self.axes.len()).filter(is_way).collect();
        let mut ways: HashMap<Vec<u32>, usize> = HashMap::new();
        let way = |c: &Configuration| {
            let fresh = ways.len();
            *ways.entry(of_ways.iter().map(|&a| c.values[a]).collect()).or_insert(fresh)
        };
        self.configurations.iter().map(way).collect()
    }

    /// Indices of the axes that change only how work is done, and that were simulated.
    pub fn answers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.axes.len()).filter(|&a| !self.axes[a].question && self.unmodelled.everywhere(a).is_none())
    }

    /// Indices of the axes that no experiment simulated, with the reason.
    pub fn not_simulated(&self) -> impl Iterator<Item = (usize, &'static str)> + '_ {
        (0..self.axes.len()).filter_map(|a| Some((a, self.unmodelled.everywhere(a)?)))
    }

    /// Axes whose values are not compared although they are designs, with the reason.
    pub fn not_compared(&self) -> impl Iterator<Item = (&str, &str)> {
        self.axes.iter().filter_map(|a| Some((a.key.as_str(), a.not_compared.as_deref()?)))
    }

    /// Whether a configuration was simulated in a way that simulates an axis.
    pub fn simulates(&self, axis: usize, configuration: usize) -> bool {
        self.unmodelled.why(axis, configuration).is_none()
    }

    /// Whether a configuration sprays packets where that cannot be judged. Others that differ only in the policy then stand for it.
    pub fn is_distrusted(&self, configuration: usize) -> bool {
        let policy = self.axes.iter().position(|a| a.key == POLICY && !a.binned);
        policy.is_some_and(|axis| {
            let level = self.configurations[configuration].levels[axis] as usize;
            !self.simulates(axis, configuration) && unmodelled::sprays(&self.axes[axis].levels[level])
        })
    }

    /// The names of the groups, for one and for several.
    pub fn kinds_of_groups(&self) -> [&'static str; 2] {
        let asked = self.axes.iter().filter(|a| a.question && a.levels.len() > 1);
        let (model, work): (Vec<_>, Vec<_>) = asked.partition(|a| a.way);
        match (model.is_empty(), work.is_empty()) {
            (true, _) => WORKLOADS,
            (false, true) => WAYS,
            (false, false) => WORKLOADS_AND_WAYS,
        }
    }

    /// The configurations as a grid, from which effects are computed.
    pub fn grid(&self) -> Grid {
        let point = |c: &Configuration| Point { levels: c.levels.clone(), values: c.values.clone(), group: c.group };
        Grid::of(self.axes.iter().map(|a| a.levels.len()).collect(), self.configurations.iter().map(point).collect())
    }

    /// Keys and values of a configuration on the axes of [`Design::answers`].
    pub fn describe(&self, configuration: usize) -> Vec<(String, String)> {
        let c = &self.configurations[configuration];
        self.answers().map(|a| (self.axes[a].key.clone(), self.axes[a].levels[c.levels[a] as usize].clone())).collect()
    }
}

/// Outcome of a configuration, from its first experiment that completed.
fn outcome(sheet: &Sheet, c: &Configuration) -> ComparedOutcome {
    let row = c.rows.iter().copied().find(|&row| sheet.ok(row));
    let number = |name: &str| sheet.column(name)?.number(row?);
    let of_axis = |name: &str| sheet.axes().iter().find(|a| a.name == name).map(|a| a.text[c.rows[0]].as_str());
    let goes_back_n = sheet.asked.goes_back_n(Questions::recovery_of(of_axis));
    ComparedOutcome::of(c.values.clone(), sheet.text("config_key", c.rows[0]), of_axis(POLICY), goes_back_n, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_question_have_their_name() {
        let s = Sheet::from_lines(
            "exp_id,config_key,seed,workload.fan_in,workload.pattern,status,makespan_ns\n0,k0,1,4,incast,ok,5\n1,k1,1,8,incast,ok,6",
        );
        assert_eq!(Design::of(&s).groups, ["fan_in 4, incast", "fan_in 8, incast"]);
    }

    #[test]
    fn replicas_are_one_configuration_and_questions_are_groups() {
        let s = Sheet::from_lines(
            "exp_id,config_key,seed,transport.cc,workload.pattern,status,makespan_ns
             0,k0,1,hpcc,ring,ok,5
             1,k0,2,hpcc,ring,ok,6
             2,k1,1,dcqcn,ring,ok,7
             3,k2,1,hpcc,incast,ok,8",
        );
        let d = Design::of(&s);
        let rows: Vec<&[usize]> = d.configurations.iter().map(|c| c.rows.as_slice()).collect();
        assert_eq!(rows, [&[0, 1][..], &[2], &[3]]);
        assert_eq!(d.groups, ["ring", "incast"]);
        assert_eq!(d.configurations.iter().map(|c| c.group).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(d.axes[0].levels, ["hpcc", "dcqcn"]);
        assert_eq!(d.describe(1), [("transport.cc".to_string(), "dcqcn".to_string())]);
    }
}
