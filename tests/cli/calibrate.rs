//! `hyperfold measured` and `hyperfold calibrate`: from a log of nccl-tests to a sweep that includes what was fitted.

use std::fmt::Write;

use crate::support::program::{Folder, Ran};

/// The rate that synthetic logs are made with; the server's is 100.
const RATE_GBPS: f64 = 71.3;
const SIZES: std::ops::Range<u32> = 12..32;

/// A log of all-reduces as a sweep with other values says they are, off by up to 5 % by a fixed pattern.
fn folder() -> Folder {
    folder_of(RATE_GBPS, |i, _| 1.0 + 0.05 * [1.0, -1.0, 0.3, -0.3, 0.7, -0.7][i % 6])
}

/// A log of all-reduces over links of `rate_gbps`, with each time multiplied by `off(row number, bytes)`.
fn folder_of(rate_gbps: f64, off: impl Fn(usize, u64) -> f64) -> Folder {
    let sizes: Vec<u64> = SIZES.map(|log2| 1 << log2).collect();
    let sweep = format!(
        "name = \"true\"\n[base.cluster]\nserver = \"aws-p4de\"\ngpus = 16\n[base.topology]\nlink_gbps = {rate_gbps}\n\
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
        let us = ns.parse::<f64>().unwrap() / 1e3 * off(i, *bytes);
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
        ("nccl-tests nccl.log --sweep t.toml --server rtx6000d-8nic", "no server is called"),
        ("nccl-tests nccl.log --sweep t.toml --server dgx-h100 --gpus 17", "16 or 24 would be right"),
        ("pytorch nccl.log", "nccl.log:1"),
        ("pytorch nccl.log --rows kernels", "--gpu"),
        ("pytorch nccl.log --gpu h100", "--rows kernels"),
    ] {
        let ran = ran(&folder, &format!("measured {args}"), 2);
        assert!(ran.stderr.contains(part), "{args}: {}", ran.stderr);
    }
}

/// A machine whose large all-reduces take what the sweep says, and whose middle sizes take 1.4 times as long, which no value of a key mends.
fn slow_in_the_middle() -> Folder {
    let folder = folder_of(100.0, |_, bytes| if (1 << 18..1 << 26).contains(&bytes) { 1.4 } else { 1.0 });
    ran(&folder, "measured nccl-tests nccl.log --out m.csv --sweep s.toml --server aws-p4de", 0);
    folder
}

fn fitted(folder: &Folder, more: &str) -> (serde_json::Value, String) {
    let args = "calibrate m.csv s.toml --fit topology.link_gbps=25..100 --folds 0 --restarts 2 --json";
    let ran = ran(folder, &format!("{args}{more}"), 0);
    (serde_json::from_str(&ran.stdout).unwrap(), ran.stderr)
}

#[test]
fn a_fit_that_makes_large_rows_worse_says_so_and_is_not_the_default() {
    let folder = slow_in_the_middle();
    let largest = |fit: &serde_json::Value| {
        let row = fit["rows"].as_array().unwrap().last().unwrap().clone();
        (
            row["error_after"].as_f64().unwrap(),
            row["change"].as_str().unwrap().to_string(),
            row["weight"].as_f64().unwrap(),
        )
    };
    // Rows that count alike: two gigabytes go from 0 to more than 10 %, and that is said.
    let (equal, warned) = fitted(&folder, " --weights equal");
    let (error, change, weight) = largest(&equal);
    assert!(error > 0.1 && change == "worse" && weight == 1.0, "{error} {change} {weight}");
    let names_it = |text: &str| {
        text.contains("rows that count much got worse: ") && text.contains("workload.bytes = 2147483648 from")
    };
    assert!(names_it(&warned) && names_it(equal["warnings"][0].as_str().unwrap()), "{warned}");
    assert_eq!(equal["weights"], "equal");
    let counts = |name: &str| equal["fitted"][name].as_u64().unwrap();
    let of =
        |change: &str| equal["rows"].as_array().unwrap().iter().filter(|row| row["change"] == change).count() as u64;
    assert!((counts("better"), counts("worse")) == (of("better"), of("worse")) && of("better") > 0 && of("worse") > 0);
    // By the root of times that is less than half, and by times and sizes next to nothing.
    let (by_root, _) = fitted(&folder, "");
    let (error_by_root, _, weight) = largest(&by_root);
    assert!(
        error_by_root < error / 2.0 && weight > 3.0 && by_root["weights"] == "root-time",
        "{error_by_root} {weight}"
    );
    for by in ["time", "size"] {
        let (fit, _) = fitted(&folder, &format!(" --weights {by}"));
        let (error, _, weight) = largest(&fit);
        assert!(error.abs() < 0.02 && weight > 5.0 && fit["weights"] == by, "{by}: {error} {weight}");
    }
    // The table has both columns, and the overlay what it was weighted by.
    let args = "calibrate m.csv s.toml --fit topology.link_gbps=25..100 --folds 0 --restarts 1 --weights equal --out overlay.toml";
    let ran = ran(&folder, args, 0);
    assert!(ran.stdout.contains("better by ") && ran.stdout.contains("worse by "), "{}", ran.stdout);
    let overlay: toml::Table = folder.text("overlay.toml").parse().unwrap();
    assert_eq!(overlay["calibration"]["weights"].as_str(), Some("equal"));
    assert!(overlay["calibration"]["warnings"][0].as_str().is_some_and(names_it));
}

#[test]
fn a_files_own_weights_come_first_and_sizes_are_needed_for_theirs() {
    let folder = slow_in_the_middle();
    let rows = folder.text("m.csv");
    let weighted = rows.replace("value,unit", "value,weight,unit").replace(",us,", ",1,us,");
    assert_ne!(rows, weighted);
    folder.write("m.csv", &weighted);
    assert_eq!(fitted(&folder, "").0["weights"], "own");
    folder.write("m.csv", &rows);
    let why = ran(&folder, "calibrate m.csv s.toml --fit topology.link_gbps --weights own", 2).stderr;
    assert!(why.contains("--weights own: the measured file has no column `weight` or `error`"), "{why}");
    folder.write("t.toml", "name = \"t\"\n[base]\ncluster = { server = \"aws-p4de\", gpus = 16 }\nworkload = { kind = \"model\", model = \"gpt2\", dp = 16, analytic = \"all\" }\n");
    folder.write("t.csv", "experiment,value,unit\n0,80,ms\n");
    let why = ran(&folder, "calibrate t.csv t.toml --fit workload.compute_scale --weights size", 2).stderr;
    assert!(why.contains("--weights size: experiment 0 has no workload.bytes"), "{why}");
}

#[test]
fn no_effect_is_said_of_keys_alone_that_have_none_anywhere() {
    let folder = folder();
    ran(&folder, "measured nccl-tests nccl.log --out m.csv --sweep s.toml --server aws-p4de", 0);
    // NVLink is faster than the network by far, so that its rate decides nothing until it is far lower. Closed forms have no rendezvous.
    let fit = "calibrate m.csv s.toml --fit topology.link_gbps --fit cluster.nvlink_gbps=10..4800 --fit workload.rendezvous_ns --folds 0 --restarts 1 --json --out o.toml";
    let fit: serde_json::Value = serde_json::from_str(&ran(&folder, fit, 0).stdout).unwrap();
    let of = |key: &str| fit["parameters"].as_array().unwrap().iter().find(|p| p["key"] == key).unwrap().clone();
    let (nvlink, rendezvous) = (of("cluster.nvlink_gbps"), of("workload.rendezvous_ns"));
    assert_eq!((rendezvous["has_effect"].as_bool(), nvlink["has_effect"].as_bool()), (Some(false), Some(true)));
    assert!(rendezvous["note"].as_str().unwrap().starts_with("no effect on any measured row"), "{rendezvous}");
    assert!(nvlink["note"].as_str().unwrap().starts_with("rows depend on it, but not near this value"), "{nvlink}");
    assert_eq!(nvlink["value"], nvlink["before"], "what the sweep has is as good as anything near it");
    let overlay = folder.text("o.toml");
    assert!(
        overlay.contains("\ncluster.nvlink_gbps = ") && !overlay.contains("\nworkload.rendezvous_ns ="),
        "{overlay}"
    );
}

#[test]
fn a_fit_that_runs_out_of_time_keeps_its_best() {
    let sweep = "name = \"p\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\ntopology = { kind = \"clos\", hosts_per_leaf = 4, link_gbps = 100, uplink_gbps = 100 }\n\
        workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 4000000 }\nfidelity.fast_forward = \"off\"\n[axes]\n\"workload.bytes\" = [4000000, 8000000]\n";
    let sweep = sweep.replace(", bytes = 4000000", "");
    // Links of 60 Gb/s.
    let rows = "workload.bytes,value,unit,column\n4000000,560,us,fct_mean_ns\n8000000,1120,us,fct_mean_ns\n";
    let folder = Folder::new(&[("s.toml", &sweep), ("m.csv", rows)]);
    let fit = "calibrate m.csv s.toml --fit topology.link_gbps=20..400 --fit topology.link_delay_ns --restarts 100 --folds 2 --budget 6s --out o.toml --json";
    let started = std::time::Instant::now();
    let ran = ran(&folder, fit, 0);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    let fit: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(fit["stopped"], true, "{fit}");
    let [before, after] = [0, 1].map(|at| fit["fitted"]["mean"][at].as_f64().unwrap());
    assert!(fit["candidates"].as_u64().unwrap() > 0 && after < before, "{fit}");
    assert!(ran.stderr.contains("the fit was stopped: values are the best of the"), "{}", ran.stderr);
    let overlay: toml::Table = folder.text("o.toml").parse().unwrap();
    assert_eq!(overlay["calibration"]["complete"].as_bool(), Some(false));
    let kept = overlay["base"]["topology"]["link_gbps"].as_float().unwrap();
    assert_eq!(Some(kept), fit["parameters"][0]["value"].as_f64());
}

#[test]
fn a_gpu_like_another_has_its_price_and_power() {
    let sweep = |gpu: &str, more: &str| {
        format!(
            "name = \"g\"\n[base]\ncluster = {{ server = \"dgx-h100\", gpus = 8, gpu = {gpu} }}\n\
             workload = {{ kind = \"model\", model = \"gpt2\", dp = 8, analytic = \"all\" }}\n{more}"
        )
    };
    let like = "{ name = \"mine\", like = \"h200\", bf16_tflops = 1200 }";
    let folder = Folder::new(&[
        ("like.toml", &sweep(like, "")),
        ("h200.toml", &sweep("\"h200\"", "")),
        ("own.toml", &sweep(like, "cost = { gpu_usd = 1, gpu_watts = 2 }\n")),
    ]);
    let of = |name: &str| {
        ran(&folder, &format!("run {name}.toml --out {name} --quiet"), 0);
        ["cost_usd", "power_kw"].map(|column| folder.column(&format!("{name}/results.csv"), column)[0].clone())
    };
    let h200 = of("h200");
    assert_eq!(of("like"), h200);
    assert_ne!(of("own"), h200);
}

/// Steps of a small model with four lengths of samples and two micro-batches, as a sweep with other kernels says they are.
fn steps(set: &[&str]) -> (Folder, String) {
    let sweep = "name = \"steps\"\n[base.cluster]\nserver = \"dgx-h100\"\ngpus = 16\n[base.workload]\nkind = \"model\"\nmodel = \"llama3-8b\"\ntp = 4\nanalytic = \"all\"\nrecompute = \"full\"\nglobal_batch = 16\nmemory_check = false\n\
                 [axes]\n\"workload.seq\" = [1024, 4096, 16384, 32768]\n\"workload.microbatch\" = [1, 2]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    let sets: Vec<&str> = set.iter().flat_map(|one| ["--set", one]).collect();
    let ran = folder.run(&[&["run", "s.toml", "--out", "o", "--quiet"], &sets[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut rows = String::from("experiment,value,unit\n");
    for (i, ns) in folder.column("o/results.csv", "iteration_time_ns").iter().enumerate() {
        let _ = writeln!(rows, "{i},{ns},ns");
    }
    (folder, rows)
}

#[test]
fn kernels_are_fitted_by_their_class() {
    let truth = [("workload.gemm_scale", 1.2), ("workload.attention_scale", 0.8), ("workload.memory_bound_scale", 1.5)];
    let set: Vec<String> = truth.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
    let (folder, rows) = steps(&set.iter().map(String::as_str).collect::<Vec<_>>());
    folder.write("m.csv", &rows);
    let keys: String = truth.iter().map(|(key, _)| format!("--fit {key}=0.5..2 ")).collect();
    let fit = format!("calibrate m.csv s.toml {keys}--hold-back 4 --folds 0 --restarts 2 --jobs 2 --out overlay.toml");
    let fitted = ran(&folder, &fit, 0);
    let overlay: toml::Table = folder.text("overlay.toml").parse().unwrap();
    for (key, value) in truth {
        let name = key.strip_prefix("workload.").unwrap();
        let found = overlay["base"]["workload"][name].as_float().unwrap();
        assert!((found / value - 1.0).abs() < 0.05, "{key} {found}\n{}", fitted.stdout);
    }
    let number = |name: &str| overlay["calibration"][name].as_float().unwrap();
    // Rows that were left out of the fit.
    assert!(number("held_back_error") < 0.01 && number("held_back_error_before") > 0.05, "{}", fitted.stdout);
}

#[test]
fn slowdown_beside_communication_is_fitted() {
    let overlapped = ["workload.overlap_grad=true", "cluster.gpu=a800", "workload.slowdown_scale=2.5"];
    let (folder, rows) = steps(&overlapped);
    folder.write("m.csv", &rows);
    let fit = "calibrate m.csv s.toml --set workload.overlap_grad=true --set cluster.gpu=a800 --fit workload.slowdown_scale=0.25..8 --hold-back 4 --folds 0 --restarts 1 --out overlay.toml";
    let fitted = ran(&folder, fit, 0);
    let overlay: toml::Table = folder.text("overlay.toml").parse().unwrap();
    let found = overlay["base"]["workload"]["slowdown_scale"].as_float().unwrap();
    assert!((found / 2.5 - 1.0).abs() < 0.02, "{}", fitted.stdout);
}
