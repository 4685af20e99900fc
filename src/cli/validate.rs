//! `hyperfold validate`: the model against published measurements, row by row.
//!
//! Layer: cli. The suites are registered in `suites`; the rows come from the layers that make the predictions. Nothing is fitted here.

use anyhow::anyhow;

use super::args::ValidateArgs;
use super::exit::{CliError, Exit};
use super::say;
use super::suites::{SUITES, Suite};
use super::table::TextTable;
use super::validation_row::ValidationRow;

/// What the rows of one table come to.
#[derive(Clone, Debug, PartialEq)]
struct Summary {
    table: String,
    rows: usize,
    /// Rows that count.
    counted: usize,
    /// Mean of the absolute relative errors.
    mean: f64,
    max: f64,
    bound: f64,
}

impl Summary {
    /// A row without a number to compare is a miss, never a pass.
    fn of(table: &str, rows: &[&ValidationRow], bound: f64) -> Summary {
        let errors: Vec<f64> =
            rows.iter().filter(|r| r.counts).map(|r| r.rel_error.map_or(f64::INFINITY, f64::abs)).collect();
        let mean = if errors.is_empty() { 0.0 } else { errors.iter().sum::<f64>() / errors.len() as f64 };
        Summary {
            table: table.to_string(),
            rows: rows.len(),
            counted: errors.len(),
            mean,
            max: errors.iter().copied().fold(0.0, f64::max),
            bound,
        }
    }

    fn within(&self) -> bool {
        self.mean <= self.bound
    }
}

/// Prints the error table of a suite, or of all that there are.
///
/// # Errors
/// An unknown suite, or one that this version lacks.
pub fn execute(args: &ValidateArgs) -> Result<Exit, CliError> {
    let chosen: Vec<&Suite> = match &args.suite {
        None => SUITES.iter().filter(|s| s.rows.is_some()).collect(),
        Some(name) => match SUITES.iter().find(|s| s.name == name) {
            Some(suite) => vec![suite],
            None => {
                let names: Vec<&str> = SUITES.iter().map(|s| s.name).collect();
                return Err(CliError::bad_input(anyhow!("no suite `{name}`; there are: {}", names.join(", "))));
            }
        },
    };
    let mut all_within = true;
    for suite in chosen {
        let Some(rows) = suite.rows else {
            return Err(CliError::bad_input(anyhow!(
                "the suite `{}` ({}) is not available in this version",
                suite.name,
                suite.about
            )));
        };
        let rows = rows().map_err(CliError::broken)?;
        let summaries = summarise(&rows, suite.bound);
        all_within &= summaries.iter().all(Summary::within);
        let lines = if args.json { rows.iter().map(as_json).collect() } else { as_text(suite, &rows, &summaries) };
        lines.iter().for_each(|line| say(line));
    }
    Ok(if all_within { Exit::Ok } else { Exit::Condition })
}

/// One summary a table, in the order in which the tables first appear.
fn summarise(rows: &[ValidationRow], bound: f64) -> Vec<Summary> {
    let mut tables: Vec<&str> = Vec::new();
    for row in rows {
        if !tables.contains(&row.table.as_str()) {
            tables.push(&row.table);
        }
    }
    tables.iter().map(|t| Summary::of(t, &rows.iter().filter(|r| r.table == *t).collect::<Vec<_>>(), bound)).collect()
}

fn as_json(row: &ValidationRow) -> String {
    serde_json::to_string(row).expect("plain numbers and strings serialise")
}

fn as_text(suite: &Suite, rows: &[ValidationRow], summaries: &[Summary]) -> Vec<String> {
    let mut out = vec![format!("{}: {}", suite.name, suite.about)];
    for summary in summaries {
        let mut table = TextTable::new(["name", "unit", "measured", "simulated", "error", "note"]);
        for row in rows.iter().filter(|r| r.table == summary.table) {
            let error = row.rel_error.map_or("none".to_string(), percent);
            table.row(vec![
                row.name.clone(),
                row.unit.clone(),
                number(row.measured),
                number(row.simulated),
                error,
                row.note.clone(),
            ]);
        }
        out.push(String::new());
        out.push(summary.table.clone());
        out.extend(table.lines());
    }
    out.push(String::new());
    let mut table = TextTable::new(["table", "rows", "counted", "mean |error|", "max |error|", "bound", ""]);
    for s in summaries {
        let verdict = if s.within() { "within" } else { "EXCEEDED" };
        let cells = [
            s.table.clone(),
            s.rows.to_string(),
            s.counted.to_string(),
            percent(s.mean),
            percent(s.max),
            percent(s.bound),
            verdict.to_string(),
        ];
        table.row(cells.to_vec());
    }
    out.extend(table.lines());
    out.push(String::new());
    out
}

fn percent(x: f64) -> String {
    format!("{:.2} %", x * 100.0)
}

/// Four significant digits.
fn number(x: f64) -> String {
    let digits = match x.abs() {
        a if a == 0.0 || a >= 1000.0 => 0,
        a if a >= 100.0 => 1,
        a if a >= 10.0 => 2,
        a if a >= 1.0 => 3,
        _ => 6,
    };
    format!("{x:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<ValidationRow> {
        let mut small = ValidationRow::new("s", "a", "64 KiB", "us", [10.0, 20.0], "below 1 MiB");
        small.counts = false;
        let row = |table, name, values, note| ValidationRow::new("s", table, name, "ms", values, note);
        vec![
            row("a", "one", [100.0, 102.0], ""),
            row("b", "two", [4.0, 3.0], "why"),
            row("a", "three", [50.0, 48.0], ""),
            small,
        ]
    }

    #[test]
    fn means_are_per_table_and_over_rows_that_count() {
        let s = summarise(&rows(), 0.05);
        assert_eq!(
            s.iter().map(|s| (s.table.as_str(), s.rows, s.counted)).collect::<Vec<_>>(),
            [("a", 3, 2), ("b", 1, 1)]
        );
        assert!((s[0].mean - 0.03).abs() < 1e-12 && (s[0].max - 0.04).abs() < 1e-12 && s[0].within());
        assert!((s[1].mean - 0.25).abs() < 1e-12 && !s[1].within());
    }

    #[test]
    fn what_cannot_be_compared_is_a_miss() {
        let none = ValidationRow::new("s", "s", "zero", "ms", [0.0, 1.0], "");
        assert_eq!(none.rel_error, None);
        assert!(!Summary::of("s", &[&none], 0.05).within());
        assert!(!Summary::of("s", &[&ValidationRow::new("s", "s", "nan", "ms", [1.0, f64::NAN], "")], 0.05).within());
    }

    #[test]
    fn rows_print() {
        let suite = Suite { name: "s", about: "an example", bound: 0.05, rows: None };
        insta::assert_snapshot!(as_text(&suite, &rows(), &summarise(&rows(), 0.05)).join("\n"));
        insta::assert_snapshot!(as_json(&rows()[1]));
    }
}
