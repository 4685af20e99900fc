//! Runs that are cut into shards and merged. The files end as those of the whole.

use crate::small_runs::{SWEEP, folder, run, same_as_whole};
use crate::support::program::Folder;
use hyperfold_results::{JournalReader, Ps, ResultDir, ResultWriter};

/// Three shards, on different numbers of threads.
fn shards(folder: &Folder) {
    for (i, jobs) in ["1", "2", "3"].iter().enumerate() {
        let shard = format!("{i}/3");
        run(folder, &format!("shard{i}"), &["--shard", &shard, "--jobs", jobs, "--quiet"]);
    }
}

#[test]
fn shards_merge_in_any_order_to_the_whole() {
    let folder = folder();
    shards(&folder);
    let orders: [&[&str]; 3] =
        [&["shard0", "shard1", "shard2"], &["shard2", "shard0", "shard1", "shard0"], &["m0", "shard1", "m1", "whole"]];
    for (i, order) in orders.iter().enumerate() {
        let out = format!("m{i}");
        let ran = folder.run(&[&["merge"], *order, &["--out", &out]].concat());
        assert_eq!(ran.code, 1, "some failed, as in the whole: {}", ran.stderr);
        assert!(!ran.stderr.contains("missing"), "{}", ran.stderr);
        same_as_whole(&folder, &out);
        let counts = |m: &str| {
            let m: serde_json::Value = serde_json::from_slice(&folder.bytes(&format!("{m}/manifest.json"))).unwrap();
            ["name", "sweep", "experiments", "selected", "ok", "oom", "failed", "outcome", "engine"]
                .map(|k| m[k].clone())
        };
        assert_eq!(counts(&out), counts("whole"));
        assert_eq!(folder.column(&format!("{out}/stats.csv"), "exp_id"), folder.column("whole/stats.csv", "exp_id"));
    }
    assert!(folder.bytes("m0/stats.csv") == folder.bytes("m1/stats.csv"), "nor does the order decide statistics");
    // What was merged is a run like any other.
    assert!(run(&folder, "m0", &["--resume"]).stderr.contains("all 72 experiments are complete"));
    same_as_whole(&folder, "m0");
}

#[test]
fn what_is_missing_is_named_and_can_be_merged_or_run_later() {
    let folder = folder();
    shards(&folder);
    let ran = folder.run(&["merge", "shard0", "shard2", "--out", "m", "--quiet"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("24 of 72 experiments are missing: 1, 4, 7, 10"), "{}", ran.stderr);
    let rows = folder.column("m/results.csv", "exp_id");
    assert_eq!(rows, (0..72).filter(|i| i % 3 != 1).map(|i| i.to_string()).collect::<Vec<_>>());
    let gate = ["--fail-if", "status == \"nonsense\""];
    let compare = folder.run(&[&["compare", "m"][..], &gate].concat());
    assert!(compare.code == 3 && compare.stdout.contains("24 of 72 experiments have no result"), "{}", compare.stdout);
    assert!(folder.text("m/report.html").contains("24 of 72 experiments have no result"));
    let ran = folder.run(&["merge", "shard1", "--out", "m", "--quiet"]);
    assert!(ran.code == 1 && !ran.stderr.contains("missing"), "{}", ran.stderr);
    same_as_whole(&folder, "m");
    assert_eq!(folder.run(&[&["compare", "m"][..], &gate].concat()).code, 0, "now all are there");
    assert!(folder.text("m/report.html").contains("The run is complete."));

    folder.run(&["merge", "shard1", "--out", "n", "--quiet"]);
    let ran = run(&folder, "n", &["--resume"]);
    assert!(ran.stderr.contains("24 of 72 experiments are complete; running the other 48"), "{}", ran.stderr);
    same_as_whole(&folder, "n");
}

#[test]
fn timelines_of_shards_are_merged_too() {
    let traced = ["--set", "output.trace=true", "--limit", "7", "--quiet"];
    let folder = Folder::new(&[("s.toml", &SWEEP.replace("[20000, 50000]", "[2000]"))]);
    run(&folder, "whole", &traced);
    for shard in ["0/2", "1/2"] {
        run(&folder, &format!("shard{}", &shard[..1]), &[&traced[..], &["--shard", shard]].concat());
    }
    let timelines = |out: &str| -> Vec<(String, Vec<u8>)> {
        let Ok(files) = std::fs::read_dir(folder.file(&format!("{out}/trace"))) else { return Vec::new() };
        let mut all: Vec<_> = files
            .map(|f| f.unwrap())
            .map(|f| (f.file_name().into_string().unwrap(), std::fs::read(f.path()).unwrap()))
            .collect();
        all.sort();
        all
    };
    let whole = timelines("whole");
    assert_eq!((whole.len(), timelines("shard0").len(), timelines("shard1").len()), (7, 4, 3));
    assert_eq!(folder.run(&["merge", "shard1", "--out", "m", "--quiet"]).code, 1, "the other shard is missing");
    assert_eq!(timelines("m").len(), 3);
    // One that was taken away is none, wherever its experiment comes from.
    std::fs::remove_file(folder.file("shard0/trace/2.pftrace")).unwrap();
    assert_eq!(folder.run(&["merge", "shard0", "whole", "--out", "m", "--quiet"]).code, 0);
    assert!(timelines("m") == whole);
}

/// A folder with one experiment of `from`, changed.
fn forged(folder: &Folder, from: &str, out: &str) {
    let reader = JournalReader::open(&folder.file(from)).unwrap();
    let (&exp_id, &part) = reader.parts().iter().next().unwrap();
    let mut finished = reader.read(part).unwrap();
    finished.record.makespan = Some(Ps(1));
    let (mut writer, _) =
        ResultWriter::open(ResultDir::create(&folder.file(out)).unwrap(), reader.run(), vec![exp_id]).unwrap();
    writer.add(finished).unwrap();
    writer.finish().unwrap();
}

#[test]
fn what_does_not_belong_together_is_not_merged() {
    let folder = folder();
    run(&folder, "other", &["--set", "topology.buffer_mib=8", "--quiet"]);
    forged(&folder, "whole", "forged");
    std::fs::create_dir(folder.file("empty")).unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["whole", "other"], "base.topology.buffer_mib: 4.0 there, 8.0 here"),
        (&["forged", "whole"], "experiment 0 differs between forged and whole: makespan_ns is `0.001` and `"),
        (&["whole", "forged"], "experiment 0 differs between whole and forged: makespan_ns is `"),
        (&["whole", "empty"], "empty: there is no run here"),
        (&["whole", "absent"], "absent: there is no run here"),
    ];
    for (dirs, told) in cases {
        let ran = folder.run(&[&["merge"], *dirs, &["--out", "m"]].concat());
        assert_eq!(ran.code, 2, "{dirs:?}");
        assert!(ran.stderr.contains(told), "{dirs:?}: {}", ran.stderr);
        assert!(!folder.file("m").exists(), "{dirs:?} left something");
    }
    for (args, told) in [
        (&["whole", "--out", "whole"][..], "is the folder to merge"),
        (&["whole", "--out", "other"], "holds another run"),
    ] {
        let ran = folder.run(&[&["merge"], args].concat());
        assert!(ran.code == 2 && ran.stderr.contains(told), "{}", ran.stderr);
    }
    // A kill has cut the forged one's only experiment off: then it only lacks it.
    let journal = folder.bytes("forged/journal.bin");
    std::fs::write(folder.file("forged/journal.bin"), &journal[..journal.len() - 1]).unwrap();
    let ran = folder.run(&["merge", "forged", "whole", "--out", "m", "--quiet"]);
    assert!(ran.code == 1 && ran.stderr.contains("ends within a record"), "{}", ran.stderr);
    same_as_whole(&folder, "m");
}

/// Needs an adapter, a real one or one in software; without any it fails, as every GPU test does.
#[test]
fn shards_of_different_engines_merge_to_the_whole() {
    let folder = folder();
    run(&folder, "cpu", &["--shard", "0/2", "--quiet"]);
    let on_gpu = ["--engine", "gpu", "--gpu-dispatch", "per-system"];
    let gpu = folder.run(&[&["run", "s.toml", "--out", "gpu", "--shard", "1/2", "--quiet"][..], &on_gpu].concat());
    assert!(gpu.code < 2, "{}", gpu.stderr);
    folder.run(&["merge", "gpu", "cpu", "--out", "m", "--quiet"]);
    same_as_whole(&folder, "m");
    let manifest: serde_json::Value = serde_json::from_slice(&folder.bytes("m/manifest.json")).unwrap();
    assert_eq!(manifest["engine"], "cpu, gpu");
}
