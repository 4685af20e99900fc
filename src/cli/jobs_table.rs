//! Table of jobs at the end of a run: one line per experiment and job.
//!
//! Layer: cli. It reads `jobs.csv`, which has the exact values.

use std::path::Path;

use super::table::{self, TextTable};
use hyperfold_base::input;

/// Largest number of rows of which each gets a line.
const EACH_UP_TO: usize = 40;
/// Columns of the file that are shown, and their headings.
const SHOWN: [(&str, &str); 9] = [
    ("exp_id", "exp"),
    ("job", "job"),
    ("gpu_list", "GPUs"),
    ("start_ns", "start"),
    ("makespan_ns", "time"),
    ("iteration_time_ns", "iteration"),
    ("slowdown", "slowdown"),
    ("slowed_by", "slowed by"),
    ("shares_with", "shares links with"),
];

/// Lines for standard output. Empty if each experiment has a single workload, or if there are too many rows.
pub fn lines(out: &Path) -> Vec<String> {
    let path = out.join("jobs.csv");
    if !input::is_file(&path) {
        return Vec::new();
    }
    // If the file cannot be read, the table is left out and the run goes on.
    let mut lines = input::open_table_anywhere(&path).ok().and_then(table).unwrap_or_default();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

fn table(text: impl std::io::Read) -> Option<Vec<String>> {
    let mut reader = csv::Reader::from_reader(text);
    let headers = reader.headers().ok()?.clone();
    let rows: Vec<csv::StringRecord> = reader.records().take(EACH_UP_TO + 1).collect::<Result<_, _>>().ok()?;
    if rows.is_empty() || rows.len() > EACH_UP_TO {
        return None;
    }
    let shown = |(column, name): &(&str, &'static str)| {
        let column_idx = headers.iter().position(|h| h == *column)?;
        // A column without any value is left out.
        rows.iter().any(|row| !row[column_idx].is_empty()).then_some((column_idx, *name))
    };
    let columns: Vec<(usize, &str)> = SHOWN.iter().filter_map(shown).collect();
    let mut table = TextTable::new(columns.iter().map(|(_, name)| *name));
    for row in &rows {
        let cell = |(column_idx, name): &(usize, &str)| match (*name, row[*column_idx].parse::<f64>()) {
            ("start" | "time" | "iteration", Ok(ns)) => table::time((ns * 1e3) as u64),
            ("slowdown", Ok(factor)) => table::number(factor),
            _ => row[*column_idx].to_string(),
        };
        table.row(columns.iter().map(cell).collect());
    }
    Some(table.lines())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_is_not_shown() {
        let text = "exp_id,job,gpu_list,start_ns,makespan_ns,iteration_time_ns,slowdown,shares_with\n\
                    0,a,0-3,0,1500,,1.25,b:2\n0,b,4-7,20000,2500.5,,,a:2\n";
        let lines = table(text.as_bytes()).unwrap();
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>().join(" "),
            "exp job GPUs start time slowdown shares links with"
        );
        assert!(
            lines[1].contains("1.500 us") && lines[1].contains("1.25") && lines[1].ends_with("b:2"),
            "{}",
            lines[1]
        );
        assert_eq!(table("exp_id,job\n".as_bytes()), None);
    }
}
