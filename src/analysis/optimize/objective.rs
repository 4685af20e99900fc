//! Objectives of a search: columns of results, and whether less or more is better.
//!
//! Layer: optimize.

use hyperfold_base::nearest::nearest;
use hyperfold_results::record::{OUTCOME, RecordColumn, SERVING};
use hyperfold_results::{Cell, ColumnKind, ExperimentRecord};

use crate::compare::Better;

/// A column to minimise or maximise.
#[derive(Clone, Copy)]
pub struct Objective {
    column: &'static RecordColumn,
    better: Better,
}

/// Error of a name that is no objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no column of results.csv with numbers; {hint}")]
pub struct ObjectiveError {
    /// The name that the user wrote.
    pub name: String,
    /// Names that can be used instead, in words.
    pub hint: String,
}

impl Objective {
    /// The objective of a column.
    ///
    /// # Errors
    /// There is no such column, or it holds no numbers.
    pub fn named(name: &str) -> Result<Objective, ObjectiveError> {
        let number = |c: &&RecordColumn| matches!(c.kind, ColumnKind::Real | ColumnKind::Unsigned | ColumnKind::Int);
        let numbers = || OUTCOME.iter().chain(SERVING).filter(number);
        let Some(column) = numbers().find(|c| c.name == name) else {
            let hint = match nearest(name, numbers().map(|c| c.name)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", numbers().map(|c| c.name).collect::<Vec<_>>().join(", ")),
            };
            return Err(ObjectiveError { name: name.chars().filter(|c| !c.is_control()).take(80).collect(), hint });
        };
        Ok(Objective { column, better: Better::of_column(name) })
    }

    /// Name of the column.
    pub fn name(&self) -> &'static str {
        self.column.name
    }

    /// Value of a record, with a sign such that less is better. `None`: the column is empty.
    pub fn value(&self, record: &ExperimentRecord) -> Option<f64> {
        let value = match (self.column.cell)(record) {
            Cell::Int(v) => v as f64,
            Cell::Unsigned(v) => v as f64,
            Cell::Ps(v) => v.0 as f64 / 1e3,
            Cell::Micro(v) => v.0 as f64 / 1e6,
            Cell::Real(v) if v.is_finite() => v,
            _ => return None,
        };
        Some(self.better.turned(value))
    }

    /// A value with the sign that it has in the column.
    pub fn shown(&self, value: f64) -> f64 {
        self.better.turned(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_results::Ps;

    #[test]
    fn texts_are_no_objectives() {
        assert!(
            Objective::named("iteration_time_n")
                .err()
                .unwrap()
                .to_string()
                .contains("did you mean `iteration_time_ns`")
        );
        assert!(Objective::named("status").err().unwrap().to_string().contains("no column"));
    }

    #[test]
    fn less_is_better_whatever_the_column() {
        let mut r = ExperimentRecord::new(0, String::new(), String::new(), 0, 0, Vec::new());
        (r.makespan, r.mfu) = (Some(Ps(2_500)), Some(0.4));
        assert_eq!(Objective::named("makespan_ns").unwrap().value(&r), Some(2.5));
        let mfu = Objective::named("mfu").unwrap();
        assert_eq!((mfu.value(&r), mfu.shown(-0.4)), (Some(-0.4), 0.4));
        assert_eq!(Objective::named("flows").unwrap().value(&r), None);
    }
}
