//! The result table as a report needs it: decimal text beside its value, and which columns are axes.
//!
//! Layer: report. Holds what `results.csv` shows, letter by letter, so that no number in a report is a rounded copy. Reads no files and
//! computes nothing but the values of those texts.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::compare::Questions;
use crate::compare::levels::number;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Number,
    Text,
}

/// One column of `results.csv`.
#[derive(Clone, Debug)]
pub struct SheetColumn {
    pub name: String,
    pub holds: Holds,
    /// As the file shows it, a row each; empty where it does not apply.
    pub text: Vec<String>,
}

impl SheetColumn {
    /// A column whose kind is read off its values: numbers if all that is not empty is a finite number.
    pub fn infer(name: impl Into<String>, text: Vec<String>) -> SheetColumn {
        let mut shown = text.iter().filter(|t| !t.is_empty()).peekable();
        let some = shown.peek().is_some();
        let holds = if some && shown.all(|t| number(t).is_some()) { Holds::Number } else { Holds::Text };
        SheetColumn { name: name.into(), holds, text }
    }

    /// The value of a row, where it has one.
    pub fn number(&self, row: usize) -> Option<f64> {
        if self.holds == Holds::Number { number(&self.text[row]) } else { None }
    }
}

/// All experiments of a folder.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    pub columns: Vec<SheetColumn>,
    /// Which columns are the sweep's axes.
    pub axes: Range<usize>,
    /// Which of their keys ask another question.
    pub asked: Questions,
    /// Of several jobs, columns that are of one of them, each with its name.
    pub of_job: BTreeMap<String, String>,
}

impl Sheet {
    /// Number of experiments.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.text.len())
    }

    /// A column that every result table has.
    pub fn column(&self, name: &str) -> Option<&SheetColumn> {
        // An axis never has the name of a fixed column (axes have dots), so the order of search is free.
        self.columns.iter().find(|c| c.name == name)
    }

    /// The text of a cell; empty if there is no such column.
    pub fn text(&self, name: &str, row: usize) -> &str {
        self.column(name).map_or("", |c| &c.text[row])
    }

    /// The axes' columns.
    pub fn axes(&self) -> &[SheetColumn] {
        &self.columns[self.axes.clone()]
    }

    /// The columns that say how an experiment ended.
    pub fn outcomes(&self) -> &[SheetColumn] {
        &self.columns[self.axes.end.min(self.columns.len())..]
    }

    /// Whether the experiment completed.
    pub fn ok(&self, row: usize) -> bool {
        self.text("status", row) == "ok"
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A sheet from lines of comma-separated cells, the first of which names the columns; for the tests of this layer.
    pub(crate) fn sheet(text: &str) -> Sheet {
        let rows: Vec<Vec<&str>> = text.lines().map(|l| l.trim().split(',').collect()).collect();
        let at = |name: &str| rows[0].iter().position(|c| *c == name).unwrap();
        let axes = at("seed") + 1..at("status");
        let column = |c: usize| SheetColumn::infer(rows[0][c], rows[1..].iter().map(|r| r[c].to_string()).collect());
        Sheet { columns: (0..rows[0].len()).map(column).collect(), axes, ..Sheet::default() }
    }

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
        let s = sheet("exp_id,seed,a.b,c.d,status,makespan_ns\n0,1,x,2,ok,5.25");
        assert_eq!(s.axes().iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a.b", "c.d"]);
        assert_eq!(
            (s.rows(), s.text("makespan_ns", 0), s.column("makespan_ns").unwrap().number(0)),
            (1, "5.25", Some(5.25))
        );
        assert!(s.ok(0));
        assert_eq!(s.outcomes().len(), 2);
    }
}
