//! `hyperfold measured` and `hyperfold calibrate`: from a log of nccl-tests to a sweep that includes what was fitted.

use std::fmt::Write;

use crate::support::program::{Folder, Ran};

/// The rate that synthetic logs are made with; the server's is 100.
const RATE_GBPS: f64 = 71.3;
const SIZES: std::ops::Range<u32> = 12..32;

/// A log of all-reduces as a sweep with other values says they are, off by up to 5 % by a fixed pattern.
fn folder() -> Folder {
    let sizes: Vec<u64> = SIZES.map(|log2| 1 << log2).collect();
    let sweep = format!(
        "name = \"true\"\n[base.cluster]\nserver = \"aws-p4de\"\ngpus = 16\n[base.topology]\nlink_gbps = {RATE_GBPS}\n\
         [base.workload]\nkind = \"collective\"\nop = \"all-reduce\"\nanalytic = \"all\"\n[axes]\n\"workload.bytes\" = {sizes:?}\n"
    );
    let folder = Folder::new(&[("true.toml", &sweep)]);
    let ran = folder.run(&["run", "true.toml", "--out", "o", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut log = String::from("# Collective test starting: all_reduce_perf\n");
    for rank in 0..16 {
        let _ =
            writeln!(log, "#  Rank {rank:2} Group  0 Pid  {rank} on node-{} device {} [0x10] GPU", rank / 8, rank % 8);
    }
    log += "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
    for (i, (bytes, ns)) in sizes.iter().zip(folder.column("o/results.csv", "iteration_time_ns")).enumerate() {
        let off = 1.0 + 0.05 * [1.0, -1.0, 0.3, -0.3, 0.7, -0.7][i % 6];
        let us = ns.parse::<f64>().unwrap() / 1e3 * off;
        let _ = writeln!(log, "{bytes:12} {:10} float sum -1 {us:.2} 1.0 1.0 0", bytes / 4);
    }
    folder.write("nccl.log", &log);
    folder
}

fn ran(folder: &Folder, args: &str, code: i32) -> Ran {
    let ran = folder.run(&args.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.code, code, "{args}\n{}{}", ran.stdout, ran.stderr);
    ran
}

#[test]
fn a_log_becomes_an_overlay_that_sweeps_include() {
    let folder = folder();
    ran(&folder, "measured nccl-tests nccl.log --out m.csv --sweep s.toml --server aws-p4de", 0);
    assert!(folder.text("m.csv").starts_with("workload.op,workload.bytes,value,unit,source\nall-reduce,4096,"));
    let before = ran(&folder, "calibrate m.csv s.toml --check", 3);
    assert!(before.stdout.contains("BEYOND the bound of 10 %"), "{}", before.stdout);
    let fit = "calibrate m.csv s.toml --fit topology.link_gbps --fit workload.rendezvous_ns --hold-back 4 --folds 3 --restarts 2";
    let one = ran(&folder, &format!("{fit} --jobs 1 --out overlay.toml"), 0);
    let two = ran(&folder, &format!("{fit} --jobs 3 --out other.toml"), 0);
    assert_eq!(one.stdout.replace("overlay.toml", "other.toml"), two.stdout);
    assert_eq!(folder.bytes("overlay.toml"), folder.bytes("other.toml"));
    let overlay: toml::Table = folder.text("overlay.toml").parse().unwrap();
    let fitted = overlay["base"]["topology"]["link_gbps"].as_float().unwrap();
    assert!((fitted / RATE_GBPS - 1.0).abs() < 0.03, "{fitted}");
    // Closed forms have no rendezvous.
    assert!(
        one.stdout.contains("no effect on any measured row")
            && !folder.text("overlay.toml").contains("\nworkload.rendezvous_ns =")
    );
    let found = &overlay["calibration"];
    let number = |name: &str| found[name].as_float().unwrap();
    assert!(number("mean_error") < 0.05 && number("mean_error_before") > 0.1, "{found}");
    assert!(number("held_back_error") < 0.05 && number("held_back_error_before") > 0.1, "{found}");
    assert!(number("cross_validation_error") < 0.06, "{found}");
    let of = &found["parameters"]["topology.link_gbps"];
    let end = |name: &str| of[name].as_float().unwrap();
    assert!(end("low") < fitted && fitted < end("high") && end("high") / end("low") < 1.15, "{of}");
    let sweep = folder.text("s.toml").replace("name = ", "include = [\"overlay.toml\"]\nname = ");
    folder.write("s.toml", &sweep);
    let after = ran(&folder, "calibrate m.csv s.toml --check --bound 5", 0);
    assert!(after.stdout.contains("includes overlay.toml, fitted to a mean error of"), "{}", after.stdout);
    ran(&folder, "run s.toml --out r --quiet", 0);
    assert!(folder.text("r/manifest.json").contains("overlay.toml"));
    let json = ran(&folder, "calibrate m.csv s.toml --check --json", 0);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json["within"].as_bool(), json["rows"].as_array().map(Vec::len)), (Some(true), Some(20)));
}

#[test]
fn what_cannot_be_fitted_is_explained() {
    let folder = folder();
    ran(&folder, "measured nccl-tests nccl.log --out m.csv --sweep s.toml --server aws-p4de", 0);
    for (args, parts) in [
        ("m.csv s.toml", &["--fit"][..]),
        ("m.csv s.toml --fit workload.bytes", &["workload.bytes", "axis"]),
        ("m.csv s.toml --fit topology.link_gps", &["topology.link_gbps"]),
        ("m.csv s.toml --fit transport.cc", &["transport.cc", "no number"]),
        ("m.csv s.toml --fit topology.link_gbps=9..3", &["MIN..MAX"]),
        ("m.csv s.toml --fit topology.link_gbps=-1..3", &["from 0.001 to 8796"]),
        ("m.csv s.toml --fit topology.link_gbps=1..3,cube", &["log or linear"]),
        ("m.csv s.toml --fit topology.switch_latency_ns=0..9,log", &["above 0"]),
        ("m.csv s.toml --fit limits.wall_s", &["MIN..MAX"]),
        ("m.csv s.toml --fit topology.link_gbps --fit topology.link_gbps", &["twice"]),
        ("m.csv s.toml --fit topology.link_gbps --out none/m.toml", &["--out: none is no folder"]),
        ("m.csv s.toml --fit topology.link_gbps --out m.csv", &["m.csv: exists already", "--force"]),
        ("none.csv s.toml --check", &["none.csv"]),
        ("nccl.log s.toml --check", &["nccl.log"]),
        ("m.csv none.toml --check", &["none.toml"]),
    ] {
        let ran = ran(&folder, &format!("calibrate {args}"), 2);
        assert!(parts.iter().all(|p| ran.stderr.contains(p)), "{args}: {}", ran.stderr);
    }
    for (args, part) in [
        ("nccl-tests s.toml", "no table of nccl-tests"),
        ("nccl-tests nccl.log --out m.csv", "--force"),
        ("nccl-tests nccl.log --sweep t.toml --server x", "no server is called"),
        ("pytorch nccl.log", "nccl.log:1"),
        ("pytorch nccl.log --rows kernels", "--gpu"),
        ("pytorch nccl.log --gpu h100", "--rows kernels"),
    ] {
        let ran = ran(&folder, &format!("measured {args}"), 2);
        assert!(ran.stderr.contains(part), "{args}: {}", ran.stderr);
    }
}
