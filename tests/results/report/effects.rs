//! An axis' effect is one number: `compare` tells what the page shows.

use std::collections::BTreeMap;

use hyperfold_report::page;
use serde_json::Value;

use super::files::data;
use super::folder::Folder;
use crate::support::program::hyperfold;

type Shown = (u64, f64, Option<(f64, f64)>);

/// By axis and level, as the page has them, of all workloads together.
fn of_page(data: &Value, metric: &str) -> BTreeMap<(String, String), Shown> {
    let at =
        data["metrics"].as_array().unwrap().iter().position(|m| m["name"] == metric).expect("a metric of the page");
    let of = &data["effects"][at];
    let all = if of["all"].is_null() { &of["groups"][0] } else { &of["all"] };
    let mut found = BTreeMap::new();
    for effect in all.as_array().unwrap() {
        let axis = &data["design"]["axes"][effect["axis"].as_u64().unwrap() as usize];
        if axis["question"] == true {
            continue;
        }
        let scale = if effect["ratio"] == true { 100.0 } else { 1.0 };
        for level in effect["levels"].as_array().unwrap() {
            let name = &axis["levels"][level["level"].as_u64().unwrap() as usize];
            let number = |v: &Value| v.as_f64().unwrap() * scale;
            let interval =
                (!level["interval"].is_null()).then(|| (number(&level["interval"][0]), number(&level["interval"][1])));
            let key = (axis["key"].as_str().unwrap().to_string(), name.as_str().unwrap().to_string());
            found.insert(key, (level["n"].as_u64().unwrap(), number(&level["effect"]), interval));
        }
    }
    found
}

/// Effects by axis and level, as `compare` tells them.
fn of_compare(dir: &std::path::Path, metric: &str) -> BTreeMap<(String, String), Shown> {
    let ran = hyperfold(dir, &["compare", ".", "--json", "--metric", metric]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut found = BTreeMap::new();
    for line in ran.stdout.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        if row["kind"] != "axis" {
            continue;
        }
        let number = |what: &str| {
            row.get(format!("{what} %")).or_else(|| row.get(format!("{what} {metric}"))).and_then(Value::as_f64)
        };
        let key = (row["axis"].as_str().unwrap().to_string(), row["value"].as_str().unwrap().to_string());
        found.insert(
            key,
            (
                row["configurations"].as_u64().unwrap(),
                number("effect").expect("an effect"),
                number("low").zip(number("high")),
            ),
        );
    }
    found
}

#[test]
fn compare_tells_the_effects_that_the_page_shows() {
    let patterns = ["ring", "incast"].map(String::from).to_vec();
    // Failures leave holes in the grid, drops are zero, and the eta of a thousand configurations is put in bins.
    for (folder, bars) in [(Folder { replicas: 3, patterns, ..Folder::of(900) }, true), (Folder::of(1000), false)] {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("o");
        folder.write(&dir);
        let page = data(&std::fs::read_to_string(page::write(&dir).unwrap()).unwrap());
        for metric in ["makespan_ns", "ecn_marks", "max_queue_bytes"] {
            let (shown, told) = (of_page(&page, metric), of_compare(&dir, metric));
            assert!(shown.len() > 10 && shown.keys().eq(told.keys()), "{metric}: {:?} {:?}", shown.keys(), told.keys());
            for (level, shown) in &shown {
                let told = &told[level];
                // The page has six digits.
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-5 * a.abs().max(b.abs()) + 1e-9;
                let bars_near = match (shown.2, told.2) {
                    (Some(a), Some(b)) => bars && near(a.0, b.0) && near(a.1, b.1),
                    (a, b) => !bars && a.is_none() && b.is_none(),
                };
                assert!(
                    shown.0 == told.0 && near(shown.1, told.1) && bars_near,
                    "{metric}, {level:?}: {shown:?} {told:?}"
                );
            }
        }
    }
}
