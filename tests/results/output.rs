//! Exit codes and files do not depend on who reads along: with standard output closed, or full, a command does what it does otherwise.

use std::fs::File;
use std::io::{Read, pipe};
use std::process::Stdio;

use crate::support::program::{Folder, command};

const SWEEP: &str = "name = \"s\"\n[base.cluster]\ngpus = 16\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 10000\n[axes]\n\
                     \"transport.cc\" = [\"hpcc\", \"dcqcn\"]\n";

/// A pipe that nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = pipe().expect("a pipe can be made");
    drop(reader);
    writer.into()
}

fn code(folder: &Folder, args: &[&str], stdout: Stdio, stderr: Stdio) -> i32 {
    let status = command(folder.path(), args).stdout(stdout).stderr(stderr).status().expect("the program starts");
    status.code().unwrap_or_else(|| panic!("{args:?} was killed: {status}"))
}

#[test]
fn a_closed_output_changes_no_exit_code_and_no_file() {
    let failing = format!("{SWEEP}[base.limits]\npacket_hops = 10\n");
    let folder = Folder::new(&[
        ("s.toml", SWEEP),
        ("failing.toml", &failing),
        ("strict.toml", &SWEEP.replace("bytes = 10000", "bytes = 10000\nload = 0.5")),
    ]);
    assert_eq!(code(&folder, &["run", "s.toml", "--out", "o"], closed(), closed()), 0);
    assert!(folder.file("o/report.html").is_file() && folder.file("o/results.parquet").is_file());
    assert_eq!(code(&folder, &["run", "failing.toml", "--out", "f"], closed(), closed()), 1);
    assert!(folder.file("f/report.html").is_file());
    assert_eq!(code(&folder, &["run", "strict.toml", "--out", "w", "--strict"], closed(), closed()), 3);
    assert_eq!(code(&folder, &["run", "s.toml", "--out", "p", "--shard", "0/2"], closed(), closed()), 0);
    assert_eq!(code(&folder, &["merge", "p", "--out", "m"], closed(), closed()), 1, "a shard is missing");
    assert_eq!(code(&folder, &["compare", "o", "--fail-if", "makespan_ns > 1"], closed(), closed()), 3);
    assert_eq!(code(&folder, &["compare", "o", "--fail-if", "makespan_ns < 1"], closed(), closed()), 0);
    assert_eq!(code(&folder, &["plan", "absent.toml"], closed(), closed()), 2);
    assert_eq!(code(&folder, &["trace", "o", "0"], closed(), closed()), 0);
    assert!(folder.file("o/trace/0.pftrace").is_file());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_behind_the_output_is_a_failure_once_all_is_done() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let full = || File::options().write(true).open("/dev/full").expect("Linux has it");
    let (mut told, stderr) = pipe().expect("a pipe can be made");
    assert_eq!(code(&folder, &["run", "s.toml", "--out", "o"], full().into(), stderr.into()), 1);
    assert!(folder.file("o/report.html").is_file());
    let mut text = String::new();
    told.read_to_string(&mut text).expect("UTF-8");
    assert_eq!(text.matches("cannot write to standard output").count(), 1, "{text}");
    assert_eq!(
        code(&folder, &["compare", "o", "--fail-if", "makespan_ns > 1"], full().into(), Stdio::null()),
        3,
        "the worse is told"
    );
}
