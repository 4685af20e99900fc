//! Tables of the pages render: a header, a rule as wide as it, and rows as wide as both.

use crate::pages::{pages, unfenced};

/// How many cells a line of a table has. A bar after a backslash is text.
fn cells(line: &str) -> usize {
    line.replace(r"\|", "").matches('|').count().saturating_sub(1)
}

/// Whether the line is what stands below a header: dashes in every cell.
fn is_rule(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// The tables of a page: lines that follow each other and begin with a bar, with their numbers.
fn tables(text: &str) -> Vec<Vec<(usize, &str)>> {
    let mut found: Vec<Vec<(usize, &str)>> = Vec::new();
    let mut previous = 0;
    for (number, line) in unfenced(text).into_iter().filter(|(_, line)| line.trim_start().starts_with('|')) {
        match found.last_mut() {
            Some(table) if number == previous + 1 => table.push((number, line.trim())),
            _ => found.push(vec![(number, line.trim())]),
        }
        previous = number;
    }
    found
}

/// What is wrong with a table, with the line's number.
fn faults(table: &[(usize, &str)]) -> Vec<(usize, String)> {
    let (first, header) = table[0];
    if !table.get(1).is_some_and(|(_, line)| is_rule(line)) {
        return vec![(first, "a table without a rule below its header: is there a blank line above?".into())];
    }
    let width = cells(header);
    let wrong = table.iter().filter(|(_, line)| cells(line) != width || !line.ends_with('|'));
    wrong.map(|(number, line)| (*number, format!("{} cells below a header of {width}", cells(line)))).collect()
}

#[test]
fn tables_are_whole() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (name, text) in pages() {
        for table in tables(&text) {
            seen += 1;
            wrong.extend(faults(&table).into_iter().map(|(number, what)| format!("{name}:{number}: {what}")));
        }
    }
    assert!(seen > 100, "{seen} tables");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn broken_tables_are_found() {
    let faulty = |text: &str| tables(text).iter().flat_map(|t| faults(t)).map(|(n, _)| n).collect::<Vec<_>>();
    assert_eq!(faulty("| a | b |\n|---|---|\n| `1\\|2` | 3 |\n"), [0; 0]);
    assert_eq!(faulty("| a | b |\n|---|---|\n| 1 | 2 |\n\n| 3 | 4 |\n"), [5]);
    assert_eq!(faulty("| a | b |\n|---|\n| 1 | 2 | 3 |\n"), [2, 3]);
    assert_eq!(faulty("```\n| a | b |\n```\n"), [0; 0]);
}
