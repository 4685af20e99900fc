//! Worked examples of the pages are run: what a page says that a command prints or writes is what it prints and writes.
//!
//! `HYPERFOLD_WRITE_DOCS=1 cargo test --test docs worked_examples` writes lines and cells that differ anew. Sentences are mended by hand.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::pages::{pages, root};
use crate::support::program::{Folder, Ran, command, hyperfold, seen};

/// Fenced blocks of text that are files, code or diagrams, or whose commands take too long for a test: page, beginning of the block, why.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("docs/how-to/calibrate.md", "workload.op,workload.bytes", "a file"),
    ("docs/how-to/own-scheduler.md", "\"bursts\"", "code"),
    ("docs/how-to/own-scheduler.md", "\"largest\"", "code"),
    ("docs/how-to/own-scheduler.md", "\"last\"", "code"),
    ("docs/how-to/own-scheduler.md", "\"sender\"", "code"),
    ("docs/how-to/own-topology.md", "4 1 3", "a file"),
    ("docs/tutorial.md", "4\n", "a file"),
];

/// Blocks that a test of this folder holds against what is printed: page, beginning of the block.
const RUN: &[(&str, &str)] = &[
    ("README.md", "topology.kind  "),
    ("docs/explanation/folding.md", "0."),
    ("docs/how-to/calibrate.md", "key  "),
    ("docs/how-to/calibrate.md", "includes overlay.toml"),
    ("docs/how-to/fabrics.md", "kind  "),
    ("docs/how-to/fabrics.md", "chips  "),
    ("docs/how-to/flow-mode.md", "  pauses: flow level"),
    ("docs/how-to/fold-explain.md", ""),
    ("docs/how-to/grids.md", "2 rows"),
    ("docs/how-to/own-workload.md", "hyperfold: note: group `0`"),
    ("docs/how-to/serve-a-model.md", "knee: "),
    ("docs/how-to/simulate-a-cluster.md", "best: "),
];

fn text(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"))
}

/// The fenced blocks of text of a page, without the indentation of lists.
fn blocks(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open: Option<usize> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        match open {
            None if bare == "```text" => {
                open = Some(line.len() - bare.len());
                found.push(String::new());
            }
            Some(_) if bare.starts_with("```") => open = None,
            Some(indent) => {
                let block = found.last_mut().expect("a block is open");
                block.push_str(line.get(indent..).unwrap_or_default());
                block.push('\n');
            }
            None => {}
        }
    }
    found
}

/// The block of a page that begins so.
fn block(page: &str, begins: &str) -> String {
    let found = blocks(&text(page)).into_iter().find(|block| block.starts_with(begins));
    found.unwrap_or_else(|| panic!("{page}: no block of text begins with `{begins}`"))
}

/// Whether pages are to be written anew.
pub fn rewrites() -> bool {
    std::env::var_os("HYPERFOLD_WRITE_DOCS").is_some()
}

/// Replaces a text of a page that stands there once.
pub fn rewrite(page: &str, old: &str, new: &str) {
    let path = root().join(page);
    let written = fs::read_to_string(&path).unwrap();
    assert_eq!(written.matches(old).count(), 1, "{page}: `{old}`");
    fs::write(path, written.replace(old, new)).unwrap();
}

/// The printed line that shares the longest beginning with one of a page.
fn most_similar<'a>(line: &str, printed: &'a str) -> &'a str {
    let shared = |other: &str| line.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    printed.lines().max_by_key(|other| shared(other)).unwrap_or_default()
}

/// Holds the block of a page that begins so against what a command printed: every line of it must be there.
pub fn hold_lines(page: &str, begins: &str, printed: &str) {
    let there: BTreeSet<&str> = printed.lines().map(str::trim_end).collect();
    let block = block(page, begins);
    let lines = block.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let wrong: Vec<&str> = lines.filter(|line| !there.contains(line)).collect();
    if rewrites() {
        wrong.iter().for_each(|line| rewrite(page, line, most_similar(line, printed).trim_end()));
        return;
    }
    assert!(wrong.is_empty(), "{page}: not printed:\n{}\nprinted:\n{printed}", wrong.join("\n"));
}

/// Holds sentences against a page. A sentence may be broken over lines there.
fn hold_sentences(page: &str, sentences: &[String]) {
    let one_line = text(page).split_whitespace().collect::<Vec<_>>().join(" ");
    let wrong: Vec<&String> = sentences.iter().filter(|s| !one_line.contains(s.as_str())).collect();
    assert!(wrong.is_empty(), "{page}: by what the commands write, this would be right:\n{wrong:#?}");
}

/// A folder that has the repository's experiments, as the pages' commands expect.
pub fn in_repository() -> Folder {
    let folder = Folder::new(&[]);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    copy_sweeps(&from, &folder.file("experiments"));
    folder
}

fn copy_sweeps(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copy = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_sweeps(&entry.path(), &copy);
        } else {
            fs::copy(entry.path(), copy).unwrap();
        }
    }
}

/// Runs a command of a page, word by word.
pub fn run(folder: &Folder, typed: &str) -> Ran {
    let args: Vec<&str> = typed.split_whitespace().collect();
    let ran = hyperfold(folder.path(), &args);
    assert_eq!(ran.code, 0, "{typed}: {}", ran.stderr);
    ran
}

/// Thousands with commas, as pages have them.
fn count(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap()).collect();
    groups.join(",")
}

/// A figure of a CSV file as pages have it: whole parts with commas.
fn shown(figure: &str) -> String {
    let (whole, rest) = figure.split_once('.').map_or((figure, String::new()), |(w, r)| (w, format!(".{r}")));
    whole.parse().map_or_else(|_| figure.to_string(), |n| format!("{}{rest}", count(n)))
}

#[test]
fn every_block_of_text_is_run_or_says_why_not() {
    let mut wrong = Vec::new();
    for (name, page) in pages() {
        for block in blocks(&page) {
            let run = RUN.iter().filter(|(page, begins)| *page == name && block.starts_with(begins)).count();
            let not = NOT_RUN.iter().filter(|(page, begins, _)| *page == name && block.starts_with(begins)).count();
            if run + not != 1 {
                wrong.push(format!("{name}: neither run nor excused, or both: {}", block.lines().next().unwrap_or("")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rank_that_lacks_a_call_is_told_as_the_page_says() {
    let page = text("docs/how-to/own-workload.md");
    let block = blocks(&page).into_iter().find(|b| b.starts_with("hyperfold: note: group")).expect("it is there");
    let folder = in_repository();
    let dump = folder.text("experiments/flight-recorder/rank1.json");
    let entries: Vec<&str> = dump.lines().filter(|line| !line.contains("\"record_id\": 2")).collect();
    folder.write("experiments/flight-recorder/rank1.json", &entries.join("\n").replace("},\n]", "}\n]"));
    let ran = run(&folder, "workload inspect experiments/flight-recorder");
    assert!(ran.stderr.contains(block.trim()), "{}", ran.stderr);
}

#[test]
fn folding_has_the_figures_that_its_sweep_gives() {
    let page = "docs/explanation/folding.md";
    let folder = in_repository();
    let modes = ["off", "exact", "steady"];
    for mode in modes {
        let typed = "run experiments/studies/folding.toml --jobs 1 --engine cpu --quiet";
        run(&folder, &format!("{typed} --out out/{mode} --set fidelity.fast_forward={mode}"));
    }
    let figure = |mode: &str, file: &str, column: &str| folder.column(&format!("out/{mode}/{file}"), column)[0].clone();
    let mut wrong = Vec::new();
    for (column, file) in [
        ("packet_hops", "results.csv"),
        ("packet_hops_simulated", "stats.csv"),
        ("episodes", "stats.csv"),
        ("episodes_known", "stats.csv"),
        ("steady_skips", "stats.csv"),
        ("iteration_time_ns", "results.csv"),
    ] {
        let [off, exact, steady] = modes.map(|mode| shown(&figure(mode, file, column)));
        let row = format!("| `{column}` | `{file}` | {off} | {exact} | {steady} |");
        let page_text = text(page);
        let there = page_text.lines().find(|line| line.starts_with(&format!("| `{column}` |"))).expect("the row");
        if there != row && rewrites() {
            rewrite(page, there, &row);
        } else if there != row {
            wrong.push(row);
        }
    }
    assert!(wrong.is_empty(), "{page}: these rows would be right:\n{}", wrong.join("\n"));
    assert_eq!(folder.bytes("out/off/flows.csv"), folder.bytes("out/exact/flows.csv"));
    let number = |mode: &str, file: &str, column: &str| figure(mode, file, column).parse::<f64>().unwrap();
    let (episodes, known) = (number("exact", "stats.csv", "episodes"), number("exact", "stats.csv", "episodes_known"));
    let time = |mode| number(mode, "results.csv", "iteration_time_ns");
    let late = (time("steady") / time("exact") - 1.0) * 100.0;
    hold_sentences(
        page,
        &[
            format!("The iteration has {} *episodes*", count(episodes as u64)),
            format!("{} of them are new. The other {} repeat", (episodes - known) as u64, count(known as u64)),
            format!("Here it does so {} times.", number("steady", "stats.csv", "steady_skips") as u64),
            format!("The iteration ends {:.4} % {}.", late.abs(), if late > 0.0 { "later" } else { "earlier" }),
        ],
    );
}

#[test]
fn folding_says_why_skips_end() {
    let page = "docs/explanation/folding.md";
    let folder = in_repository();
    let args = "run experiments/suites/wormhole-thresholds.toml --shard 1/12 --engine cpu --quiet --out out/why";
    let args: Vec<&str> = args.split_whitespace().collect();
    let mut command = command(folder.path(), &args);
    let ran = seen(&args, command.env("RUST_LOG", "hyperfold_fold=debug").output().unwrap());
    let told = |line: &&str| line.contains("was skipped from");
    // The first word is the time since the program began.
    let block = block(page, "0.");
    let (_, line) = block.trim_end().split_once(' ').expect("a line of the log");
    let logged = |l: &str| l.trim_start().split_once(' ').is_some_and(|(_, rest)| rest == line);
    assert!(ran.stderr.lines().any(logged), "{line} is not in the log of {} lines", ran.stderr.lines().count());
    let ends = |why: &str| ran.stderr.lines().filter(told).filter(|line| line.contains(why)).count();
    let (planned, sent) = (ends("the planned length is over"), ends("has sent all its bytes"));
    assert_eq!(folder.column("out/why/stats.csv", "steady_skips"), [(planned + sent).to_string()]);
    hold_sentences(
        page,
        &[format!(
            "Of the {} skips of this experiment (`steady_skips` in `stats.csv`), {planned} end because the planned length is over, and {sent} because a queue pair has sent all its bytes.",
            planned + sent
        )],
    );
}

#[test]
fn fold_explain_prints_what_its_page_has() {
    let folder = in_repository();
    run(&folder, "run experiments/studies/folding.toml --out out/folding --set fidelity.fast_forward=exact");
    let ran = run(&folder, "fold explain out/folding 0");
    hold_lines("docs/how-to/fold-explain.md", "", &ran.stdout);
}

#[test]
fn schedulers_end_with_what_their_page_has() {
    let ran = run(&in_repository(), "run experiments/studies/schedulers.toml --out out/schedulers");
    hold_lines("docs/how-to/simulate-a-cluster.md", "best: ", &ran.stdout);
}

#[test]
fn a_grid_says_which_rows_are_equal() {
    let page = "docs/how-to/grids.md";
    let axes = text(page).split("```toml\n").nth(1).expect("the grid").split("```").next().unwrap().to_string();
    let base = "name = \"grid\"\nbase.cluster.gpus = 64\nbase.workload = { kind = \"traffic\", pattern = \"ring\", stride = 8 }\n";
    let folder = Folder::new(&[("grid.toml", &format!("{base}{axes}"))]);
    let plan = run(&folder, "plan grid.toml");
    let warned = format!("{}\n{}", plan.stdout, plan.stderr);
    let block = block(page, "2 rows");
    assert!(warned.contains(block.trim_end()), "{page}: `{block}` is not printed:\n{warned}");
}

#[test]
#[ignore = "soak: 660 candidates take a minute; scripts/test.sh --soak and CI run it"]
fn soak_a_log_of_nccl_tests_is_fitted_as_its_page_says() {
    let page = "docs/how-to/calibrate.md";
    let folder = in_repository();
    let mut printed = String::new();
    let commands = text(page).replace("\\\n", " ");
    let of_example = ["hyperfold measured nccl-tests ", "hyperfold calibrate measured.csv cluster.toml --fit "];
    for begins in of_example {
        let typed = commands.lines().map(str::trim).find(|line| line.starts_with(begins)).expect(begins);
        printed += &run(&folder, typed.trim_start_matches("hyperfold ")).stdout;
    }
    hold_lines(page, "key  ", &printed);
    folder.write("cluster.toml", &format!("include = [\"overlay.toml\"]\n{}", folder.text("cluster.toml")));
    let check = commands.lines().map(str::trim).find(|line| line.contains(" --check --bound ")).expect("the check");
    hold_lines(page, "includes overlay.toml", &run(&folder, check.trim_start_matches("hyperfold ")).stdout);
}

#[test]
#[ignore = "soak: half a minute of packets; scripts/test.sh --soak and CI run it"]
fn soak_flows_are_as_far_from_packets_as_their_page_says() {
    let folder = in_repository();
    run(&folder, "run experiments/studies/flow-beside-packets.toml --out out/levels");
    hold_lines("docs/how-to/flow-mode.md", "  pauses: flow level", &run(&folder, "compare out/levels").stdout);
}

#[test]
#[ignore = "soak: a thousand requests as packets; scripts/test.sh --soak and CI run it"]
fn soak_serving_ends_with_the_knee_that_its_page_has() {
    let ran = run(&in_repository(), "run experiments/studies/inference-serving.toml --out out/inference-serving");
    hold_lines("docs/how-to/serve-a-model.md", "knee: ", &ran.stdout);
}

/// The code blocks of a page in a language.
fn code(page: &str, language: &str) -> Vec<String> {
    let (page, fence) = (text(page), format!("```{language}\n"));
    let opened = page.split(&fence).skip(1);
    opened.map(|rest| rest.split("```").next().unwrap_or_default().to_string()).collect()
}

#[test]
fn the_tutorial_says_what_its_commands_give() {
    let page = "docs/tutorial.md";
    let sweeps = code(page, "toml");
    let study = sweeps[0].replace("[base.topology]\nkind = \"fat-tree\"\n\n", "").replace("\"first\"", "\"study\"");
    let files = [("first.toml", sweeps[0].clone()), ("study.toml", format!("{study}\n{}", sweeps[1]))];
    let folder = Folder::new(&[("flows.txt", &blocks(&text(page))[0])]);
    files.iter().for_each(|(name, content)| folder.write(name, content));
    run(&folder, "run first.toml --out out/first --quiet");
    let times = folder.column("out/first/flows.csv", "fct_ns");
    let about = |ns: &str| (ns.parse::<f64>().unwrap() / 1e4).round() * 10.0;
    assert!(times[..3].iter().all(|ns| about(ns) == about(&times[0])), "{times:?}");
    run(&folder, "run study.toml --out out/study --quiet");
    let compared = run(&folder, "compare out/study --top 3").stdout;
    let effect = |axis: &str, value: &str| -> f64 {
        let words = compared.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = words.into_iter().find(|words| words.starts_with(&[axis, value]) && words.len() > 6);
        row.unwrap_or_else(|| panic!("no {axis} {value}: {compared}"))[5].parse().unwrap()
    };
    let [rate_100, rate_400] = ["100", "400"].map(|rate| effect("topology.link_gbps", rate));
    let [dcqcn, hpcc] = ["dcqcn", "hpcc"].map(|control| effect("transport.cc", control));
    let kinds = ["fat-tree", "clos", "rail-optimized"].map(|kind| effect("topology.kind", kind));
    assert!(kinds.iter().all(|change| change.abs() < 1.5), "about 1 %: {kinds:?}");
    hold_sentences(
        page,
        &[
            format!(
                "The three into host 8 take about {} us, three times as long as the one alone ({} us)",
                about(&times[0]),
                about(&times[3])
            ),
            format!("100 takes {rate_100:.0} % longer than the average of both, 400 takes {:.0} % less.", -rate_400),
            format!("DCQCN takes {dcqcn:.0} % longer, HPCC {:.0} % less.", -hpcc),
        ],
    );
}

#[test]
fn a_graph_of_two_rings_takes_what_its_page_says() {
    let page = "docs/how-to/own-workload.md";
    let folder = Folder::new(&[("graph.csv", &code(page, "csv")[0]), ("graph.toml", &code(page, "toml")[1])]);
    run(&folder, "run graph.toml --out out/graph --quiet");
    let value = |column: &str| folder.column("out/graph/results.csv", column)[0].clone();
    let [whole, compute, exposed] = ["iteration_time_ns", "compute_ns", "comm_exposed_dp_ns"].map(value);
    hold_sentences(
        page,
        &[format!(
            "`results.csv` then says an `iteration_time_ns` of {whole}, of which {compute} is `compute_ns` and {exposed} is `comm_exposed_dp_ns`."
        )],
    );
}

#[test]
fn a_dragonfly_is_what_its_page_shows() {
    let ran = run(&Folder::new(&[]), "topo show --set topology.kind=dragonfly --set cluster.gpus=1056");
    hold_lines("docs/how-to/fabrics.md", "kind  ", &ran.stdout);
}

#[test]
fn chips_by_rate_are_those_that_their_page_shows() {
    let ran = run(&Folder::new(&[]), "topo show --set topology.switch=by-rate");
    let chips: Vec<&str> = ran.stdout.lines().filter(|line| line.contains(" like ")).collect();
    hold_lines("docs/how-to/fabrics.md", "chips  ", &chips.join("\n"));
}

#[test]
fn blocks_of_lists_lose_their_indentation() {
    let page = "1. a\n\n   ```text\n   one\n     two\n   ```\n\n```toml\nno\n```\n\n```text\nthree\n```\n";
    assert_eq!(blocks(page), ["one\n  two\n", "three\n"]);
    assert_eq!(most_similar("a b 12", "x\na b 13\na\n"), "a b 13");
    assert_eq!((shown("1234567.89"), shown("0"), shown("name")), ("1,234,567.89".into(), "0".into(), "name".into()));
}

#[test]
fn a_queue_over_time_is_as_its_page_says() {
    let page = "docs/how-to/monitor.md";
    let folder = Folder::new(&[("monitor.toml", &code(page, "toml")[0])]);
    let commands = code(page, "sh")[0].clone();
    for typed in commands.lines() {
        // As a shell does: what is in quotes is one word.
        let mut words: Vec<&str> = Vec::new();
        for (k, part) in typed.split('\'').enumerate() {
            if k % 2 == 0 { words.extend(part.split_whitespace()) } else { words.push(part) }
        }
        let ran = hyperfold(folder.path(), &words[1..]);
        assert_eq!(ran.code, 0, "{typed}: {}", ran.stderr);
    }
    assert!(
        folder.text("queue.svg").contains(">queue</text>") && folder.text("rates.svg").contains(">rate (Gb/s)</text>")
    );
    let column = |name: &str| folder.column("out/monitor/series_links.csv", name);
    let (ids, links, pauses) = (column("exp_id"), column("link"), column("pfc_pauses"));
    let number = |text: &String| text.parse::<f64>().unwrap();
    let (times, queues) = (column("time_ns"), column("queue_bytes"));
    let controls = folder.column("out/monitor/results.csv", "transport.cc");
    let mut wrong = Vec::new();
    for (id, control) in controls.iter().enumerate() {
        let is_of = |row: &usize| ids[*row] == id.to_string();
        let bottleneck: Vec<usize> = (0..ids.len()).filter(|row| is_of(row) && links[*row] == "leaf0->host0").collect();
        let largest = bottleneck.iter().map(|row| number(&queues[*row])).fold(0.0, f64::max);
        let peak = bottleneck.iter().position(|row| number(&queues[*row]) == largest).expect("it has rows");
        let empty = bottleneck[peak..].iter().find(|row| queues[**row] == "0").expect("it is empty in the end");
        let us = |row: usize| number(&times[row]) / 1e3;
        let n_pauses: f64 = (0..ids.len()).filter(is_of).map(|row| number(&pauses[row])).sum();
        let row = format!(
            "| {control} | {} | {} | {} | {n_pauses} |",
            count(largest as u64),
            us(bottleneck[peak]),
            us(*empty)
        );
        let page_text = text(page);
        let there = page_text.lines().find(|line| line.starts_with(&format!("| {control} |"))).expect("the row");
        if there != row && rewrites() {
            rewrite(page, there, &row);
        } else if there != row {
            wrong.push(row);
        }
    }
    assert!(wrong.is_empty(), "{page}: these rows would be right:\n{}", wrong.join("\n"));
}

#[test]
fn paused_times_by_what_links_join_are_as_their_page_says() {
    let page = "docs/how-to/monitor.md";
    let folder = Folder::new(&[("monitor.toml", &code(page, "toml")[0])]);
    let mut said = String::new();
    for typed in code(page, "sh")[1].lines() {
        let words: Vec<&str> = typed.split_whitespace().skip(1).chain(["--json"]).collect();
        let ran = hyperfold(folder.path(), &words);
        assert_eq!(ran.code, 0, "{typed}: {}", ran.stderr);
        said = ran.stdout;
    }
    let mut wrong = Vec::new();
    for line in said.lines().filter(|line| line.contains("\"kind\":\"explain_link_kinds\"")) {
        let kind: serde_json::Value = serde_json::from_str(line).unwrap();
        let whole = |column: &str| count(kind[column].as_f64().unwrap().round() as u64);
        let join = kind["links from -> to"].as_str().unwrap();
        let row = format!("| {join} | {} | {} | {} |", whole("links"), whole("pfc_pauses"), whole("pfc_paused_ns"));
        let page_text = text(page);
        let there = page_text.lines().find(|line| line.starts_with(&format!("| {join} |"))).expect("the row");
        if there != row && rewrites() {
            rewrite(page, there, &row);
        } else if there != row {
            wrong.push(row);
        }
    }
    assert!(
        wrong.is_empty() && said.contains("spine->leaf"),
        "{page}: these rows would be right:\n{}",
        wrong.join("\n")
    );
}
