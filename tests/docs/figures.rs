//! Figures that stand on two pages are equal: README.md quotes what docs/explanation/fidelity.md has in its tables, the worse rows beside the better.

use std::fs;

use crate::pages::root;

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The cells of each row of a page's tables.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Percents as a range of whole numbers.
fn range(percents: &[f64]) -> String {
    let least = percents.iter().copied().fold(f64::INFINITY, f64::min).round();
    let most = percents.iter().copied().fold(0.0, f64::max).round();
    if least == most { format!("{most} %") } else { format!("{least} to {most} %") }
}

/// Mean errors of fidelity's tables of collectives that have this use and this group.
fn collectives(fidelity: &str, used: Option<&str>, group: &str) -> Vec<f64> {
    let of_group = rows(fidelity).into_iter().filter(|row| row.len() == 13 && row[2] == group);
    let of_use = of_group.filter(|row| used.is_none_or(|used| row[1] == used));
    of_use.map(|row| row[6].trim_end_matches(" %").parse().unwrap()).collect()
}

#[test]
fn the_readme_quotes_the_errors_of_collectives_of_every_kind() {
    let (readme, fidelity) = (page("README.md"), page("docs/explanation/fidelity.md"));
    let kinds = [
        ("packets, fitted", Some("fitted"), "packets, "),
        ("packets, not fitted", Some("checked"), "packets, "),
        ("packets, without its own run", None, "packets, without its run, "),
        ("closed form, not fitted", Some("checked"), "closed form, "),
        ("closed form, without its own run", None, "closed form, without its run, "),
    ];
    for (name, used, group) in kinds {
        let sizes = ["up to 1 MiB", "above 1 MiB"];
        let [small, large] = sizes.map(|size| range(&collectives(&fidelity, used, &format!("{group}{size}"))));
        let line = format!("| {name} | {small} | {large} |");
        assert!(readme.contains(&line), "README.md: by docs/explanation/fidelity.md this row would be right: {line}");
    }
}

#[test]
fn the_readme_quotes_the_errors_of_training() {
    let (readme, fidelity) = (page("README.md"), page("docs/explanation/fidelity.md"));
    let mean = |table: &str| -> f64 {
        let row = rows(&fidelity).into_iter().find(|row| row.len() == 11 && row[0] == table && row[2] != "GiB");
        row.unwrap_or_else(|| panic!("no table {table}"))[5].trim_end_matches(" %").parse().unwrap()
    };
    let [a100, a100_40g, h100] = ["mpt-fsdp-a100", "mpt-fsdp-a100-40g", "mpt-fsdp-h100"].map(mean);
    let fitted = ["megatron-a100-2021", "megatron-a100-2022", "mlperf-gpt3", "megatron-core-h100"].map(mean);
    let quoted = [
        format!("| {:.1} %, {:.1} %; {:.1} %, {:.1} % mean error |", fitted[0], fitted[1], fitted[2], fitted[3]),
        format!(
            "| {}, {}; {}; {}, too fast |",
            range(&[a100, a100_40g]),
            range(&[h100]),
            range(&[mean("torchtitan-llama3")]),
            range(&[mean("nemo-llama-qwen")])
        ),
    ];
    for cells in quoted {
        assert!(readme.contains(&cells), "README.md: by docs/explanation/fidelity.md this would be right: {cells}");
    }
    let (_, larger) = fidelity.split_once("The 100 others are ").expect("fidelity.md tells of larger models");
    let larger = larger.split(" off").next().unwrap();
    assert!(readme.contains(&format!("| Megatron-Bridge's larger models | {larger}, too fast |")), "{larger}");
}

/// The tables that `scripts/figures.py` writes, each with the machine that it was measured on.
#[test]
fn speeds_stand_with_their_machine_and_their_worst() {
    for (name, blocks) in [
        ("README.md", &["speed"][..]),
        ("docs/explanation/performance.md", &["engine", "folding", "variants", "preparing"]),
    ] {
        let text = page(name);
        for block in blocks {
            let begin = format!("<!-- figures: {block} -->");
            let (_, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{name}: no {begin}"));
            let (figures, _) = rest.split_once("<!-- figures end -->").expect("a block of figures ends");
            for part in ["Best and worst of ", " cores. It was ", "best", "worst"] {
                assert!(figures.contains(part), "{name}: {block}: no `{part}`: run scripts/figures.py BINARY --write");
            }
            let measured = rows(figures).len();
            assert!(measured >= 4, "{name}: {block}: {measured} rows");
        }
    }
}
