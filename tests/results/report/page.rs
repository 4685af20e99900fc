//! The page in a browser: it draws itself without complaint, sorts, filters, follows the reader's choices, prints, and opens fast.

use std::path::PathBuf;
use std::time::Duration;

use hyperfold_base::printable::printable;
use hyperfold_report::page;
use hyperfold_results::Outputs;
use serde_json::json;
use tempfile::TempDir;

use super::browser::Browser;
use super::files::HOSTILE;
use super::folder::Folder;

/// What 10,000 experiments are to open within on a machine that does nothing else, and what a test allows that shares it with others.
const AIM: Duration = Duration::from_secs(2);
const SLACK: u32 = 4;

fn written(folder: &Folder) -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("o");
    folder.write(&dir);
    let page = page::write(&dir).unwrap();
    (root, page)
}

const ALL: Outputs = Outputs {
    flows: true,
    links: true,
    rtt: false,
    rtt_means: false,
    jobs: false,
    jobs_of_flows: false,
    shared_links: false,
    cluster: false,
    cluster_jobs: false,
    cluster_map: false,
    iterations: false,
    serving: false,
    requests: false,
    series_links: false,
    series_flows: false,
};

/// The texts of a table's column: all digits, where the cell shows fewer.
fn column(table: &str, title: &str) -> String {
    format!(
        "(() => {{ const t = document.getElementById('{table}'); const at = [...t.tHead.rows[0].cells].findIndex((c) => c.dataset.column === '{title}'); \
         return [...t.tBodies[0].rows].map((r) => r.cells[at].title || r.cells[at].textContent); }})()"
    )
}

fn press(table: &str, title: &str) -> String {
    format!("document.querySelector('#{table} th[data-column=\"{title}\"] button').click()")
}

fn choose(id: &str, value: &str) -> String {
    format!(
        "(() => {{ const s = document.getElementById('{id}'); s.value = '{value}'; s.dispatchEvent(new Event('change')); }})()"
    )
}

fn search(table: &str, text: &str) -> String {
    format!(
        "(() => {{ const i = document.getElementById('{table}-search'); i.value = '{text}'; i.dispatchEvent(new Event('input')); }})()"
    )
}

fn numbers(b: &mut Browser, table: &str, title: &str) -> Vec<f64> {
    let shown = b.eval(&column(table, title));
    shown
        .as_array()
        .expect("a column")
        .iter()
        .map(|t| t.as_str().unwrap().parse().unwrap_or_else(|_| panic!("{title}: {t} is no number")))
        .collect()
}

const SECTIONS: [&str; 11] =
    ["best", "experiments", "effects", "pareto", "time", "fct", "network", "congestion", "fold", "failed", "run"];

#[test]
fn all_sections_are_drawn_without_complaint() {
    let mut b = Browser::start();
    let patterns = ["ring", "incast"].map(String::from).to_vec();
    let training = Folder { training: true, replicas: 3, outputs: ALL, patterns, ..Folder::of(1000) };
    let bare = Folder { failures: false, ..Folder::of(10) };
    let one = Folder { failures: false, ..Folder::of(1) };
    for (folder, pictures) in [(&training, 9), (&bare, 2), (&one, 1)] {
        let (_root, page) = written(folder);
        b.open(&page);
        assert_eq!(b.complaints, Vec::<String>::new());
        for section in SECTIONS {
            let length = b.eval(&format!("document.getElementById('{section}').textContent.length")).as_u64().unwrap();
            assert!(length > 40, "{section} of {} experiments is empty", folder.experiments);
        }
        let drawn = b.eval("document.querySelectorAll('svg').length").as_u64().unwrap();
        assert!(drawn >= pictures, "{drawn} pictures of {} experiments", folder.experiments);
        let broken = b.eval("['top', 'main'].map((id) => document.getElementById(id).textContent).join().match(/undefined|NaN|\\[object|Infinity/)");
        assert!(broken.is_null(), "{broken}");
        let pictures = b.eval("[...document.querySelectorAll('svg *')].filter((e) => [...e.attributes].some((a) => /NaN|undefined|Infinity/.test(a.value))).length");
        assert_eq!(pictures, json!(0), "shapes without a place");
        let raw = b.eval("[...document.querySelectorAll('svg title')].map((t) => t.textContent).filter((t) => /by utilisation: 0\\.|\\d{4,}(\\.\\d+)? (ns|bytes)/.test(t))");
        assert_eq!(raw, json!([]), "tooltips have the units of the axes");
    }
}

#[test]
fn every_metric_and_workload_can_be_chosen() {
    let mut b = Browser::start();
    let patterns = ["ring", "incast"].map(String::from).to_vec();
    let (_root, page) = written(&Folder { training: true, replicas: 2, outputs: ALL, patterns, ..Folder::of(1000) });
    b.open(&page);
    let metrics = b.eval("document.getElementById('metric').options.length").as_u64().unwrap();
    assert!(metrics > 10, "{metrics}");
    assert!(b.text("document.getElementById('best').textContent").contains("Best on average over 2 workloads"));
    for group in ["0", "1", "-1"] {
        b.eval(&choose("group", group));
        for metric in 0..metrics {
            b.eval(&choose("metric", &metric.to_string()));
            b.eval(&choose("pareto-b", &metric.to_string()));
        }
    }
    b.eval(&choose("metric", "0"));
    b.eval(&choose("group", "1"));
    let best = b.text("document.getElementById('best').textContent");
    assert!(
        best.contains("Best for incast") && best.contains("What decides it") && best.contains("95 % interval"),
        "{best}"
    );
    assert!(b.eval("document.querySelectorAll('.errorbar').length").as_u64().unwrap() > 5, "replicas make error bars");
    assert_eq!(b.eval(&column("ranking", "workload.pattern")), json!(vec!["incast"; 15]));
    assert_eq!(b.complaints, Vec::<String>::new());
}

/// The page must not pass an excerpt off as the whole: which experiments have details, and where those of the others are.
#[test]
fn it_is_said_whose_flows_and_links_are_shown() {
    let mut b = Browser::start();
    let notes = "[...document.querySelectorAll('.excerpt')].map((e) => e.textContent)";
    let patterns = ["ring", "incast"].map(String::from).to_vec();
    let (_root, page) = written(&Folder { outputs: ALL, patterns, failures: false, ..Folder::of(1000) });
    b.open(&page);
    let said = b.eval(notes);
    let said: Vec<&str> = said.as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    for (note, file) in said.iter().zip(["flows.csv", "links.csv"]) {
        assert!(note.contains("240 of 1,000 configurations: the best 120 of each workload by makespan"), "{note}");
        assert!(note.contains(file) && note.contains("--explain"), "{note}");
    }
    for group in ["0", "1"] {
        b.eval(&choose("group", group));
        assert_eq!(b.eval(&format!("{notes}.length")), json!(2), "whatever is in view");
    }
    let (_root, page) = written(&Folder { outputs: ALL, replicas: 5, ..Folder::of(1000) });
    b.open(&page);
    assert_eq!(b.eval(&format!("{notes}.length")), json!(0), "two hundred configurations are shown in full");
    assert_eq!(b.complaints, Vec::<String>::new());
}

#[test]
fn the_table_sorts_filters_and_turns_pages() {
    let mut b = Browser::start();
    let (_root, page) = written(&Folder::of(1000));
    b.open(&page);
    let ranks = b.eval(&column("ranking", "rank"));
    // Some of these are within 0.01 % of each other.
    assert_eq!(ranks[0], json!("1="), "best first: {ranks}");
    b.eval(&press("ranking", "makespan_ns"));
    let times = numbers(&mut b, "ranking", "makespan_ns");
    assert!(times.len() == 15 && times.is_sorted(), "{times:?}");
    b.eval(&press("ranking", "makespan_ns"));
    let down = numbers(&mut b, "ranking", "makespan_ns");
    assert!(down.is_sorted_by(|a, b| a >= b) && down[0] > times[14], "{down:?}");
    assert_eq!(b.eval(&column("ranking", "makespan_ns"))[0], json!("123456789012345.678"), "to the last digit");
    assert_eq!(b.text("document.querySelector('#ranking [aria-sort]').getAttribute('aria-sort')"), "descending");
    b.eval(&press("ranking", "exp_id"));
    b.eval("[...document.querySelectorAll('#experiments .bar button')].find((b) => b.textContent === 'Next').click()");
    assert_eq!(numbers(&mut b, "ranking", "exp_id"), (15..30).map(f64::from).collect::<Vec<_>>());
    assert_eq!(b.text("document.getElementById('ranking-count').textContent"), "16 to 30 of 1,000");

    b.eval(&search("ranking", "hpcc link_gbps>=200"));
    assert!(b.eval(&column("ranking", "transport.cc")).as_array().unwrap().iter().all(|c| c == "hpcc"));
    assert!(numbers(&mut b, "ranking", "topology.link_gbps").iter().all(|g| *g >= 200.0));
    b.eval(&search("ranking", "status=oom"));
    let oom = b.eval(&column("ranking", "status"));
    assert_eq!(oom, json!(vec!["oom"; (0..1000).filter(|id| id % 97 == 7).count()]));
    b.eval(&search("ranking", ""));
    b.eval(&choose("ranking-filter-kind", "1"));
    assert!(b.eval(&column("ranking", "topology.kind")).as_array().unwrap().iter().all(|c| c == "fat-tree"));
    b.eval(&search("ranking", "no such text"));
    assert_eq!(b.text("document.getElementById('ranking-count').textContent"), "no rows");
    assert_eq!(b.complaints, Vec::<String>::new());
}

#[test]
fn a_filter_that_finds_nothing_says_why() {
    let mut b = Browser::start();
    let (_root, page) = written(&Folder::of(1000));
    b.open(&page);
    for loose in ["link_gbps >= 200", "link_gbps == 400", "kind==clos cc = hpcc"] {
        b.eval(&search("ranking", loose));
        assert!(b.text("document.getElementById('ranking-count').textContent").contains(" of "), "{loose} finds rows");
    }
    assert!(b.eval(&column("ranking", "topology.kind")).as_array().unwrap().iter().all(|c| c == "clos"));
    b.eval(&search("ranking", "link_gbs>=200"));
    assert!(b.text("document.getElementById('ranking-hint').textContent").starts_with("There is no column link_gbs"));
    b.eval(&search("ranking", ""));
    assert_eq!(b.text("document.getElementById('ranking-hint').textContent"), "");
    assert_eq!(b.complaints, Vec::<String>::new());
}

/// What a search left out, and what single experiments and replicas cannot tell.
#[test]
fn doubts_are_told() {
    let mut b = Browser::start();
    let search = "[sweep]\nmethod = \"optimize\"\nobjectives = [\"max_queue_bytes\", \"makespan_ns\"]\n".to_string();
    let (_root, page) = written(&Folder { sweep: search, replicas: 2, failures: false, ..Folder::of(200) });
    b.open(&page);
    let told = b.text("document.getElementById('searched').textContent");
    assert!(told.starts_with("This run is a search by largest queue, makespan: 200 of 200 experiments"), "{told}");
    assert!(b.eval("document.getElementById('searched-front').tBodies[0].rows.length").as_u64().unwrap() > 0);
    assert_eq!(b.text("document.getElementById('metric').selectedOptions[0].textContent"), "largest queue");
    for section in ["fct", "congestion"] {
        assert!(
            b.text(&format!("document.getElementById('{section}').textContent"))
                .contains("the first replica that completed"),
            "{section}"
        );
    }
    assert!(
        b.text("document.getElementById('sure').textContent")
            .contains("how far its times are off hardware is not known")
    );
    let (_root, page) = written(&Folder { failures: false, ..Folder::of(10) });
    b.open(&page);
    assert_eq!(
        b.eval("document.querySelectorAll('.replica').length"),
        json!(0),
        "without replicas there is nothing to say"
    );
    assert_eq!(b.complaints, Vec::<String>::new());
}

#[test]
fn failures_are_told_by_reason() {
    let mut b = Browser::start();
    let (_root, page) = written(&Folder::of(1000));
    b.open(&page);
    let reasons = b.text("document.getElementById('reasons').textContent");
    assert!(reasons.contains("11 experiments out of memory (7, 104, 201, 298, 395, ...): weights 150 GB"), "{reasons}");
    assert!(
        b.text("document.getElementById('counts').textContent")
            .contains("1,000 experiments: 978 ok, 11 out of memory, 11 failed")
    );
    let first = b.text("document.getElementById('lost').textContent");
    assert!(first.starts_with("The most frequent reason: 11 experiments out of memory: weights 150 GB"), "{first}");
    assert!(b.text("document.querySelector('#lost a').getAttribute('href')") == "#failed");
}

#[test]
fn what_is_missing_is_said_with_the_key_that_turns_it_on() {
    let mut b = Browser::start();
    let (_root, page) = written(&Folder::of(10));
    b.open(&page);
    for (section, named) in [
        ("network", "output.links = true"),
        ("fct", "output.flows = true"),
        ("time", "workload.kind = \"model\""),
        ("effects", "sweep.replicas = 3"),
    ] {
        let shown = b.text(&format!("document.getElementById('{section}').textContent"));
        assert!(shown.contains(named), "{section}: {shown}");
    }
}

#[test]
fn hostile_names_do_nothing_in_a_browser() {
    let mut b = Browser::start();
    let all = HOSTILE.map(String::from).to_vec();
    let (_root, page) =
        written(&Folder { name: HOSTILE[0].into(), ccs: all.clone(), patterns: all, outputs: ALL, ..Folder::of(500) });
    b.open(&page);
    assert_eq!(b.complaints, Vec::<String>::new());
    assert_eq!(b.text("document.querySelector('h1').textContent"), HOSTILE[0]);
    assert_eq!(b.eval("document.querySelectorAll('script').length"), json!(2));
    assert_eq!(
        b.eval("[...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => a.name.startsWith('on'))).length"),
        json!(0)
    );
    let filters = b.eval("[...document.getElementById('ranking-filter-cc').options].map((o) => o.textContent)");
    // Characters that turn text around or end lines are shown as their codes.
    assert_eq!(filters.as_array().unwrap()[1..], HOSTILE.map(|h| json!(printable(h))));
}

#[test]
fn it_prints() {
    let mut b = Browser::start();
    let (_root, page) = written(&Folder { training: true, outputs: ALL, ..Folder::of(1000) });
    b.open(&page);
    let pdf = b.print();
    assert!(pdf.starts_with("JVBERi"), "a PDF begins with %PDF");
    assert!(pdf.len() > 100_000, "{} bytes are no ten pages with pictures", pdf.len());
    b.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    assert_eq!(b.text("getComputedStyle(document.querySelector('nav')).display"), "none", "paper has no links");
    assert_eq!(b.text("getComputedStyle(document.querySelector('.bar')).display"), "none");
    assert_eq!(b.complaints, Vec::<String>::new());
}

#[test]
fn it_follows_the_systems_colours() {
    let mut b = Browser::start();
    let (_root, page) = written(&Folder::of(10));
    b.open(&page);
    let mut paper = |scheme: &str| {
        b.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
        );
        b.text("getComputedStyle(document.body).backgroundColor")
    };
    assert_eq!([paper("light"), paper("dark")], ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]);
}

#[test]
fn ten_thousand_experiments_open_fast() {
    let mut b = Browser::start();
    let patterns = ["ring", "incast", "all-to-all"].map(String::from).to_vec();
    for n in [10, 1000, 10_000] {
        let (_root, page) = written(&Folder { training: true, patterns: patterns.clone(), ..Folder::of(n) });
        let bytes = std::fs::metadata(&page).unwrap().len();
        let took = b.open(&page);
        let drawn = b.text("document.documentElement.getAttribute('data-drawn')");
        println!("{n} experiments, {bytes} bytes: open in {took:?}, drawn {drawn} ms after navigation began");
        assert!(took < AIM * SLACK, "{n} experiments took {took:?}");
        let last = b.text("[...document.querySelectorAll('#ranking-count')].map((e) => e.textContent).join()");
        let all = if n == 10 { "" } else { &format!("1 to 15 of {}", if n == 1000 { "1,000" } else { "10,000" }) };
        assert_eq!(last, all, "a short table has one page");
    }
    assert_eq!(b.complaints, Vec::<String>::new());
}

/// What is best is seen before anything is read, and before anything is scrolled.
#[test]
fn the_first_screen_is_a_picture_of_the_ranking_and_the_network() {
    let mut b = Browser::start();
    let (width, height) = (1280, 800);
    let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
    b.call("Emulation.setDeviceMetricsOverride", screen);
    let patterns = ["ring", "incast"].map(String::from).to_vec();
    let replicas = Folder { replicas: 3, outputs: ALL, patterns, failures: false, ..Folder::of(720) };
    let one = Folder { outputs: ALL, failures: false, ..Folder::of(1) };
    let many = Folder { outputs: ALL, ..Folder::of(10_000) };
    for (folder, bars, errors) in [(&replicas, 10, true), (&one, 1, false), (&many, 12, false)] {
        let (_root, page) = written(folder);
        b.open(&page);
        let n = folder.experiments;
        let bottom = b.eval("Math.max(...[...document.querySelectorAll('#first-picture svg')].map((s) => s.getBoundingClientRect().bottom))");
        assert!(bottom.as_f64().unwrap() <= f64::from(height), "{n} experiments: the picture ends at {bottom}");
        assert_eq!(
            b.eval("document.querySelectorAll('#first-picture .ranked').length"),
            json!(bars),
            "{n} experiments"
        );
        let whiskers = b.eval("document.querySelectorAll('#first-picture .ranked-error').length").as_u64().unwrap();
        assert_eq!(whiskers > 0, errors, "{n} experiments: {whiskers} error bars");
        let sketch = b.text("document.querySelectorAll('#first-picture svg')[1].textContent");
        assert!(sketch.contains("100 hosts, the first 96 drawn") && sketch.contains("8 leaves"), "{sketch}");
    }
    assert_eq!(b.complaints, Vec::<String>::new());
}

/// A rule of the style sheet that reaches a row by mistake moves its cells.
#[test]
fn cells_stand_below_the_headings_of_their_columns() {
    let mut b = Browser::start();
    let (_root, page) = written(&Folder { outputs: ALL, ..Folder::of(72) });
    b.open(&page);
    let shifted = "(() => { let cells = 0, shifted = [];
        for (const table of document.querySelectorAll('table')) {
            const heads = [...table.querySelectorAll('thead tr:last-child th')].map((h) => h.getBoundingClientRect().left);
            for (const row of table.querySelectorAll('tbody tr'))
                [...row.cells].forEach((c, i) => {
                    if (c.colSpan > 1 || heads.length !== row.cells.length) return;
                    cells += 1;
                    if (Math.abs(c.getBoundingClientRect().left - heads[i]) > 1) shifted.push(c.textContent);
                });
        }
        return [cells > 100, shifted.length, shifted.slice(0, 3)]; })()";
    assert_eq!(b.eval(shifted), json!([true, 0, []]));
    // A heading names no unit where cells have units of their own: microseconds do not stand below `makespan_ns`.
    let other_units = "(() => { const t = document.getElementById('ranking');
        const heads = [...t.tHead.rows[0].cells], cells = [...t.tBodies[0].rows[0].cells];
        return heads.filter((h, i) => /_(ns|bytes|gbps)$/.test(h.textContent) && / \\S+$/.test(cells[i].textContent)).map((h) => h.textContent); })()";
    assert_eq!(b.eval(other_units), json!([]));
    assert_eq!(b.text("document.querySelector('#ranking th[data-column=makespan_ns]').textContent"), "makespan");
}

#[test]
fn ticks_of_bytes_are_powers_of_two_apart() {
    let mut b = Browser::start();
    let (_root, page) = written(&Folder::of(10));
    b.open(&page);
    let kib = |n: u64| json!(n * 1024);
    assert_eq!(b.eval("ticks(0, 300000, 6, 'bytes')"), json!([0, kib(64), kib(128), kib(192), kib(256)]));
    assert_eq!(b.eval("decades(1000, 70000, 'bytes')"), json!([1, 2, 4, 8, 16, 32, 64].map(kib)));
    assert_eq!(b.eval("ticks(0, 650, 6, 'ns')"), json!([0, 200, 400, 600]));
}
