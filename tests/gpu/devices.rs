//! `run` on GPUs from the command line: one device and the same one twice give the CPU engine's bytes. Needs an adapter (`scripts/setup-vulkan.sh`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::program::{Ran, command, seen};
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::EngineError;
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_engine::gpu::{self, GpuDevice, GpuEngine, Mode, SoftwarePolicy};
use hyperfold_host::{QueuedExperiment, RunEvent, RunOptions, Worker, run_on_devices};

/// Small and in several batches: two devices take a quarter of what is left each time. All have one congestion control, and devices go system by system: each
/// compiles for itself, and software Vulkan takes minutes for a fused kernel.
const SWEEP: &str = "name = \"two\"\n[base.cluster]\ngpus = 16\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n[base.transport]\ncc = \"dcqcn\"\n[base.output]\nflows = true\n\
                     [axes]\n\"workload.bytes\" = [20000, 30000]\n\"topology.link_gbps\" = [100, 200, 300, 400]\n";

fn run(dir: &Path, args: &[&str]) -> Ran {
    let args = [&["run", "s.toml"], args].concat();
    seen(&args, command(dir, &args).env("RUST_LOG", "hyperfold=debug").output().expect("the program starts"))
}

#[test]
fn two_devices_give_the_bytes_of_the_cpu() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    let cpu = run(root.path(), &["--out", "cpu", "--engine", "cpu"]);
    assert_eq!(cpu.code, 0, "{}", cpu.stderr);
    let two = run(
        root.path(),
        &["--out", "two", "--engine", "gpu", "--gpu-dispatch", "per-system", "--device", "0", "--device", "0"],
    );
    let log = two.stderr;
    assert_eq!(two.code, 0, "no adapter? run scripts/setup-vulkan.sh\n{log}");
    for file in ["results.csv", "results.parquet", "flows.csv"] {
        let read = |dir: &str| fs::read(root.path().join(dir).join(file)).unwrap();
        assert!(read("cpu") == read("two"), "{file} differs");
    }
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(root.path().join("two/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["adapters"].as_array().map(Vec::len), Some(2), "{manifest}");
    // Each has compiled a kernel for the first experiments, so each has simulated.
    let compiled = |line: &&str| line.contains("kernel nic_all: compiled") && line.ends_with("with dcqcn");
    assert_eq!(log.lines().filter(compiled).count(), 2, "{log}");
    assert!(log.contains("self-test of ") && log.contains("batch: "), "{log}");
}

/// What runs on a device that goes away midway is simulated elsewhere, and ends the same.
#[test]
fn what_a_lost_device_had_is_simulated_by_the_other() {
    let sweep = sweep::parse(SWEEP, Path::new("s.toml"), &SetOverrides::default()).unwrap();
    let tasks = || {
        sweep
            .experiments
            .iter()
            .map(|e| QueuedExperiment { exp_id: e.exp_id, config: sweep.config(e).unwrap() })
            .collect::<Vec<_>>()
    };
    let open = || {
        gpu::open::open(None, SoftwarePolicy::IfNothingElse).expect("an adapter; scripts/setup-vulkan.sh installs one")
    };
    let devices = [open(), open()];
    let worker = |name: &str, device: &GpuDevice| {
        let mut engine = GpuEngine::on(device).unwrap();
        engine.dispatch_as(Some(Mode::PerSystem));
        Worker { name: name.into(), engine: Box::new(engine), on_pool: false }
    };
    let mut workers = vec![worker("first", &devices[0]), worker("second", &devices[1])];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let options = RunOptions { batch: 1, ..RunOptions::default() };
    let (mut ends, mut lost) = (BTreeMap::new(), Vec::new());
    let mut tell = |news: RunEvent| -> Result<(), EngineError> {
        match news {
            // Before anything has ended: both have work, and kernels to compile.
            RunEvent::Started(_) => devices[0].device.destroy(),
            RunEvent::Ended(e) => assert!(
                ends.insert(e.exp_id, format!("{:?}", e.result)).is_none(),
                "experiment {} ended twice",
                e.exp_id
            ),
            RunEvent::Lost(text) => lost.push(text),
            RunEvent::Progress(_) | RunEvent::Note(_) => {}
        }
        Ok(())
    };
    run_on_devices(tasks().into_iter(), &mut workers, &mut |_| None, &pool, &options, || false, &mut tell).unwrap();
    assert!(lost.len() == 1 && lost[0].starts_with("first is not used any more: "), "{lost:?}");
    let mut want = BTreeMap::new();
    hyperfold_host::run::<EngineError>(
        tasks().into_iter(),
        Box::new(CpuEngine),
        &RunOptions::default(),
        || false,
        &mut |news| {
            if let RunEvent::Ended(e) = news {
                want.insert(e.exp_id, format!("{:?}", e.result));
            }
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(ends, want);
}
