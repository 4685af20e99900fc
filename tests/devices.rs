//! `run` on GPUs from the command line: one device and the same one twice give the CPU engine's bytes. Needs an adapter (`scripts/setup-vulkan.sh`).

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Small and in several batches: two devices take a quarter of what is left each time.
const SWEEP: &str = "name = \"two\"\n[base.cluster]\ngpus = 16\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 20000\n[base.output]\nflows = true\n\
                     [axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\"]\n\"topology.link_gbps\" = [100, 200, 300, 400]\n";

fn run(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperfold"));
    command.current_dir(dir).env("RUST_LOG", "hyperfold=debug").args(["run", "s.toml"]).args(args);
    command.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn two_devices_give_the_bytes_of_the_cpu() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    let cpu = run(root.path(), &["--out", "cpu", "--engine", "cpu"]);
    assert_eq!(cpu.status.code(), Some(0), "{}", text(&cpu.stderr));
    let two = run(root.path(), &["--out", "two", "--engine", "gpu", "--device", "0", "--device", "0"]);
    let log = text(&two.stderr);
    assert_eq!(two.status.code(), Some(0), "no adapter? run scripts/setup-vulkan.sh\n{log}");
    for file in ["results.csv", "results.parquet", "flows.csv"] {
        let read = |dir: &str| fs::read(root.path().join(dir).join(file)).unwrap();
        assert!(read("cpu") == read("two"), "{file} differs");
    }
    let manifest: serde_json::Value = serde_json::from_slice(&fs::read(root.path().join("two/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["adapters"].as_array().map(Vec::len), Some(2), "{manifest}");
    // Each has compiled its kernel, so each has simulated.
    assert_eq!(log.matches("kernel fused: compiled").count(), 2, "{log}");
    assert!(log.contains("self-test of ") && log.contains("batch: "), "{log}");
}
