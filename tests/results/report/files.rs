//! The page as a file: its numbers, and what stays text.

use std::path::Path;
use std::process::Command;

use hyperfold_report::page;
use hyperfold_results::Outputs;
use serde_json::Value;

use super::folder::Folder;
use crate::support::program::python;

pub const HOSTILE: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"onload=\"alert(1)",
    "=cmd|' /C calc'!A0",
    "</script><!--",
    "a\u{2028}b\u{2029}",
    "&lt;{{data}}",
    "-1+1",
];

/// The page's data, as a browser would take it out.
pub fn data(page: &str) -> Value {
    let start = page.find("id=\"data\">").expect("the page has its data") + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").expect("the data ends");
    serde_json::from_str(&page[start..end]).expect("the data is JSON")
}

#[test]
fn every_number_is_that_of_the_parquet_file() {
    for (experiments, training, replicas) in [(10, false, 1), (1000, true, 4)] {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("o");
        let outputs = Outputs {
            flows: experiments == 10,
            links: experiments == 10,
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
        Folder { training, replicas, outputs, ..Folder::of(experiments) }.write(&dir);
        let page = page::write(&dir).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results/report/check_parquet.py");
        let output = Command::new(python()).arg(script).arg(page).arg(dir.join("results.parquet")).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}");
        assert!(said.starts_with(&format!("{experiments} rows")), "{said}");
    }
}

#[test]
fn hostile_names_stay_text() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("o");
    let all = HOSTILE.map(String::from).to_vec();
    Folder { name: HOSTILE[0].into(), ccs: all.clone(), patterns: all[..2].to_vec(), ..Folder::of(300) }.write(&dir);
    let page = std::fs::read_to_string(page::write(&dir).unwrap()).unwrap();
    // What the page consists of without its data: five elements' worth of tags that are its own.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("<!--") && !page.contains('\u{2028}') && !page.contains("onload=\""));
    assert!(page.contains("<title>&lt;script&gt;alert(1)&lt;/script&gt;"));
    let data = data(&page);
    let cc = data["columns"].as_array().unwrap().iter().find(|c| c["name"] == "transport.cc").unwrap();
    let shown: Vec<&str> = cc["texts"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
    let codes = |name: &str| name.replace('\u{2028}', "\\u{2028}").replace('\u{2029}', "\\u{2029}");
    assert_eq!(shown, HOSTILE.map(codes), "only what breaks lines is shown by its code");
    let csv = std::fs::read_to_string(dir.join("results.csv")).unwrap();
    assert!(
        csv.contains("'=cmd|") && csv.contains("'-1+1") && !csv.contains(",=cmd"),
        "spreadsheets get an apostrophe"
    );
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("o");
    Folder::of(10).write(&dir);
    let page = std::fs::read_to_string(page::write(&dir).unwrap()).unwrap();
    assert!(page.contains(
        "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\""
    ));
    // The name of SVG's namespace is no address that anything is fetched from.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !addresses.contains("http://")
            && !addresses.contains("https://")
            && !addresses.contains("src=")
            && !addresses.contains("@import")
    );
}

#[test]
fn what_a_link_points_to_is_not_overwritten() {
    let root = tempfile::tempdir().unwrap();
    let (dir, outside) = (root.path().join("o"), root.path().join("outside"));
    Folder::of(10).write(&dir);
    std::fs::write(&outside, "mine").unwrap();
    #[cfg(unix)]
    for name in ["report.html", "report.html.part"] {
        std::os::unix::fs::symlink(&outside, dir.join(name)).unwrap();
    }
    let page = page::write(&dir).unwrap();
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine");
    assert!(std::fs::read_to_string(page).unwrap().starts_with("<!doctype html>"));
}
