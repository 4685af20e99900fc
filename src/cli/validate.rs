//! `hyperfold validate`: compares the model with published measurements, row by row.
//!
//! Layer: cli. It prints what the layer `validation` finds.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::anyhow;

use super::args::ValidateArgs;
use super::exit::{CliError, Exit};
use super::say;
use super::table::TextTable;
use hyperfold_base::units::counted;
use hyperfold_validated::{ClassErrors, Coverage, ErrorQuantity, MAX_WIDTH, MIN_COVERED, TableCoverage, WorkloadClass};
use hyperfold_validation::{ErrorSummary, SUITES, Suite, ValidationRow, classes, classes_toml, errors_by_class};

/// Prints the error tables of one suite, or of all suites.
///
/// # Errors
/// The suite is unknown, or its sweeps cannot be run.
pub fn execute(args: &ValidateArgs) -> Result<Exit, CliError> {
    if let Some(file) = &args.write_classes {
        return write_classes(file);
    }
    let chosen: Vec<&Suite> = match &args.suite {
        None => SUITES.iter().collect(),
        Some(name) => match SUITES.iter().find(|s| s.name == name) {
            Some(suite) => vec![suite],
            None => {
                let names: Vec<&str> = SUITES.iter().map(|s| s.name).collect();
                return Err(CliError::bad_input(anyhow!("no suite `{name}`; there are: {}", names.join(", "))));
            }
        },
    };
    if args.coverage {
        return coverage(&chosen, args);
    }
    let mut all_within = true;
    for suite in chosen {
        let rows = suite.rows(args.folder.as_deref(), args.closed_forms).map_err(CliError::bad_input)?;
        let summaries = ErrorSummary::each(&rows, |row| suite.bound(row));
        all_within &= summaries.iter().all(ErrorSummary::within);
        let lines = match (args.json, args.markdown) {
            (true, _) => rows.iter().map(as_json).collect(),
            (_, true) => as_markdown(&summaries),
            _ => as_text(suite, &rows, &summaries),
        };
        lines.iter().for_each(|line| say(line));
    }
    Ok(if all_within { Exit::Ok } else { Exit::Condition })
}

/// Writes the asset from which results state their error.
fn write_classes(file: &Path) -> Result<Exit, CliError> {
    let mut rows = Vec::new();
    for suite in SUITES.iter().filter(|s| s.has_classes()) {
        rows.extend(suite.rows(None, false).map_err(CliError::bad_input)?);
    }
    let errors = classes(&rows);
    let tables: BTreeSet<&str> = errors.classes.iter().map(|c| c.table.as_str()).collect();
    std::fs::write(file, classes_toml(&errors)).map_err(|e| CliError::bad_input(anyhow!("{}: {e}", file.display())))?;
    say(&format!("{}: {} classes of {} tables", file.display(), errors.classes.len(), tables.len()));
    Ok(Exit::Ok)
}

/// Prints how the stated errors of left-out tables hold: of the program's own tables, as recorded, or of those in a folder, which run.
fn coverage(chosen: &[&Suite], args: &ValidateArgs) -> Result<Exit, CliError> {
    let errors = ClassErrors::built_in();
    let (mut all_hold, mut judged) = (true, 0);
    for suite in chosen.iter().filter(|s| s.has_classes()) {
        let rows = match &args.folder {
            Some(folder) if args.suite.is_some() || folder.join(suite.name).is_dir() => {
                errors_by_class(&suite.rows(Some(folder), args.closed_forms).map_err(CliError::bad_input)?)
            }
            Some(_) => continue,
            None => errors.classes.iter().filter(|c| suite.is_of(c.class.workload)).cloned().collect(),
        };
        let tables = TableCoverage::each(&rows, errors);
        judged += tables.len();
        let own = WorkloadClass::ALL.into_iter().filter(|w| suite.is_of(*w));
        for (workload, quantity) in own.flat_map(|w| w.quantities().iter().map(move |q| (w, *q))) {
            let sum = Coverage::of(&tables, workload, quantity);
            all_hold &= sum.is_none_or(|s| s.holds() || !s.is_judged());
            let of_quantity: Vec<&TableCoverage> = tables.iter().filter(|t| t.quantity == quantity).collect();
            let title = match quantity {
                ErrorQuantity::Time => suite.name.to_string(),
                quantity => format!("{}, {}", suite.name, quantity.as_str()),
            };
            coverage_lines(&title, &of_quantity, sum, args.markdown).iter().for_each(|line| say(line));
        }
    }
    if judged == 0 {
        let why = match &args.folder {
            Some(folder) => format!(
                "{}: no measured table of training, collectives or serving; see docs/explanation/fidelity.md",
                folder.display()
            ),
            None => {
                "errors are stated of training, collectives and serving: `hyperfold validate training --coverage`, for example"
                    .to_string()
            }
        };
        return Err(CliError::bad_input(anyhow!("{why}")));
    }
    Ok(if all_hold { Exit::Ok } else { Exit::Condition })
}

fn coverage_lines(suite: &str, tables: &[&TableCoverage], sum: Option<Coverage>, markdown: bool) -> Vec<String> {
    let mut out = vec![format!("{suite}: stated errors of tables that are left out"), String::new()];
    let header = ["table left out", "rows", "without an error", "covered", "stated 90th", "actual 90th", "width"];
    let cells = |t: &TableCoverage| {
        vec![
            t.table.clone(),
            t.rows.to_string(),
            (t.rows - t.stated_rows).to_string(),
            percent(t.covered),
            percent(t.stated),
            percent(t.actual),
            format!("{:.2}", t.width),
        ]
    };
    if markdown {
        out.extend([markdown_row(&header.map(String::from)), markdown_row(&header.map(|_| "---".to_string()))]);
        out.extend(tables.iter().map(|t| markdown_row(&cells(t))));
    } else {
        let mut table = TextTable::new(header.to_vec());
        tables.iter().for_each(|t| table.row(cells(t)));
        out.extend(table.lines());
    }
    if let Some(sum) = sum {
        let verdict = match (sum.is_judged(), sum.holds()) {
            (false, _) => "too few tables to judge",
            (true, true) => "holds",
            (true, false) => "DOES NOT HOLD",
        };
        let line = format!(
            "{} of their rows covered on average (at least {}), median width {:.2} (at most {MAX_WIDTH}): {verdict}",
            percent(sum.covered),
            percent(MIN_COVERED),
            sum.width,
        );
        out.extend([String::new(), format!("{}: {line}", counted(sum.tables, "table"))]);
    }
    out.push(String::new());
    out
}

fn as_json(row: &ValidationRow) -> String {
    serde_json::to_string(row).expect("plain numbers and strings serialise")
}

fn as_text(suite: &Suite, rows: &[ValidationRow], summaries: &[ErrorSummary]) -> Vec<String> {
    let mut out = vec![format!("{}: {}", suite.name, suite.about)];
    for summary in summaries {
        let own: Vec<&ValidationRow> = rows.iter().filter(|r| summary.is_of(r)).collect();
        let closed = own.iter().any(|r| r.closed_form.is_some());
        let mut header = vec!["name", "unit", "measured", "simulated", "error"];
        header.extend(["closed form", "difference"].into_iter().filter(|_| closed));
        header.push("note");
        let mut table = TextTable::new(header);
        for row in own {
            let or_none = |text: Option<String>| text.unwrap_or("none".to_string());
            let mut cells = vec![
                row.name.clone(),
                row.unit.clone(),
                number(row.measured),
                or_none(row.simulated.map(number)),
                or_none(row.rel_error.map(percent)),
            ];
            if closed {
                cells.extend([or_none(row.closed_form.map(number)), or_none(row.difference().map(signed))]);
            }
            cells.push(row.note.clone());
            table.row(cells);
        }
        out.push(String::new());
        let title = [summary.table.as_str(), summary.used.as_str(), summary.group.as_str()];
        out.push(title.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(", "));
        out.extend(table.lines());
    }
    out.push(String::new());
    let grouped = is_grouped(summaries);
    let mut table = TextTable::new(header(grouped));
    summaries.iter().for_each(|s| table.row(cells(s, grouped)));
    out.extend(table.lines());
    out.push(String::new());
    out
}

/// Whether tables have groups.
fn is_grouped(summaries: &[ErrorSummary]) -> bool {
    summaries.iter().any(|s| !s.group.is_empty())
}

/// Columns of the summary of tables.
fn header(grouped: bool) -> Vec<&'static str> {
    let mut header = vec!["table", "use"];
    header.extend(grouped.then_some("of"));
    header.extend(["unit", "n", "no result", "mean error", "bias", "90th", "worst", "worst row"]);
    header.extend(grouped.then_some("from closed form"));
    header.push("bound");
    header
}

fn cells(s: &ErrorSummary, grouped: bool) -> Vec<String> {
    let (worst, name) = s.worst.clone().map_or(("none".to_string(), String::new()), |(e, name)| (signed(e), name));
    let verdict = if s.within() { "within" } else { "EXCEEDED" };
    let mut cells = vec![s.table.clone(), s.used.as_str().to_string()];
    cells.extend(grouped.then(|| s.group.clone()));
    cells.extend([
        s.unit.clone(),
        s.rows.to_string(),
        s.without_result.to_string(),
        percent(s.mean),
        signed(s.bias),
        percent(s.p90),
        worst,
        name,
    ]);
    cells.extend(grouped.then(|| s.difference.map_or(String::new(), percent)));
    cells.push(s.bound.map_or("none".to_string(), |bound| format!("{} {verdict}", percent(bound))));
    cells
}

/// The summary as Markdown, for the README.
fn as_markdown(summaries: &[ErrorSummary]) -> Vec<String> {
    let grouped = is_grouped(summaries);
    let header = header(grouped);
    let rule: Vec<String> = header.iter().map(|_| "---".to_string()).collect();
    let header: Vec<String> = header.iter().map(|h| h.to_string()).collect();
    let mut out = vec![markdown_row(&header), markdown_row(&rule)];
    out.extend(summaries.iter().map(|s| markdown_row(&cells(s, grouped))));
    out
}

fn markdown_row(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

fn percent(x: f64) -> String {
    format!("{:.1} %", x * 100.0)
}

/// A relative error in percent. Above 0: the simulated value is too large.
fn signed(x: f64) -> String {
    format!("{:+.1} %", x * 100.0)
}

/// A number with four significant digits.
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
    use hyperfold_validated::Use;

    #[test]
    fn rows_print() {
        let row = |table, used, name, values, note| ValidationRow::new("s", table, used, name, "ms", values, note);
        let rows = [
            row("a", Use::Checked, "four", [100.0, f64::NAN], "oom: too large"),
            row("a", Use::Fitted, "one", [100.0, 102.0], ""),
            row("b", Use::Fitted, "two", [4.0, 3.0], "why"),
            row("a", Use::Fitted, "three", [50.0, 48.0], ""),
        ];
        let summaries = ErrorSummary::each(&rows, |_| Some(0.05));
        insta::assert_snapshot!(as_text(&SUITES[0], &rows, &summaries).join("\n"));
        insta::assert_snapshot!(as_json(&rows[0]));
        insta::assert_snapshot!(as_markdown(&summaries).join("\n"));
    }
}
