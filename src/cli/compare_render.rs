//! Renders tables of findings as text, Markdown or JSON.
//!
//! Layer: cli. Text and Markdown have rounded values with units, JSON has exact values. Names from users' files are made harmless: no control characters, and
//! nothing that Markdown or HTML would interpret as markup.

use serde_json::{Map, Number, Value};

use hyperfold_analysis::compare::Section;
use hyperfold_base::printable::{printable, shortened};
use hyperfold_config::spec;
use hyperfold_results::Cell;

use super::table::{self, TextTable};

/// The table without columns that are useless to people: empty columns, and the condition that is already the title.
fn for_people(section: &Section) -> Section {
    let repeats = |c: usize| section.kind == "fail_if" && section.columns[c] == "condition";
    let keep: Vec<usize> = (0..section.columns.len())
        .filter(|&c| !repeats(c) && section.rows.iter().any(|r| r[c] != Cell::Empty))
        .collect();
    let rows = section.rows.iter().map(|r| keep.iter().map(|&c| r[c].clone()).collect()).collect();
    let section =
        Section { columns: keep.iter().map(|&c| section.columns[c].clone()).collect(), rows, ..section.clone() };
    with_ties(section)
}

/// Shows tied ranks as `1=`, in place of a column that says so.
fn with_ties(mut section: Section) -> Section {
    let place = |name: &str| section.columns.iter().position(|c| c == name);
    let (Some(rank), Some(tied)) = (place("rank"), place("tied")) else { return section };
    for row in &mut section.rows {
        let sign = if row[tied] == Cell::Flag(true) { "=" } else { "" };
        row[rank] = Cell::Text(format!("{}{sign}", row[rank]));
        row.remove(tied);
    }
    section.columns.remove(tied);
    section
}

/// Lines for a terminal, with at most `max_rows` rows.
pub fn text(section: &Section, max_rows: usize) -> Vec<String> {
    let section = &for_people(section);
    let mut lines = vec![section.title.clone()];
    if !section.rows.is_empty() {
        let mut table = TextTable::new(headings(section));
        rows(section, max_rows).for_each(|row| table.row(row.iter().map(|c| cell_text(c)).collect()));
        lines.extend(table.lines().into_iter().map(|l| format!("  {l}")));
    }
    lines.extend(hidden(section, max_rows).map(|n| format!("  {n}")));
    lines.extend(section.notes.iter().map(|n| format!("  {n}")));
    lines.push(String::new());
    lines
}

/// Lines of Markdown, with at most `max_rows` rows.
pub fn markdown(section: &Section, max_rows: usize) -> Vec<String> {
    let section = &for_people(section);
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines = vec![format!("### {}", escaped(&section.title)), String::new()];
    if !section.rows.is_empty() {
        lines.push(line(headings(section).iter().map(|c| escaped(c)).collect()));
        let words = |c: usize| section.rows.iter().any(|r| matches!(r[c], Cell::Text(_)));
        lines
            .push(line((0..section.columns.len()).map(|c| if words(c) { ":--" } else { "--:" }.to_string()).collect()));
        lines.extend(rows(section, max_rows).map(|row| line(row.iter().map(|c| escaped(c)).collect())));
        lines.push(String::new());
    }
    for note in hidden(section, max_rows).into_iter().chain(section.notes.iter().cloned()) {
        lines.extend([escaped(&note), String::new()]);
    }
    lines
}

/// One JSON object per row, with the table's kind. Each note is an object, too.
pub fn json(section: &Section) -> Vec<String> {
    let row = |cells: &Vec<Cell>| {
        let mut object = Map::new();
        object.insert("kind".into(), section.kind.into());
        object.extend(section.columns.iter().cloned().zip(cells.iter().map(value)));
        Value::Object(object).to_string()
    };
    let note = |text: &String| serde_json::json!({ "kind": "note", "about": section.kind, "text": text }).to_string();
    section.rows.iter().map(row).chain(section.notes.iter().map(note)).collect()
}

/// A cell as a JSON value.
pub(super) fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Empty => Value::Null,
        Cell::Int(v) => (*v).into(),
        Cell::Unsigned(v) => (*v).into(),
        Cell::Flag(v) => (*v).into(),
        Cell::Text(v) => v.as_str().into(),
        Cell::Ps(_) | Cell::Micro(_) | Cell::Real(_) => {
            cell.number().and_then(Number::from_f64).map_or(Value::Null, Value::Number)
        }
    }
}

fn hidden(section: &Section, max_rows: usize) -> Option<String> {
    let more = section.rows.len().saturating_sub(max_rows);
    (more > 0).then(|| format!("... and {more} more; --json has all"))
}

/// Largest number of characters of a cell in text. Longer values are in the files, and in JSON.
const MAX_CELL_CHARACTERS: usize = 60;

/// A cell as a terminal shows it: at most [`MAX_CELL_CHARACTERS`], dots included.
fn cell_text(cell: &str) -> String {
    let text = printable(cell);
    match text.chars().count() {
        0..=MAX_CELL_CHARACTERS => text.into_owned(),
        _ => shortened(&text, MAX_CELL_CHARACTERS - 3).into_owned(),
    }
}

/// Column names without the unit that their cells show.
fn headings(section: &Section) -> Vec<String> {
    let bare = |name: &String| -> String {
        let words: Vec<&str> = name.split(' ').collect();
        let kept = words
            .iter()
            .enumerate()
            .filter(|(position, w)| *position == 0 || **w != "ns")
            .map(|(_, w)| w.trim_end_matches("_ns").trim_end_matches("_bytes"));
        if unit(name).is_some() { kept.collect::<Vec<_>>().join(" ") } else { name.clone() }
    };
    section.columns.iter().map(bare).collect()
}

/// Unit in which a column's cells are shown, by the column's name. Keys of the sweep file have none, because they are shown as they are written there.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Time,
    Bytes,
    Share,
}

fn unit(name: &str) -> Option<Unit> {
    let word = |end: &str| name.split([' ', '.']).any(|w| w.ends_with(end));
    match () {
        () if spec::find(name).is_some() || name.contains('%') => None,
        () if word("_ns") || name.ends_with(" ns") => Some(Unit::Time),
        () if word("_bytes") || name == "bytes" => Some(Unit::Bytes),
        () if word("utilisation") || word("mfu") => Some(Unit::Share),
        () => None,
    }
}

/// A number with two digits after the point, and at most four in all. Zero has no sign.
fn two(v: f64) -> String {
    let text = format!("{v:.2}");
    match text.as_str() {
        "-0.00" => "0.00".into(),
        _ if v.abs() >= 99.995 => table::number(v),
        _ => text,
    }
}

/// Cells as text for people.
fn rows(section: &Section, max_rows: usize) -> impl Iterator<Item = Vec<String>> {
    section.rows.iter().take(max_rows).map(|row| {
        let name = |c: usize| match section.columns[c].as_str() {
            // In tables that compare experiments, the metric is in the first cell of the row.
            "a" | "b" | "difference" | "value" => row[0].to_string(),
            other => other.to_string(),
        };
        row.iter().enumerate().map(|(c, cell)| shown(&name(c), cell)).collect()
    })
}

/// A value in the unit that its name implies. Keys of the sweep file are shown as they are written there.
pub(super) fn shown(name: &str, cell: &Cell) -> String {
    match (cell, cell.number(), unit(name)) {
        (Cell::Flag(true), ..) if name == "passed" => "yes".into(),
        (Cell::Flag(false), ..) if name == "passed" => "no".into(),
        (_, None, _) => cell.to_string(),
        (_, Some(v), Some(Unit::Time)) => signed(v, |v| table::time((v * 1e3).round() as u64)),
        (_, Some(v), Some(Unit::Bytes)) => signed(v, |v| table::bytes(v.round() as u64)),
        (_, Some(v), Some(Unit::Share)) => format!("{} %", two(v * 100.0)),
        _ if spec::find(name).is_some() => cell.to_string(),
        (_, Some(v), None) if name.contains('%') => two(v),
        (Cell::Real(_) | Cell::Micro(_) | Cell::Ps(_), Some(v), None) => table::number(v),
        (Cell::Unsigned(n), ..) if !is_name(name) => table::count(*n),
        _ => cell.to_string(),
    }
}

/// Whether a column has whole numbers that identify something, and that stay as they are in the files.
fn is_name(column: &str) -> bool {
    let word =
        |w: &str| matches!(w, "exp_id" | "replica" | "seed" | "rank" | "critical_rank" | "src" | "dst" | "flow_id");
    column.split([' ', '.']).any(word)
}

/// A number with its sign, unless all shown digits are zero.
fn signed(v: f64, show: impl Fn(f64) -> String) -> String {
    let text = show(v.abs());
    if v < 0.0 && text.contains(|c: char| ('1'..='9').contains(&c)) { format!("-{text}") } else { text }
}

/// Escapes text for Markdown and HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '\\' | '|' | '`' | '*' | '[' | ']' | '!' | '~' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        let mut s = Section::new(
            "kind",
            "a <b>title</b>",
            ["part", "a", "topology.link_delay_ns", "share %", "queue_bytes", "x"],
        );
        s.rows.push(vec![
            "iteration_time_ns".into(),
            Cell::Real(-1500.0),
            Cell::Int(1000),
            Cell::Real(12.345),
            Cell::Unsigned(2048),
            Cell::Real(0.1),
        ]);
        s.rows.push(vec![
            "a|b\n<i>@all".into(),
            Cell::Empty,
            Cell::Int(500),
            Cell::Empty,
            Cell::Empty,
            Cell::Real(1234567.0),
        ]);
        s.notes.push("see [this](http://x)".into());
        s
    }

    #[test]
    fn people_read_units() {
        let text = text(&section(), 1);
        assert_eq!(text[0], "a <b>title</b>");
        assert_eq!(
            text[2].split_whitespace().collect::<Vec<_>>(),
            ["iteration_time_ns", "-1.500", "us", "1000", "12.35", "2", "KiB", "0.1"]
        );
        assert_eq!(text[3], "  ... and 1 more; --json has all");
    }

    #[test]
    fn a_shared_rank_has_an_equals_sign() {
        let mut s = Section::new("ranking", "t", ["rank", "tied", "exp_id"]);
        for (rank, tied, id) in [(1u64, true, 4u64), (1, true, 2), (3, false, 0)] {
            s.rows.push(vec![rank.into(), tied.into(), id.into()]);
        }
        let cells: Vec<Vec<String>> =
            text(&s, 9).iter().map(|l| l.split_whitespace().map(String::from).collect()).collect();
        assert_eq!(cells[1..5], [["rank", "exp_id"], ["1=", "4"], ["1=", "2"], ["3", "0"]]);
        assert!(json(&s)[0].contains("\"rank\":1") && json(&s)[0].contains("\"tied\":true"), "{}", json(&s)[0]);
    }

    #[test]
    fn a_unit_stands_once_and_a_zero_has_no_sign() {
        let columns = [
            "link",
            "utilisation a",
            "mean fct a ns",
            "makespan_ns min",
            "base.makespan_ns",
            "topology.link_delay_ns",
            "to best %",
            "error",
        ];
        let mut s = Section::new("kind", "t", columns);
        let long = "x".repeat(400);
        let mut row: Vec<Cell> =
            vec!["l".into(), Cell::Real(1.192e-6), Cell::Real(1_500.0), Cell::Real(0.0), Cell::Real(2.0), Cell::Int(5)];
        row.extend([Cell::Real(-0.001), Cell::from(long.as_str())]);
        s.rows.push(row);
        assert_eq!(
            headings(&s),
            [
                "link",
                "utilisation a",
                "mean fct a",
                "makespan min",
                "base.makespan",
                "topology.link_delay_ns",
                "to best %",
                "error"
            ]
        );
        let line = &text(&s, 1)[2];
        assert!(
            line.contains("0.00 %  ") && line.contains("1.500 us") && line.contains("  0.00  ") && !line.contains('-'),
            "{line}"
        );
        assert!(line.chars().count() < 160 && line.ends_with("..."), "{line}");
        assert!(json(&s)[0].contains(&long) && json(&s)[0].contains("makespan_ns min"), "machines read all");
    }

    #[test]
    fn markdown_has_no_markup_but_ours() {
        let lines = markdown(&section(), 9);
        assert_eq!(lines[0], "### a &lt;b&gt;title&lt;/b&gt;");
        assert_eq!(lines[3], "| :-- | --: | --: | --: | --: | --: |");
        assert_eq!(lines[5], "| a\\|b\\\\n&lt;i&gt;&#64;all |  | 500 |  |  | 1,235,000 |");
        assert_eq!(lines[7], "see \\[this\\](http://x)");
    }

    #[test]
    fn machines_read_exact_values() {
        let lines: Vec<Value> = json(&section()).iter().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(
            (lines[0]["kind"].as_str(), lines[0]["a"].as_f64(), lines[1]["a"].is_null()),
            (Some("kind"), Some(-1500.0), true)
        );
        assert_eq!((lines[1]["part"].as_str(), lines[2]["about"].as_str()), (Some("a|b\n<i>@all"), Some("kind")));
    }

    #[test]
    fn four_digits_are_enough() {
        assert_eq!(
            [shown("x", &Cell::Real(123_456.7)), shown("x", &Cell::Real(0.001234)), shown("x %", &Cell::Real(109.701))],
            ["123,500", "0.001234", "109.7"]
        );
        assert_eq!(
            [shown("packet_hops", &Cell::Unsigned(12_345_678)), shown("exp_id", &Cell::Unsigned(12_345))],
            ["12.35 M", "12345"]
        );
        assert_eq!(
            [shown("x_ns", &Cell::Real(-1e-5)), shown("x_ns", &Cell::Real(-1.0)), two(-0.004)],
            ["0.000 ns", "-1.000 ns", "0.00"]
        );
    }
}
