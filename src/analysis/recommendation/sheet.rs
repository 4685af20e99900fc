//! The result table in the form that a report needs: the decimal text of each cell, and which columns are axes.
//!
//! Layer: recommendation. It holds the exact texts of `results.csv`, so that no number in a report is a rounded copy. It reads no files, and computes only the values
//! of the texts.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::compare::Questions;
use crate::compare::levels::number;

/// Type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Finite numbers, or nothing.
    Number,
    /// Any text.
    Text,
}

/// One column of `results.csv`.
#[derive(Clone, Debug)]
pub struct SheetColumn {
    /// Heading of the column.
    pub name: String,
    /// Type of its values.
    pub holds: Holds,
    /// Text of each row, as in the file. Empty if the column does not apply.
    pub text: Vec<String>,
}

impl SheetColumn {
    /// Makes a column whose type is inferred: it holds numbers if all texts that are not empty are finite numbers.
    pub fn infer(name: impl Into<String>, text: Vec<String>) -> SheetColumn {
        let mut shown = text.iter().filter(|t| !t.is_empty()).peekable();
        let some = shown.peek().is_some();
        let holds = if some && shown.all(|t| number(t).is_some()) { Holds::Number } else { Holds::Text };
        SheetColumn { name: name.into(), holds, text }
    }

    /// Value of a row. `None`: the cell is empty, or the column holds text.
    pub fn number(&self, row: usize) -> Option<f64> {
        if self.holds == Holds::Number { number(&self.text[row]) } else { None }
    }
}

/// All experiments of a folder.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// Columns in the order of the file, each with a text for every row.
    pub columns: Vec<SheetColumn>,
    /// Indices of the columns that are axes of the sweep.
    pub axes: Range<usize>,
    /// Decides which keys change the work.
    pub asked: Questions,
    /// For columns that belong to one of several jobs, the name of the job.
    pub of_job: BTreeMap<String, String>,
}

impl Sheet {
    /// Number of experiments.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.text.len())
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&SheetColumn> {
        // Axes have dots in their names and fixed columns have none, so the order of the search does not matter.
        self.columns.iter().find(|c| c.name == name)
    }

    /// Text of a cell. Empty if there is no such column.
    pub fn text(&self, name: &str, row: usize) -> &str {
        self.column(name).map_or("", |c| &c.text[row])
    }

    /// Columns of the axes.
    pub fn axes(&self) -> &[SheetColumn] {
        &self.columns[self.axes.clone()]
    }

    /// Columns that say how an experiment ended.
    pub fn outcomes(&self) -> &[SheetColumn] {
        &self.columns[self.axes.end.min(self.columns.len())..]
    }

    /// A sheet from lines of comma-separated cells, the first of which names the columns. Tests write tables in this way.
    ///
    /// # Panics
    /// A line has fewer cells than the first, or the columns `seed` and `status` are missing.
    pub fn from_lines(text: &str) -> Sheet {
        let rows: Vec<Vec<&str>> = text.lines().map(|l| l.trim().split(',').collect()).collect();
        let column_idx =
            |name: &str| rows[0].iter().position(|c| *c == name).expect("the first line names seed and status");
        let axes = column_idx("seed") + 1..column_idx("status");
        let column = |c: usize| SheetColumn::infer(rows[0][c], rows[1..].iter().map(|r| r[c].to_string()).collect());
        Sheet { columns: (0..rows[0].len()).map(column).collect(), axes, ..Sheet::default() }
    }

    /// Whether the experiment completed.
    pub fn ok(&self, row: usize) -> bool {
        self.text("status", row) == "ok"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_numbers_has_nothing_else() {
        let holds = |cells: &[&str]| SheetColumn::infer("c", cells.iter().map(|s| s.to_string()).collect()).holds;
        assert_eq!(holds(&["1", "", "-2.5", "1e-7"]), Holds::Number);
        assert_eq!(holds(&["1", "x"]), Holds::Text);
        assert_eq!(holds(&["inf"]), Holds::Text);
        assert_eq!(holds(&["1e999"]), Holds::Text);
        assert_eq!(holds(&["", ""]), Holds::Text);
    }

    #[test]
    fn columns_between_seed_and_status_are_axes() {
        let s = Sheet::from_lines("exp_id,seed,a.b,c.d,status,makespan_ns\n0,1,x,2,ok,5.25");
        assert_eq!(s.axes().iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a.b", "c.d"]);
        assert_eq!(
            (s.rows(), s.text("makespan_ns", 0), s.column("makespan_ns").unwrap().number(0)),
            (1, "5.25", Some(5.25))
        );
        assert!(s.ok(0));
        assert_eq!(s.outcomes().len(), 2);
    }
}
