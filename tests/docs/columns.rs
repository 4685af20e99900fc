//! The tables of columns on the page of results are what the columns' declarations say; `HYPERFOLD_WRITE_DOCS=1` writes them anew.
//!
//! A table stands between `<!-- columns: NAME -->` and `<!-- columns end -->`. The page's other lines are written by hand.

use std::collections::BTreeSet;
use std::fs;

use hyperfold_analysis::optimize::{EXP_ID_COLUMN, FATE_COLUMNS, LEVEL_COLUMNS};
use hyperfold_results::csv_rows::COMPANIONS;
use hyperfold_results::record::{CLUSTER, IDENTITY, ITERATIONS, OUTCOME, RecordColumn, SERVING};
use hyperfold_results::{ColumnLine, Outputs};

use crate::pages::{SENTENCE, anchor, root, sentences, words};

const PAGE: &str = "docs/reference/results.md";
const HEADER: &str = "| column | values | content |\n|---|---|---|\n";
/// The line in place of the columns of axes, which each sweep names.
const AXES: &str = "| one column an axis | those of the axis | The experiment's value of the axis. The column is called by its dotted key. |\n";
const BEGIN: &str = "<!-- columns: ";
const END: &str = "<!-- columns end -->";

/// Columns of a file, or of a part of `results.csv`.
struct ColumnTable {
    /// Name in the page.
    name: String,
    /// Columns before those of axes, if the file has any.
    before_axes: Vec<ColumnLine>,
    columns: Vec<ColumnLine>,
}

fn column_tables() -> Vec<ColumnTable> {
    let lines = |columns: &[RecordColumn]| columns.iter().map(|column| column.line).collect();
    let part = |name: &str, columns| ColumnTable {
        name: format!("results.csv{name}"),
        before_axes: Vec::new(),
        columns: lines(columns),
    };
    let outputs = Outputs { jobs_of_flows: true, ..Outputs::default() };
    let mut tables = vec![
        ColumnTable { before_axes: lines(IDENTITY), ..part("", OUTCOME) },
        part(" of clusters over days", CLUSTER),
        part(" of simulated iterations", ITERATIONS),
        part(" of inference", SERVING),
        ColumnTable {
            name: "optimize.csv".into(),
            before_axes: vec![EXP_ID_COLUMN],
            columns: [&LEVEL_COLUMNS[..], &FATE_COLUMNS].concat(),
        },
    ];
    tables.extend(COMPANIONS.iter().map(|file| ColumnTable {
        name: file.name.into(),
        before_axes: Vec::new(),
        columns: (file.columns)(&outputs),
    }));
    tables
}

/// The text of the heading to which a link leads, which is the page's own where it names none.
fn heading(page: &str) -> String {
    let (path, wanted) = page.split_once('#').unwrap_or((page, ""));
    let text = fs::read_to_string(root().join("docs").join(path)).unwrap_or_else(|e| panic!("docs/{path}: {e}"));
    let mut headings = text.lines().filter(|line| line.starts_with('#'));
    let found = headings.find(|line| wanted.is_empty() || anchor(line) == wanted);
    found.unwrap_or_else(|| panic!("docs/{page}: no such heading")).trim_start_matches('#').trim().to_string()
}

/// The column's line of a table.
fn row(column: &ColumnLine) -> String {
    let see = column.see.map(|page| format!(" See [{}](../{page}).", heading(page)));
    let text = column.text.replace('|', r"\|");
    format!("| `{}` | {} | {text}{} |\n", column.name, column.values, see.unwrap_or_default())
}

impl ColumnTable {
    fn text(&self) -> String {
        let rows = |columns: &[ColumnLine]| columns.iter().map(row).collect::<String>();
        let axes = if self.before_axes.is_empty() { "" } else { AXES };
        [HEADER, &rows(&self.before_axes), axes, &rows(&self.columns)].concat()
    }

    fn all(&self) -> impl Iterator<Item = &ColumnLine> {
        self.before_axes.iter().chain(&self.columns)
    }
}

/// The page with its tables written anew, and the names of these tables in its order.
fn filled<'a>(page: &'a str, tables: &[ColumnTable]) -> (String, Vec<&'a str>) {
    let (mut out, mut names) = (String::new(), Vec::new());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->").expect("a marker ends in its line");
        let (_, after) = after.split_once(END).unwrap_or_else(|| panic!("{PAGE}: the table {name} does not end"));
        let table = tables.iter().find(|table| table.name == name);
        let table = table.unwrap_or_else(|| panic!("{PAGE}: there are no columns of {name}")).text();
        out += &format!("{before}{BEGIN}{name} -->\n\n{table}\n{END}");
        names.push(name);
        rest = after;
    }
    (out + rest, names)
}

#[test]
fn the_reference_of_results_is_what_declarations_say() {
    let path = root().join(PAGE);
    let tables = column_tables();
    let page = fs::read_to_string(&path).unwrap();
    let (text, mut in_page) = filled(&page, &tables);
    let mut wanted: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    wanted.sort_unstable();
    in_page.sort_unstable();
    assert_eq!(in_page, wanted, "{PAGE} is to have each table once");
    if std::env::var_os("HYPERFOLD_WRITE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    let differs = written.lines().zip(text.lines()).find(|(old, new)| old != new);
    assert!(
        written == text,
        "{PAGE} is not what the columns' declarations say: run this test with HYPERFOLD_WRITE_DOCS=1. The first line that differs:\n{differs:?}"
    );
}

#[test]
fn tables_by_hand_name_columns_that_there_are() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let tables = column_tables();
    let columns: BTreeSet<&str> = tables.iter().flat_map(ColumnTable::all).map(|column| column.name).collect();
    let rows = page.split("\n| column | content |\n|---|---|\n").skip(1);
    let cells: Vec<&str> =
        rows.flat_map(|rows| rows.lines().map_while(|line| line.strip_prefix("| ")?.split(" |").next())).collect();
    assert!(!cells.is_empty(), "{PAGE} has such a table: columns of the whole network");
    let names = cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let unknown: Vec<&str> = names.filter(|name| !columns.contains(name)).collect();
    assert!(unknown.is_empty(), "{PAGE}: there are no columns {unknown:?}");
}

/// The word that the text of a column has for the unit with which its name ends.
const UNITS: [(&str, &str); 8] = [
    ("_bytes", "ytes"),
    ("_gbps", "Gb/s"),
    ("_rps", "a second"),
    ("_per_s", "second"),
    ("_s", "econds"),
    ("_hours", "ours"),
    ("_usd", "Dollars"),
    ("_kw", "kW"),
];

/// What is wrong with the text of a column.
fn faults(column: &ColumnLine) -> Vec<String> {
    let mut wrong = Vec::new();
    let begins_well = column.text.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || c == '`');
    if !begins_well || !column.text.ends_with('.') {
        wrong.push("not a sentence".into());
    }
    let too_long = |sentence: &String| words(sentence) > SENTENCE;
    wrong.extend(
        sentences(column.text).into_iter().filter(too_long).map(|s| format!("more than {SENTENCE} words: {s}")),
    );
    // The type of a time says its unit.
    let unit = UNITS.iter().find(|(end, _)| format!("_{}", column.name).ends_with(end));
    match (column.values, unit) {
        ("ns", _) if !column.name.ends_with("_ns") => wrong.push("its values are in ns".into()),
        ("s", _) if !column.name.ends_with("_s") => wrong.push("its values are in s".into()),
        ("number" | "whole number", Some((_, word))) if !column.text.contains(word) => {
            wrong.push(format!("the unit is missing: `{word}`"));
        }
        _ => {}
    }
    wrong
}

#[test]
fn texts_of_columns_are_short_sentences_with_units() {
    let tables = column_tables();
    let said = |table: &ColumnTable| -> Vec<String> {
        let of_column = |column: &ColumnLine| {
            let place = format!("{}: {}", table.name, column.name);
            faults(column).into_iter().map(move |wrong| format!("{place}: {wrong}"))
        };
        table.all().flat_map(of_column).collect()
    };
    let wrong: Vec<String> = tables.iter().flat_map(said).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faults_of_texts_are_found() {
    let faults_of = |name, values, text| faults(&ColumnLine { name, values, text, see: None }).len();
    assert_eq!(faults_of("makespan_ns", "ns", "Time to the end."), 0);
    assert_eq!(faults_of("makespan", "ns", "time to the end"), 2);
    assert_eq!(faults_of("rate_gbps", "number", "Rate of a link."), 1);
    assert_eq!(faults_of("bytes", "whole number", "Size of a flow."), 1);
    assert_eq!(faults_of("flows", "whole number", "word ".repeat(31).leak()), 2);
}
