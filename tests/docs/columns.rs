//! The page of results names every declared column where it describes its file, and no column that is not there.

use std::collections::BTreeSet;

use hyperfold_results::Outputs;
use hyperfold_results::csv_rows::COMPANIONS;
use hyperfold_results::record::{CLUSTER, IDENTITY, ITERATIONS, OUTCOME, RecordColumn, SERVING};

use crate::pages::root;

/// Sections of the page that describe columns of `results.csv`.
const RESULTS: [(&str, [&[RecordColumn]; 2]); 3] =
    [("results.csv", [IDENTITY, OUTCOME]), ("Clusters", [CLUSTER, ITERATIONS]), ("Inference", [SERVING, &[]])];

/// A section of the page, and the columns that it is to name.
struct Section<'a> {
    heading: &'a str,
    text: &'a str,
    columns: BTreeSet<&'static str>,
}

fn sections(page: &str) -> Vec<Section<'_>> {
    let parts = page.split("\n## ").skip(1).map(|part| part.split_once('\n').unwrap());
    let mut sections: Vec<Section> =
        parts.map(|(heading, text)| Section { heading, text, columns: BTreeSet::new() }).collect();
    for (heading, columns) in RESULTS {
        let section = sections.iter_mut().find(|s| s.heading == heading).expect("the page has these sections");
        section.columns.extend(columns.into_iter().flatten().map(|column| column.name));
    }
    let outputs = Outputs { jobs_of_flows: true, ..Outputs::default() };
    for file in COMPANIONS {
        // A section is about a file that its heading names, or that a heading or a paragraph in it begins with.
        let begins = [format!("\n`{}`", file.name), format!("\n### {}", file.name)];
        let heading = sections.iter().position(|s| s.heading.split(' ').any(|word| word == file.name));
        let place = heading.or_else(|| sections.iter().position(|s| begins.iter().any(|b| s.text.contains(b))));
        let section = &mut sections[place.unwrap_or_else(|| panic!("no section is about {}", file.name))];
        section.columns.extend((file.columns)(&outputs).into_iter().filter(|name| *name != "exp_id"));
    }
    sections
}

/// The names in code spans of a line; one span may hold several.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).flat_map(|span| span.split(", "))
}

#[test]
fn the_reference_of_results_names_the_columns_that_there_are() {
    let page = std::fs::read_to_string(root().join("docs/reference/results.md")).unwrap();
    let sections = sections(&page);
    let results = &sections.iter().find(|s| s.heading == "results.csv").unwrap().columns;
    let mut wrong = Vec::new();
    for section in &sections {
        let named: BTreeSet<&str> = section.text.lines().flat_map(names).collect();
        // Parts of an iteration of a job are described with those of an experiment.
        let is_elsewhere = |column: &str| section.heading == "jobs.csv" && results.contains(column);
        let missing = section.columns.iter().filter(|column| !named.contains(*column) && !is_elsewhere(column));
        wrong.extend(missing.map(|column| format!("{}: {column} is not described", section.heading)));
        let mut is_of_columns = false;
        for line in section.text.lines() {
            is_of_columns = line.starts_with('|') && (is_of_columns || line == "| column | content |");
            let cell = line.split('|').nth(1).filter(|_| is_of_columns).unwrap_or("");
            let unknown =
                names(cell).filter(|name| *name != "exp_id" && !section.columns.contains(name) && !is_elsewhere(name));
            wrong.extend(unknown.map(|name| format!("{}: there is no column {name}", section.heading)));
        }
    }
    assert!(wrong.is_empty(), "docs/reference/results.md:\n{}", wrong.join("\n"));
}
