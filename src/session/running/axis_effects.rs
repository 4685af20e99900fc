//! Finds axes that changed no result, after a run.
//!
//! Layer: session. A key without effect is worth knowing: a value may be mistyped, or a mechanism was never used.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use hyperfold_results::ColumnSets;
use hyperfold_results::record::outcome_columns;
use hyperfold_results::{ExperimentRecord, Status};

/// Outcomes of experiments by their axis values.
#[derive(Default)]
pub(crate) struct AxisEffects {
    seen: Vec<(Vec<String>, u64)>,
    /// Whether any experiment had a result. That none fits says nothing about axes.
    any_fits: bool,
    /// Axis values of experiments without a result.
    failed: Vec<Vec<String>>,
}

impl AxisEffects {
    /// Adds a finished experiment.
    pub(crate) fn add(&mut self, record: &ExperimentRecord) {
        let mut hash = DefaultHasher::new();
        // The validated error of a result is not part of the result.
        for column in outcome_columns(ColumnSets::ALL).filter(|c| !c.name.starts_with("validated_")) {
            format!("{:?}", (column.cell)(record)).hash(&mut hash);
        }
        let mut values: Vec<String> = record.axis_values.iter().map(|v| format!("{v:?}")).collect();
        values.push(record.replica.to_string());
        // That an experiment does not fit is a result too: an axis that decides it has an effect.
        if record.makespan.is_none() && record.cluster.is_none() && record.status != Status::Oom {
            self.failed.push(values);
            return;
        }
        self.any_fits |= record.status != Status::Oom;
        self.seen.push((values, hash.finish()));
    }

    /// Returns a warning for every axis without effect: all experiments that differ only in it have the same result.
    pub(crate) fn warnings(&self, axes: &[String]) -> Vec<String> {
        let without_effect = |i: usize| self.any_fits && self.without_effect(i);
        axes.iter().enumerate().filter(|(i, _)| without_effect(*i)).map(|(_, key)| no_effect(key)).collect()
    }

    fn without_effect(&self, axis: usize) -> bool {
        let mut groups: HashMap<Vec<&str>, (u64, bool)> = HashMap::new();
        let mut compared = false;
        fn but_for(values: &[String], axis: usize) -> Vec<&str> {
            values.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, v)| v.as_str()).collect()
        }
        for (values, outcome) in &self.seen {
            let others = but_for(values, axis);
            let group = groups.entry(others).or_insert((*outcome, false));
            if group.0 != *outcome {
                return false;
            }
            compared |= group.1;
            group.1 = true;
        }
        // If an experiment fails where another one ends, that is an effect too.
        compared && !self.failed.iter().any(|values| groups.contains_key(&but_for(values, axis)))
    }
}

/// Returns the warning about an axis without effect.
pub(crate) fn no_effect(key: &str) -> String {
    format!("axis {key} had no effect on any result of this run")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_results::{Cell, Ps};

    fn unended(axes: [i64; 2]) -> ExperimentRecord {
        ExperimentRecord::new(0, String::new(), String::new(), 0, 0, axes.map(Cell::Int).to_vec())
    }

    fn record(axes: [i64; 2], makespan: u64) -> ExperimentRecord {
        let mut r = unended(axes);
        r.makespan = Some(Ps(makespan));
        r
    }

    #[test]
    fn only_the_axis_that_changes_nothing_is_named() {
        let mut effects = AxisEffects::default();
        for (axes, makespan) in [([1, 1], 10), ([1, 2], 10), ([2, 1], 20), ([2, 2], 20)] {
            effects.add(&record(axes, makespan));
        }
        assert_eq!(effects.warnings(&["a".into(), "b".into()]), ["axis b had no effect on any result of this run"]);
    }

    #[test]
    fn an_axis_that_decides_what_fits_has_an_effect() {
        let mut effects = AxisEffects::default();
        effects.add(&record([1, 1], 10));
        effects.add(&unended([1, 2]).oom(90, "needs more"));
        assert!(effects.warnings(&["a".into(), "b".into()]).is_empty());
    }

    /// Sizes that are far too large do not fit with any value of another axis.
    #[test]
    fn where_nothing_fits_no_axis_is_judged() {
        let mut effects = AxisEffects::default();
        for axes in [[1, 1], [1, 2], [2, 1], [2, 2]] {
            effects.add(&unended(axes).oom(90, "needs more"));
        }
        assert!(effects.warnings(&["a".into(), "b".into()]).is_empty());
        effects.add(&record([3, 1], 10));
        effects.add(&record([3, 2], 10));
        assert_eq!(effects.warnings(&["a".into(), "b".into()]), ["axis b had no effect on any result of this run"]);
    }

    #[test]
    fn an_axis_that_decides_what_fails_has_an_effect() {
        let failed = |axes| unended(axes).failed("limit");
        let mut effects = AxisEffects::default();
        for (axes, fails) in [([1, 1], false), ([1, 2], true), ([1, 3], false), ([2, 2], true)] {
            effects.add(&if fails { failed(axes) } else { record(axes, 10) });
        }
        assert!(effects.warnings(&["a".into(), "b".into()]).is_empty());
        let mut effects = AxisEffects::default();
        for axes in [[1, 1], [1, 2]] {
            effects.add(&failed(axes));
        }
        assert!(effects.warnings(&["a".into(), "b".into()]).is_empty());
    }

    #[test]
    fn a_single_experiment_shows_nothing() {
        let mut effects = AxisEffects::default();
        effects.add(&record([1, 1], 10));
        assert!(effects.warnings(&["a".into(), "b".into()]).is_empty());
    }
}
