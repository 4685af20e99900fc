//! The program as a user meets it: help, exit codes, messages.

use std::fs;

use crate::support::program::{Folder, hyperfold};

#[test]
fn help_says_what_there_is() {
    let root = tempfile::tempdir().unwrap();
    let mut shown = String::new();
    for args in [
        &["--help"][..],
        &["run", "--help"],
        &["plan", "--help"],
        &["init", "--help"],
        &["doctor", "--help"],
        &["bench", "--help"],
        &["validate", "--help"],
        &["calibrate", "--help"],
        &["measured", "--help"],
        &["measured", "nccl-tests", "--help"],
        &["measured", "pytorch", "--help"],
        &["merge", "--help"],
        &["report", "--help"],
        &["compare", "--help"],
        &["trace", "--help"],
        &["fold", "explain", "--help"],
        &["fold", "device", "--help"],
        &["topo", "show", "--help"],
        &["topo", "check", "--help"],
        &["topo", "export", "--help"],
        &["topo", "draw", "--help"],
        &["plot", "--help"],
        &["watch", "--help"],
        &["schema", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
    ] {
        let output = hyperfold(root.path(), args);
        assert_eq!(output.code, 0, "{args:?}");
        assert!(output.stderr.is_empty());
        shown += &format!("$ hyperfold {}\n{}\n", args.join(" "), output.stdout);
    }
    insta::assert_snapshot!("help", shown);
}

#[test]
fn usage_errors_are_exit_2_and_name_the_option() {
    let root = tempfile::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage"),
        (&["simulate"], "simulate"),
        (&["run", "s.toml"], "--out"),
        (&["run", "s.toml", "--out", "o", "--engine", "tpu"], "auto, cpu, gpu"),
        (&["run", "s.toml", "--out", "o", "--shard", "4/4"], "0 to N - 1"),
        (&["run", "s.toml", "--out", "o", "--set", "transport.cc"], "KEY=VALUE"),
        (&["run", "s.toml", "--out", "o", "--limit", "0"], "--limit"),
        (&["run", "s.toml", "--out", "o", "--jobs", "0"], "--jobs"),
        (&["run", "s.toml", "--out", "o", "--device", ""], "--device"),
        (&["run", "absent.toml", "--out", "o", "--resume"], "absent.toml"),
        (&["merge", "absent"], "--out"),
        (&["merge", "absent", "--out", "o"], "absent: there is no run here"),
        (&["run", "s.toml", "--out", "o", "--memo-limit-mib", "5"], "--memo <PATH|off>"),
        (&["run", "absent.toml", "--out", "o"], "absent.toml"),
        (&["plan", "absent.toml"], "absent.toml"),
        (&["bench", "no-such-benchmark"], "no-such-benchmark"),
        (
            &["validate", "weather"],
            "no suite `weather`; there are: closed-forms, kernels, layers, collectives, training, memory",
        ),
    ];
    for (args, named) in cases {
        let output = hyperfold(root.path(), args);
        assert_eq!(output.code, 2, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(named), "{args:?}: {}", output.stderr);
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "what is refused leaves nothing behind");
}

#[test]
fn every_suite_that_the_help_names_gives_rows() {
    let root = tempfile::tempdir().unwrap();
    let help = hyperfold(root.path(), &["validate", "--help"]).stdout;
    let (_, rest) = help.split_once("The suite: ").expect("the help lists suites");
    let named = rest.split(" [").next().unwrap().replace(" or ", ", ");
    let refused = hyperfold(root.path(), &["validate", "weather"]).stderr;
    assert!(refused.contains(&format!("there are: {named}")), "{named}\n{refused}");
    for suite in named.split(", ").filter(|suite| *suite != "training") {
        let ran = hyperfold(root.path(), &["validate", suite, "--json", "--closed-forms"]);
        assert!([0, 3].contains(&ran.code) && ran.stdout.lines().count() > 1, "{suite}: {}", ran.stderr);
    }
}

#[test]
fn a_folder_in_use_is_refused_before_anything_is_read() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("o")).unwrap();
    fs::write(root.path().join("o/mine"), "mine").unwrap();
    for out in ["o", "o/mine"] {
        let output = hyperfold(root.path(), &["run", "absent.toml", "--out", out]);
        assert_eq!(output.code, 2);
        assert!(output.stderr.contains(&format!("--out {out}")), "{}", output.stderr);
    }
    assert_eq!(fs::read_dir(root.path().join("o")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(root.path().join("o/mine")).unwrap(), "mine");
}

#[test]
fn init_writes_once() {
    let root = tempfile::tempdir().unwrap();
    let output = hyperfold(root.path(), &["init", "mine.toml"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("hyperfold run mine.toml"));
    let plan = hyperfold(root.path(), &["plan", "mine.toml"]);
    assert_eq!(plan.code, 0, "the template is a valid sweep: {}", plan.stderr);
    assert!(plan.stdout.starts_with("experiments: "), "{}", plan.stdout);
    fs::write(root.path().join("mine.toml"), "edited").unwrap();
    let again = hyperfold(root.path(), &["init", "mine.toml"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("mine.toml: exists already"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(root.path().join("mine.toml")).unwrap(), "edited");
    assert_eq!(hyperfold(root.path(), &["init", "no/such/folder.toml"]).code, 2);
}

const SWEEP: &str = "name = \"s\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n[axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\", \"none\"]\n\
                     \"topology.link_gbps\" = [100, 400]\n";

#[test]
fn plan_says_what_would_run() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    let output = hyperfold(root.path(), &["plan", "s.toml"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let text = output.stdout;
    assert!(text.starts_with("experiments: 6\naxes: transport.cc, topology.link_gbps\nduplicates: 0\n"), "{text}");

    let output =
        hyperfold(root.path(), &["plan", "s.toml", "--json", "--shard", "1/4", "--set", "topology.link_delay_ns=500"]);
    let plan: serde_json::Value = serde_json::from_str(&output.stdout).expect("one JSON object");
    assert_eq!((&plan["experiments"], &plan["selected"]), (&6.into(), &2.into()));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "plan writes nothing");

    for bad in [&["--shard", "7/9"][..], &["--set", "transport.cx=1"], &["--set", "transport.payload_bytes=-1"]] {
        let output = hyperfold(root.path(), &[&["plan", "s.toml"], bad].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{bad:?}");
        assert!(
            output.stderr.contains(bad[1].split('=').next().unwrap()) || output.stderr.contains("--shard"),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn the_version_is_the_crates() {
    let root = tempfile::tempdir().unwrap();
    let output = hyperfold(root.path(), &["--version"]);
    assert_eq!((output.code, output.stdout.trim()), (0, concat!("hyperfold ", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn a_short_sweep_is_sound_and_fits_one_screen() {
    let folder = Folder::new(&[]);
    let wrote = folder.run(&["init", "short.toml", "--short"]);
    assert_eq!(wrote.code, 0, "{}", wrote.stderr);
    assert!(folder.text("short.toml").lines().count() < 30);
    let plan = folder.run(&["plan", "short.toml"]);
    assert!(plan.code == 0 && plan.stdout.contains("cannot run: 0\ncannot fit: 0\n"), "{}{}", plan.stdout, plan.stderr);
}
