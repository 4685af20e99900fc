//! Gates for CI: a condition over columns that no experiment may meet.
//!
//! Layer: compare. The first of several folders is the base. Its experiments are not checked; other experiments are compared with them, matched by
//! [`pairs`](super::pairs) and replica. With a single folder there is no base, and every experiment is checked. In a condition, a bare name is the
//! experiment's own value, and `base.NAME` is the matching experiment's value. `base` alone is the matching experiment's value of the first bare name in the
//! condition. An experiment for which the condition cannot be decided counts as a hit, because a gate must not pass when a value is missing. The exception is
//! an experiment that does not fit into memory, and whose partner in the base, if there is a base, does not either: it passes.

use hyperfold_base::nearest::nearest_column;
use hyperfold_config::sweep::conditions::condition::{Condition, ConditionNames};
use hyperfold_results::{Cell, RunColumns, Status};

use super::pairs::{differences, partners};
use super::{CompareError, Section, Study};
use hyperfold_base::units::counted;

/// A parsed condition.
pub struct GateCondition {
    text: String,
    condition: Condition,
    /// The column that `base` alone stands for.
    implied: String,
    uses_base: bool,
}

/// An experiment that meets the condition.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Index of its folder in [`Study::runs`].
    pub run: usize,
    /// Its row in that folder, from 0.
    pub row: usize,
    /// Row of the matching experiment in the base.
    pub base: Option<usize>,
    /// Why it counts although the condition could not be decided. `None`: the condition was decided.
    pub undecided: Option<String>,
}

/// Result of a gate.
#[derive(Clone, Debug, Default)]
pub struct GateVerdict {
    /// Number of experiments that were checked.
    pub checked: usize,
    /// Experiments that meet the condition: the gate fails if there is one.
    pub hits: Vec<Hit>,
    /// Number of experiments that do not fit into memory, and whose partners in the base do not either.
    pub oom: usize,
}

/// Names that a condition may use: the columns of all folders and of the base.
struct Columns<'a>(&'a Study);

impl Columns<'_> {
    fn in_base(&self, name: &str) -> bool {
        name == BASE || name.strip_prefix("base.").is_some_and(|n| self.0.runs[0].column(n).is_some())
    }

    fn all(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.runs.iter().flat_map(|r| &r.columns).map(|c| c.name.as_str())
    }
}

/// Name of the first folder in conditions.
const BASE: &str = "base";

impl ConditionNames for Columns<'_> {
    fn knows(&self, name: &str) -> bool {
        self.in_base(name) || self.all().any(|c| c == name)
    }

    fn unknown(&self, name: &str) -> String {
        let (prefix, word) = name.strip_prefix("base.").map_or(("", name), |n| ("base.", n));
        match nearest_column(word, self.all().chain([BASE])) {
            Some(near) => format!("there is no column `{name}`; did you mean `{prefix}{near}`?"),
            None => format!(
                "there is no column `{name}`; the columns are those of results.csv: {}",
                super::metric::available(self.0).join(", ")
            ),
        }
    }

    fn example(&self) -> &'static str {
        "iteration_time_ns > 1.02 * base"
    }
}

/// Rows of later folders, matched with rows of the base. Partners have the same configuration, or the same coordinates, and the same replica number.
pub struct Matches {
    /// Matched rows, as (run, row, base row).
    pub pairs: Vec<(usize, usize, usize)>,
    /// Rows without a partner in the base, as (run, row).
    pub only_here: Vec<(usize, usize)>,
    /// Rows of the base without a partner in a run, as (run, base row).
    pub only_in_base: Vec<(usize, usize)>,
    /// How the settings of partners differ, in words.
    pub differences: Option<String>,
}

impl Matches {
    /// Matches every later folder with the first one.
    pub fn of(study: &Study) -> Matches {
        let partners = partners(study);
        let base = &study.runs[0];
        let mut matches = Matches {
            pairs: Vec::new(),
            only_here: Vec::new(),
            only_in_base: Vec::new(),
            differences: differences(study, &partners),
        };
        let mut met: Vec<Vec<bool>> = study.runs.iter().map(|_| vec![false; base.rows.len()]).collect();
        for (c, partner) in study.configurations.iter().zip(&partners).filter(|(c, _)| c.run > 0) {
            let run = &study.runs[c.run];
            let of_base = partner.map_or(&[][..], |p| &study.configurations[p.of_base].rows);
            for &row in &c.rows {
                match of_base.iter().find(|&&b| base.replica(b) == run.replica(row)) {
                    Some(&b) => {
                        met[c.run][b] = true;
                        matches.pairs.push((c.run, row, b));
                    }
                    None => matches.only_here.push((c.run, row)),
                }
            }
        }
        // The order of folders and rows does not depend on the order of configurations.
        matches.pairs.sort_unstable();
        matches.only_here.sort_unstable();
        let lacks = |run_idx: usize| {
            met[run_idx]
                .iter()
                .enumerate()
                .filter(|(_, met)| !**met)
                .map(move |(b, _)| (run_idx, b))
                .collect::<Vec<_>>()
        };
        matches.only_in_base = (1..study.runs.len()).flat_map(lacks).collect();
        matches
    }

    /// Number of experiments without a partner, on either side.
    pub fn unmatched(&self) -> usize {
        self.only_here.len() + self.only_in_base.len()
    }

    /// Table of the experiments without a partner, one row each. `None`: there are none.
    pub fn section(&self, study: &Study) -> Option<Section> {
        let title = "experiments without a partner: none has the same axes' values, work and replica";
        let mut section = Section::new("unmatched", title, ["dir", "exp_id", "missing in"]);
        let row = |run: usize, row: usize, other: usize| {
            vec![study.dir(run).into(), study.runs[run].exp_id(row).into(), study.dir(other).into()]
        };
        section.rows.extend(self.only_here.iter().map(|&(run, r)| row(run, r, 0)));
        section.rows.extend(self.only_in_base.iter().map(|&(run, b)| row(0, b, run)));
        (!section.rows.is_empty()).then_some(section)
    }
}

impl GateCondition {
    /// Parses a condition.
    ///
    /// # Errors
    /// The text is no condition, it names no column, it names a column without any value, or it uses the base although there is none.
    pub fn parse(study: &Study, text: &str) -> Result<GateCondition, CompareError> {
        let bad = |why: String| CompareError::Gate { text: text.into(), why };
        let columns = Columns(study);
        let condition = Condition::parse(text, &columns).map_err(bad)?;
        let bare: Vec<&String> = condition.names().iter().filter(|n| !columns.in_base(n)).collect();
        let Some(first) = bare.first() else {
            return Err(bad("it names no column of its own; write for example iteration_time_ns > 1.02 * base".into()));
        };
        let uses_base = bare.len() < condition.names().len();
        if uses_base && study.runs.len() < 2 {
            return Err(
                bad("`base` is the first of several folders, and there is one; name the base before it".into()),
            );
        }
        let gate = GateCondition { implied: first.to_string(), uses_base, text: text.into(), condition };
        for name in gate.condition.names() {
            let (runs, column) = match gate.base_column(name) {
                Some(column) => (&study.runs[..1], column),
                None => (gate.checked(study), name.as_str()),
            };
            let has =
                |run: &RunColumns| run.column(column).is_some_and(|c| run.rows.iter().any(|row| row[c] != Cell::Empty));
            // If no experiment completed, nothing can be decided. Then each experiment counts as a hit, with its own reason.
            let completed = |run: &RunColumns| (0..run.rows.len()).any(|row| run.status(row) == Status::Ok);
            let failed_since = uses_base && !runs.iter().any(completed) && has(&study.runs[0]);
            if !runs.iter().any(has) && !failed_since {
                let paths: Vec<String> = runs.iter().map(|r| r.path.display().to_string()).collect();
                let others = match super::metric::available_in(runs).join(", ") {
                    none if none.is_empty() => {
                        "nor of any other measurement; `status` and `error` in results.csv say why".to_string()
                    }
                    some => format!("those with values are {some}"),
                };
                return Err(bad(format!("no experiment in {} has a value of `{column}`; {others}", paths.join(", "))));
            }
        }
        Ok(gate)
    }

    /// The condition as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the condition refers to the base.
    pub fn uses_base(&self) -> bool {
        self.uses_base
    }

    /// Column of the base that a name stands for. `None`: the name is a bare name.
    fn base_column<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if name == BASE { Some(&self.implied) } else { name.strip_prefix("base.") }
    }

    fn checked<'a>(&self, study: &'a Study) -> &'a [RunColumns] {
        &study.runs[usize::from(study.runs.len() > 1)..]
    }

    /// Checks the condition for every experiment.
    ///
    /// # Errors
    /// There is nothing to check, or the condition makes no sense for any experiment (a text compared with a number).
    pub fn check(&self, study: &Study, matches: &Matches) -> Result<GateVerdict, CompareError> {
        let bad = |why: String| CompareError::Gate { text: self.text.clone(), why };
        let several = study.runs.len() > 1;
        let cases: Vec<(usize, usize, Option<usize>)> = if self.uses_base {
            matches.pairs.iter().map(|&(run, row, base)| (run, row, Some(base))).collect()
        } else {
            let rows = |run: usize| (0..study.runs[run].rows.len()).map(move |row| (run, row, None));
            (usize::from(several)..study.runs.len()).flat_map(rows).collect()
        };
        if cases.is_empty() {
            return Err(bad(match self.uses_base {
                true => {
                    "no experiment has a partner in the base: none there has the same axes' values, work and replica"
                        .into()
                }
                false => "there is no experiment to check".into(),
            }));
        }
        let mut verdict = GateVerdict { checked: cases.len(), ..GateVerdict::default() };
        let (mut decided, mut nonsense) = (0, None);
        for (run, row, base) in cases {
            let value = |name: &str| self.value(study, run, row, base, name);
            let values: Vec<Cell> = self.condition.names().iter().map(|name| value(name)).collect();
            let holds = self.condition.holds(|name| values[name].condition_value());
            match holds {
                Ok(false) => decided += 1,
                Ok(true) => {
                    decided += 1;
                    verdict.hits.push(Hit { run, row, base, undecided: None });
                }
                Err(_)
                    if study.runs[run].status(row) == Status::Oom
                        && base.is_none_or(|b| study.runs[0].status(b) == Status::Oom) =>
                {
                    verdict.oom += 1
                }
                Err(why) => {
                    let empty: Vec<String> = self
                        .condition
                        .names()
                        .iter()
                        .filter(|n| value(n) == Cell::Empty)
                        .map(|n| format!("`{n}`"))
                        .collect();
                    let why = if empty.is_empty() {
                        nonsense = nonsense.or_else(|| Some((run, row, why.clone())));
                        why
                    } else {
                        let base = base
                            .map(|b| format!(", in the base {}", study.runs[0].status(b).as_str()))
                            .unwrap_or_default();
                        format!(
                            "{} has no value (status {}{base})",
                            empty.join(", "),
                            study.runs[run].status(row).as_str()
                        )
                    };
                    verdict.hits.push(Hit { run, row, base, undecided: Some(why) });
                }
            }
        }
        match nonsense {
            Some((run, row, why)) if decided == 0 => {
                Err(bad(format!("{why} ({}, experiment {})", study.dir(run), study.runs[run].exp_id(row))))
            }
            _ => Ok(verdict),
        }
    }

    fn value(&self, study: &Study, run: usize, row: usize, base: Option<usize>, name: &str) -> Cell {
        match (self.base_column(name), base) {
            (Some(column), Some(base)) => cell(study, 0, base, column),
            (Some(_), None) => Cell::Empty,
            (None, _) => cell(study, run, row, name),
        }
    }

    /// Table of the hits, one row each.
    pub fn section(&self, study: &Study, verdict: &GateVerdict) -> Section {
        let n = verdict.hits.len();
        let met = if n == 0 { "passed".to_string() } else { format!("FAILED for {n}") };
        let mut columns = vec!["condition".to_string(), "dir".into(), "exp_id".into()];
        columns.extend(study.axes.iter().cloned());
        let names: Vec<String> = self
            .condition
            .names()
            .iter()
            .map(|n| if n == BASE { format!("base.{}", self.implied) } else { n.clone() })
            .collect();
        let shown: Vec<&String> = names.iter().filter(|n| !study.axes.contains(n)).collect();
        columns.extend(shown.iter().map(|n| n.to_string()));
        columns.push("undecided".into());
        let mut section = Section::new(
            "fail_if",
            format!("{}: {met} of {}", self.text, counted(verdict.checked, "experiment")),
            columns,
        );
        for hit in &verdict.hits {
            let mut row: Vec<Cell> =
                vec![self.text.as_str().into(), study.dir(hit.run).into(), study.runs[hit.run].exp_id(hit.row).into()];
            row.extend(study.axes.iter().map(|a| cell(study, hit.run, hit.row, a)));
            row.extend(shown.iter().map(|name| self.value(study, hit.run, hit.row, hit.base, name)));
            row.push(hit.undecided.as_deref().into());
            section.rows.push(row);
        }
        if verdict.oom > 0 {
            let base = if self.uses_base { ", in the base as well" } else { "" };
            let hint = "; `status == \"oom\" || ...` would fail for them";
            section
                .notes
                .push(format!("{} without enough GPU memory{base} pass{hint}", counted(verdict.oom, "experiment")));
        }
        section
    }
}

/// Value of a row in a column. If the folder does not vary the key, it is the value that the folder's sweep fixes.
fn cell(study: &Study, run: usize, row: usize, name: &str) -> Cell {
    if let Some(c) = study.runs[run].column(name) {
        return study.runs[run].rows[row][c].clone();
    }
    let configuration = study.configurations.iter().find(|c| c.run == run && c.rows.contains(&row));
    let axis = study.axes.iter().position(|a| a == name);
    configuration.zip(axis).map_or(Cell::Empty, |(c, a)| c.values[a].clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};

    fn hits(study: &Study, text: &str) -> Result<Vec<u64>, String> {
        let gate = GateCondition::parse(study, text).map_err(|e| e.to_string())?;
        let verdict = gate.check(study, &Matches::of(study)).map_err(|e| e.to_string())?;
        Ok(verdict.hits.iter().map(|h| study.runs[h.run].exp_id(h.row)).collect())
    }

    fn oom(id: u64, key: &str) -> hyperfold_results::Finished {
        let mut f = ok(id, key, &["z"], 0);
        f.record = f.record.oom(1, "needs more");
        f.record.makespan = None;
        f
    }

    /// The second folder has its rows in another order, and one more; `b` is 5 % slower.
    fn study() -> (Folder, Folder, Study) {
        let base =
            Folder::new(&["transport.cc"], vec![ok(0, "a", &["x"], 100_000), ok(1, "b", &["y"], 200_000), oom(2, "c")]);
        let new = Folder::new(
            &["transport.cc"],
            vec![ok(0, "new", &["w"], 1_000), ok(5, "b", &["y"], 210_000), ok(6, "a", &["x"], 101_000), oom(7, "c")],
        );
        let study = Study::open(&[base.path(), new.path()]).unwrap();
        (base, new, study)
    }

    #[test]
    fn rows_meet_by_configuration() {
        let (_a, _b, study) = study();
        assert_eq!(hits(&study, "makespan_ns > 1.02 * base"), Ok(vec![5]));
        assert_eq!(hits(&study, "makespan_ns > 1.02 * base.makespan_ns"), Ok(vec![5]));
        assert_eq!(hits(&study, "makespan_ns > base"), Ok(vec![5, 6]));
        assert_eq!(hits(&study, "makespan_ns > 1.10 * base"), Ok(vec![]));
        assert_eq!(
            hits(&study, "status != base || makespan_ns > 1000 * base"),
            Err("--fail-if `status != base || makespan_ns > 1000 * base`: `*` does not go with a number and a text ("
                .to_string()
                + &study.dir(1)
                + ", experiment 5)")
        );
        let matches = Matches::of(&study);
        assert_eq!(
            (matches.pairs.len(), matches.only_here.as_slice(), matches.only_in_base.len()),
            (3, &[(1, 0)][..], 0)
        );
    }

    #[test]
    fn what_cannot_be_decided_fails() {
        let base = Folder::new(&["transport.cc"], vec![ok(0, "a", &["x"], 100_000), ok(1, "c", &["z"], 1_000)]);
        let new = Folder::new(&["transport.cc"], vec![ok(0, "a", &["x"], 100_000), oom(1, "c")]);
        let study = Study::open(&[base.path(), new.path()]).unwrap();
        assert_eq!(hits(&study, "makespan_ns > 1.02 * base"), Ok(vec![1]), "now out of memory");
        assert_eq!(
            hits(&study, "status == \"ok\" && makespan_ns > 1.02 * base.makespan_ns"),
            Ok(vec![]),
            "unless the gate says otherwise"
        );
        let back = Study::open(&[new.path(), base.path()]).unwrap();
        assert_eq!(hits(&back, "makespan_ns > 1.02 * base"), Ok(vec![1]), "no base to hold it against");
    }

    #[test]
    fn a_single_folder_is_checked_without_a_base() {
        let (base, ..) = study();
        let study = Study::open(&[base.path()]).unwrap();
        assert_eq!(hits(&study, "status == \"ok\" && makespan_ns >= 200"), Ok(vec![1]));
        assert_eq!(hits(&study, "makespan_ns >= 200"), Ok(vec![1]), "what does not fit is a result");
        assert_eq!(
            hits(&study, "status == \"oom\" || makespan_ns >= 200"),
            Ok(vec![1, 2]),
            "unless the gate says otherwise"
        );
        assert!(hits(&study, "makespan_ns > base").unwrap_err().contains("first of several folders"));
    }

    #[test]
    fn mistakes_are_named() {
        let (_a, _b, study) = study();
        for (text, part) in [
            ("makespam_ns > 1", "did you mean `makespan_ns`?"),
            ("makespan > 1", "did you mean `makespan_ns`?"),
            ("makespan_ns > base.makespam_ns", "did you mean `base.makespan_ns`?"),
            ("base > 1", "names no column"),
            (
                "iteration_time_ns > 1.02 * base",
                "has a value of `iteration_time_ns`; those with values are makespan_ns",
            ),
            ("makespan_ns >", "not a condition"),
            ("makespan_ns", "true or false"),
            ("makespan_ns > \"x\"", "does not go with"),
        ] {
            let e = hits(&study, text).expect_err(text);
            assert!(e.contains(part), "{text}: {e}");
        }
    }

    #[test]
    fn the_columns_named_are_those_of_the_folder() {
        let mut counted = ok(0, "a", &["x"], 1_000);
        counted.record.drops = Some(3);
        let base = Folder::new(&["transport.cc"], vec![counted]);
        let mut plain = ok(0, "a", &["x"], 1_000);
        plain.record.drops = None;
        let new = Folder::new(&["transport.cc"], vec![plain]);
        let study = Study::open(&[base.path(), new.path()]).unwrap();
        let why = hits(&study, "drops > 1").unwrap_err();
        let (place, others) = why.split_once("; those with values are ").expect("others are named");
        assert!(place.ends_with(&format!("no experiment in {} has a value of `drops`", study.dir(1))), "{why}");
        assert!(others.contains("makespan_ns") && !others.contains("drops"), "{why}");
    }

    #[test]
    fn where_all_failed_the_message_says_so() {
        let failed = |id, key| {
            let mut f = ok(id, key, &["z"], 0);
            (f.record.status, f.record.makespan) = (Status::Failed, None);
            f
        };
        let none = Folder::new(&["transport.cc"], vec![failed(0, "a"), failed(1, "b")]);
        let study = Study::open(&[none.path()]).unwrap();
        assert!(
            hits(&study, "makespan_ns > 1")
                .unwrap_err()
                .ends_with("nor of any other measurement; `status` and `error` in results.csv say why")
        );
    }

    #[test]
    fn what_failed_since_the_base_is_a_hit() {
        let then = Folder::new(&["transport.cc"], vec![ok(0, "a", &["x"], 1_000)]);
        let mut failed = ok(0, "a", &["x"], 0);
        (failed.record.status, failed.record.makespan) = (Status::Failed, None);
        let now = Folder::new(&["transport.cc"], vec![failed]);
        let study = Study::open(&[then.path(), now.path()]).unwrap();
        assert_eq!(hits(&study, "makespan_ns > base"), Ok(vec![0]));
        assert!(hits(&study, "mfu > base").unwrap_err().contains("has a value of `mfu`"));
    }

    #[test]
    fn folders_that_share_nothing_are_refused() {
        let one = Folder::new(&["transport.cc"], vec![ok(0, "a", &["x"], 1_000)]);
        let two = Folder::new(&["transport.cc"], vec![ok(0, "b", &["y"], 1_000)]);
        let study = Study::open(&[one.path(), two.path()]).unwrap();
        assert!(hits(&study, "makespan_ns > base").unwrap_err().contains("no experiment has a partner"));
        assert_eq!(hits(&study, "makespan_ns > 0"), Ok(vec![0]));
    }
}
