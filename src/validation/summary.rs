//! Error statistics of the rows of a table.
//!
//! Layer: validation.

use super::row::ValidationRow;
use hyperfold_validated::{Use, nearest_rank_90};

/// Errors of the rows of one table, use, group and unit. Errors are relative; 0.05 is 5 %.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorSummary {
    /// Published table of the rows.
    pub table: String,
    /// How the rows were used: fitted, checked or doubtful.
    pub used: Use,
    /// Unit of the rows' values.
    pub unit: String,
    /// Group of the rows; see [`ValidationRow::group`].
    pub group: String,
    /// Number of rows, those without a result included.
    pub rows: usize,
    /// Number of rows without a result.
    pub without_result: usize,
    /// Mean of the absolute errors.
    pub mean: f64,
    /// Mean of the errors. Above 0: simulated values are too large.
    pub bias: f64,
    /// 90th percentile of the absolute errors, by nearest rank.
    pub p90: f64,
    /// Error and name of the row with the largest absolute error.
    pub worst: Option<(f64, String)>,
    /// Mean absolute difference of packets from closed forms, relative to the closed forms.
    pub difference: Option<f64>,
    /// Bound of `mean`. `None`: there is none.
    pub bound: Option<f64>,
}

impl ErrorSummary {
    /// Summarises rows of one kind. PRECONDITION: there is at least one.
    fn of(rows: &[&ValidationRow], bound: Option<f64>) -> ErrorSummary {
        let errors: Vec<(f64, &str)> = rows.iter().filter_map(|r| Some((r.rel_error?, r.name.as_str()))).collect();
        let mut sizes: Vec<f64> = errors.iter().map(|e| e.0.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let mean =
            |values: &[f64]| if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 };
        let worst = errors.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        let differences: Vec<f64> = rows.iter().filter_map(|r| r.difference()).map(f64::abs).collect();
        ErrorSummary {
            table: rows[0].table.clone(),
            used: rows[0].used,
            unit: rows[0].unit.clone(),
            group: rows[0].group.clone(),
            rows: rows.len(),
            without_result: rows.len() - errors.len(),
            mean: mean(&sizes),
            bias: mean(&errors.iter().map(|e| e.0).collect::<Vec<_>>()),
            p90: nearest_rank_90(&sizes),
            worst: worst.map(|(error, name)| (*error, name.to_string())),
            difference: (!differences.is_empty()).then(|| mean(&differences)),
            bound,
        }
    }

    /// One summary for each table, use, group and unit, fitted ones first, otherwise in the order of their first row. `bound` returns the bound of the mean
    /// for such rows.
    pub fn each(rows: &[ValidationRow], bound: impl Fn(&ValidationRow) -> Option<f64>) -> Vec<ErrorSummary> {
        let mut kinds: Vec<Vec<&ValidationRow>> = Vec::new();
        for row in rows {
            match kinds.iter_mut().find(|kind| kind[0].is_like(row)) {
                Some(kind) => kind.push(row),
                None => kinds.push(vec![row]),
            }
        }
        kinds.sort_by_key(|kind| kind[0].used);
        kinds.iter().map(|kind| ErrorSummary::of(kind, bound(kind[0]))).collect()
    }

    /// Whether a row is one of those that are summarised here.
    pub fn is_of(&self, row: &ValidationRow) -> bool {
        (self.used, &self.table, &self.unit, &self.group) == (row.used, &row.table, &row.unit, &row.group)
    }

    /// Whether the mean is within its bound. A row without a result counts as a failure, never as a pass.
    pub fn within(&self) -> bool {
        self.bound.is_none_or(|bound| self.mean <= bound && self.without_result == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: &str, used: Use, name: &str, values: [f64; 2]) -> ValidationRow {
        ValidationRow::new("s", table, used, name, "ms", values, "")
    }

    #[test]
    fn means_are_per_table_use_and_group() {
        let small = ValidationRow {
            group: "small".to_string(),
            closed_form: Some(16.0),
            ..row("a", Use::Fitted, "small", [10.0, 20.0])
        };
        let rows = [
            row("a", Use::Checked, "zero", [10.0, 9.0]),
            row("a", Use::Fitted, "one", [100.0, 102.0]),
            row("b", Use::Fitted, "two", [4.0, 3.0]),
            row("a", Use::Fitted, "three", [50.0, 48.0]),
            small,
        ];
        let s = ErrorSummary::each(&rows, |_| Some(0.05));
        let kinds: Vec<(&str, Use, usize, &str)> =
            s.iter().map(|s| (s.table.as_str(), s.used, s.rows, s.group.as_str())).collect();
        let expected = [
            ("a", Use::Fitted, 2, ""),
            ("b", Use::Fitted, 1, ""),
            ("a", Use::Fitted, 1, "small"),
            ("a", Use::Checked, 1, ""),
        ];
        assert_eq!(kinds, expected);
        assert_eq!((s[0].difference, s[2].difference), (None, Some(0.25)));
        assert!((s[0].mean - 0.03).abs() < 1e-12 && (s[0].bias + 0.01).abs() < 1e-12 && s[0].within());
        assert_eq!((s[0].p90, s[0].worst.clone()), (0.04, Some((-0.04, "three".to_string()))));
        assert!((s[1].mean - 0.25).abs() < 1e-12 && !s[1].within());
    }

    #[test]
    fn what_cannot_be_compared_is_a_miss() {
        for values in [[0.0, 1.0], [1.0, f64::NAN]] {
            let none = row("a", Use::Checked, "none", values);
            assert_eq!(none.rel_error, None);
            let s = &ErrorSummary::each(&[none], |_| Some(0.05))[0];
            assert!(!s.within() && s.without_result == 1);
        }
    }
}
