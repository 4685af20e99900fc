//! Clusters that tests run, and rows of their jobs.

use crate::support::program::Folder;

/// Runs a sweep on the CPU, to its end.
pub fn run(folder: &Folder, file: &str, out: &str, more: &[&str]) {
    let done = folder.run(&[&["run", file, "--out", out, "--engine", "cpu", "--quiet"], more].concat());
    assert_eq!(done.code, 0, "{file}: {}", done.stderr);
}

/// A number of the row of a job.
pub fn of_job(folder: &Folder, file: &str, job: &str, column: &str) -> f64 {
    let at = folder.column(file, "job").iter().position(|name| name == job).unwrap();
    folder.column(file, column)[at].parse().unwrap()
}

/// Both are the same but for this share.
pub fn near(a: f64, b: f64, within: f64) {
    assert!((a / b - 1.0).abs() < within, "{a} and {b} differ by {}", a / b - 1.0);
}
