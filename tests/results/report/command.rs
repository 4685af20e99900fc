//! `hyperfold report`, and the report that a run ends with.

use std::fs;
use std::path::Path;

use super::files::data;
use super::folder::Folder;
use crate::support::program::hyperfold;

const SWEEP: &str = r#"
name = "small"
seed = 1
[base.cluster]
gpus = 16
[base.workload]
kind = "traffic"
pattern = "incast"
fan_in = 4
bytes = 20000
[sweep]
replicas = 2
[axes]
"transport.cc" = ["dcqcn", "hpcc"]
"#;

#[test]
fn a_run_ends_with_its_report_and_the_command_writes_the_same() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    let run = hyperfold(
        root.path(),
        &["run", "s.toml", "--out", "o", "--quiet", "--set", "output.flows=true", "--set", "output.links=true"],
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.is_empty(), "quiet is quiet");
    let page = root.path().join("o/report.html");
    let first = fs::read_to_string(&page).expect("the run wrote it");
    let found = data(&first);
    assert_eq!(
        (found["rows"].as_u64(), found["manifest"]["name"].as_str(), found["manifest"]["outcome"].as_str()),
        (Some(4), Some("small"), Some("complete"))
    );
    assert!(found["flows"]["of"].as_object().is_some_and(|f| f.len() == 2), "one replica of each configuration");
    assert!(found["links"]["of"].as_object().is_some_and(|l| l.len() == 2));
    fs::remove_file(&page).unwrap();
    let report = hyperfold(root.path(), &["report", "o"]);
    assert_eq!(report.code, 0, "{}", report.stderr);
    assert_eq!(report.stdout.trim(), format!("report: {}", Path::new("o").join("report.html").display()));
    assert!(fs::read_to_string(&page).unwrap() == first);
    assert!(!root.path().join("o/report.html.part").exists());
}

#[test]
fn what_is_no_result_folder_is_refused() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("empty")).unwrap();
    Folder::of(10).write(&root.path().join("damaged"));
    fs::write(root.path().join("damaged/manifest.json"), "{").unwrap();
    for (dir, named) in [("absent", "absent"), ("empty", "manifest.json"), ("damaged", "manifest.json")] {
        let output = hyperfold(root.path(), &["report", dir]);
        assert_eq!(output.code, 2, "{dir}: {}", output.stderr);
        assert!(output.stderr.contains(named), "{dir}: {}", output.stderr);
        assert!(!root.path().join(dir).join("report.html").exists());
    }
}

#[test]
fn a_report_that_cannot_be_written_is_a_warning_of_the_run() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    assert_eq!(hyperfold(root.path(), &["run", "s.toml", "--out", "o", "--quiet"]).code, 0);
    // A folder stands where the page would.
    fs::remove_file(root.path().join("o/report.html")).unwrap();
    fs::create_dir_all(root.path().join("o/report.html/x")).unwrap();
    let resumed = hyperfold(root.path(), &["run", "s.toml", "--out", "o", "--quiet", "--resume"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("warning: no report was written"), "{}", resumed.stderr);
    let output = hyperfold(root.path(), &["report", "o"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("report.html"), "{}", output.stderr);
}
