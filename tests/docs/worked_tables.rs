//! Tables of worked examples are run: each cell is the mean over the rows of results that its line names.
//!
//! `HYPERFOLD_WRITE_DOCS=1 cargo test --test docs worked_tables` writes rows that differ anew.

use std::fs;

use crate::pages::root;
use crate::support::program::Folder;
use crate::worked_examples::{in_repository, rewrite, rewrites, run};

/// A cell of every row: a column of results, what its unit is in that of the column, and an axis value that it is of besides the row's.
type Figure = (&'static str, f64, Option<(&'static str, &'static str)>);

/// A table of a page, and what its cells are.
struct Table {
    page: &'static str,
    /// How its header begins.
    header: &'static str,
    command: &'static str,
    /// The file below the folder of results.
    file: &'static str,
    /// Columns whose values the first cells are.
    keys: &'static [&'static str],
    /// Words of these cells that stand for values.
    words: &'static [(&'static str, &'static str)],
    figures: &'static [Figure],
}

const fn plain(column: &'static str) -> Figure {
    (column, 1.0, None)
}

const fn hours(column: &'static str) -> Figure {
    (column, 3600.0, None)
}

const CLUSTERS: &str = "docs/how-to/simulate-a-cluster.md";
const WRITES: &str = "checkpoint.writes_share";

const TABLES: &[Table] = &[
    Table {
        page: CLUSTERS,
        header: "| `drain_wait_h` |",
        command: "run experiments/studies/maintenance.toml --out out/t",
        file: "results.csv",
        keys: &["failures.drain_wait_h", "scheduler.policy"],
        words: &[],
        figures: &[plain("goodput"), hours("waiting_mean_s"), plain("preemptions")],
    },
    Table {
        page: CLUSTERS,
        header: "| `jobs.min_share` |",
        command: "run experiments/studies/elastic-jobs.toml --out out/t",
        file: "results.csv",
        keys: &["jobs.min_share", "jobs.grow"],
        words: &[],
        figures: &[plain("goodput"), hours("waiting_mean_s"), hours("turnaround_mean_s")],
    },
    Table {
        page: CLUSTERS,
        header: "| `checkpoint.interval_s` |",
        command: "run experiments/studies/checkpoint-interval.toml --out out/t",
        file: "results.csv",
        keys: &["checkpoint.interval_s"],
        words: &[],
        figures: &[plain("goodput"), plain("checkpoint_share"), plain("rollback_share")],
    },
    Table {
        page: CLUSTERS,
        header: "| `storage_gbps` |",
        command: "run experiments/studies/checkpoint-storage.toml --out out/t",
        file: "results.csv",
        keys: &["checkpoint.storage_gbps", "jobs.load"],
        words: &[("all at once", "0"), ("one by one", "0.9")],
        figures: &[
            ("checkpoint_share", 1.0, Some((WRITES, "nothing"))),
            ("checkpoint_share", 1.0, Some((WRITES, "storage"))),
            ("checkpoint_share", 1.0, Some((WRITES, "fabric"))),
        ],
    },
    Table {
        page: "docs/how-to/failing-links.md",
        header: "| `routing.policy` | `topology.outages` |",
        command: "run experiments/studies/slow-links.toml --out out/t",
        file: "results.csv",
        keys: &["routing.policy", "topology.outages"],
        words: &[("nothing", "")],
        figures: &[
            ("fct_max_ns", 1e3, Some(("transport.cc", "dcqcn"))),
            ("fct_max_ns", 1e3, Some(("transport.cc", "swift"))),
        ],
    },
    Table {
        page: "docs/how-to/several-jobs.md",
        header: "| `link` | `job` |",
        command: "run experiments/studies/two-jobs.toml --out out/t --limit 1 --set output.shared_links=true",
        file: "shared_links.csv",
        keys: &["link", "job"],
        words: &[],
        figures: &[plain("job_bytes"), plain("other_bytes"), plain("shared_with")],
    },
];

/// Whether a cell of a page means the value of a column.
fn is_value(cell: &str, value: &str, words: &[(&str, &str)]) -> bool {
    let cell = words.iter().find(|(word, _)| *word == cell).map_or(cell, |(_, value)| value);
    let number = |text: &str| text.parse::<f64>().ok();
    cell == value || number(cell).is_some_and(|n| number(value) == Some(n))
}

/// The cell as results have it: numbers with as many digits and the unit that the page has, words as they are.
fn expected(cell: &str, values: &[&str], scale: f64) -> String {
    let numbers: Vec<f64> = values.iter().filter_map(|v| v.parse().ok()).collect();
    if numbers.len() < values.len() {
        return format!("`{}`", values[0]);
    }
    let (number, unit) = cell.split_once(' ').map_or((cell, String::new()), |(n, unit)| (n, format!(" {unit}")));
    let decimals = number.split_once('.').map_or(0, |(_, rest)| rest.len());
    format!("{:.decimals$}{unit}", numbers.iter().sum::<f64>() / numbers.len() as f64 / scale)
}

/// Rows of the page that differ from the results, each with the row that would be right.
fn differences(table: &Table, folder: &Folder) -> Vec<(String, String)> {
    let page = fs::read_to_string(root().join(table.page)).unwrap();
    let (_, rows) = page.split_once(table.header).unwrap_or_else(|| panic!("{}: no {}", table.page, table.header));
    let column = |name: &str| folder.column(&format!("out/t/{}", table.file), name);
    let mut seen = 0;
    let mut wrong = Vec::new();
    for row in rows.lines().skip(2).take_while(|line| line.starts_with('|')) {
        seen += 1;
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), table.keys.len() + table.figures.len(), "{}: {row}", table.page);
        let (names, shown) = cells.split_at(table.keys.len());
        let mut right: Vec<String> = names.iter().map(ToString::to_string).collect();
        for (cell, (figure, scale, more)) in shown.iter().zip(table.figures) {
            let values = column(figure);
            let mut chosen: Vec<usize> = (0..values.len()).collect();
            let named = table.keys.iter().copied().zip(names.iter().map(|n| n.trim_matches('`')));
            for (key, name) in named.chain(*more) {
                let of_key = column(key);
                chosen.retain(|i| is_value(name, &of_key[*i], table.words));
            }
            assert!(!chosen.is_empty(), "{}: no result is of this row: {row}", table.page);
            let chosen: Vec<&str> = chosen.iter().map(|i| values[*i].as_str()).collect();
            right.push(expected(cell, &chosen, *scale));
        }
        let right = format!("| {} |", right.join(" | "));
        if right != row {
            wrong.push((row.to_string(), right));
        }
    }
    assert!(seen > 2, "{}: the table below {} has {seen} rows", table.page, table.header);
    wrong
}

#[test]
fn tables_of_examples_are_what_their_sweeps_give() {
    let mut wrong = Vec::new();
    for table in TABLES {
        let folder = in_repository();
        run(&folder, table.command);
        for (row, right) in differences(table, &folder) {
            if rewrites() {
                rewrite(table.page, &row, &right);
            } else {
                wrong.push(format!("{}: {row}\n  by its sweep this would be right: {right}", table.page));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn cells_keep_their_digits_and_units() {
    assert_eq!(expected("20.7 h", &["72000", "77040"], 3600.0), "20.7 h");
    assert_eq!(expected("0.5", &["1", "2"], 1.0), "1.5");
    assert_eq!(expected("`a b`", &["a c"], 1.0), "`a c`");
    assert!(is_value("24", "24.0", &[]) && is_value("late", "0.9", &[("late", "0.9")]) && !is_value("a", "b", &[]));
}
