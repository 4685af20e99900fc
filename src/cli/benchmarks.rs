//! The benchmark set, which `hyperfold bench` and `cargo bench` both run.
//!
//! Layer: cli. Each benchmark is a small sweep, so that it measures what users run.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, anyhow};

use hyperfold_columns::{OwnedTables, Tables, status};
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_engine::gpu::{GpuEngine, SoftwarePolicy, open};
use hyperfold_engine::{Engine, cpu, grow, is_final, packet_hops};
use hyperfold_host::prepare;

use super::measurement::{BenchInfo, BenchRow};
use super::tell;
use super::{benchmark_memo, benchmark_workloads};

/// Short flows on 128 hosts, for many experiments at a time.
const BATCH128: &str = r#"
cluster = { gpus = 128 }
topology = { kind = "rail-optimized", pods = 2, spines = 8, link_gbps = 100, uplink_gbps = 100 }
workload = { kind = "traffic", pattern = "ring", stride = 8, bytes = 20000 }
"#;

/// A benchmark: its name, its description, its configuration below `[base]`, and its number of hosts.
struct Case {
    name: &'static str,
    about: &'static str,
    base: &'static str,
    hosts: u64,
    /// Number of experiments side by side. 0: one experiment on one core, run directly by the CPU engine. `gpu` says whether they run on a GPU.
    batch: u32,
    gpu: bool,
}

/// The golden rail-128 case by its parameters: 16 servers with 8 GPUs in 2 pods, one leaf per pod and rail, 8 spines, and a ring in every rail.
const RAIL128: &str = r#"
cluster = { gpus = 128 }
topology = { kind = "rail-optimized", pods = 2, spines = 8, link_gbps = 100, uplink_gbps = 100 }
workload = { kind = "traffic", pattern = "ring", stride = 8, bytes = 16000000 }
"#;

/// 1,024 hosts in a three-tier fat-tree of 16-port switches. Every host sends to another one.
const PERMUTATION1024: &str = r#"
cluster = { gpus = 1024, gpus_per_server = 1, nics_per_server = 1 }
topology = { kind = "fat-tree", k = 16, link_gbps = 100, uplink_gbps = 100 }
workload = { kind = "traffic", pattern = "permutation", bytes = 1000000 }
"#;

/// 32 hosts send to one host through a small buffer, so that there are pauses all the time.
const STORM32: &str = r#"
cluster = { gpus = 33, gpus_per_server = 1, nics_per_server = 1 }
topology = { kind = "clos", tiers = 2, hosts_per_leaf = 33, spines = 1, link_gbps = 100, uplink_gbps = 100, buffer_mib = 4 }
workload = { kind = "traffic", pattern = "incast", fan_in = 32, bytes = 500000 }
"#;

const CASES: &[Case] = &[
    Case {
        name: "rail128-dcqcn",
        about: "128 hosts, rail ring of 16 MB flows, DCQCN, one core",
        base: RAIL128,
        hosts: 128,
        batch: 0,
        gpu: false,
    },
    Case { name: "rail128-hpcc", about: "the same with HPCC", base: RAIL128, hosts: 128, batch: 0, gpu: false },
    Case {
        name: "permutation1024-dcqcn",
        about: "1,024 hosts, random permutation of 1 MB flows, DCQCN, one core",
        base: PERMUTATION1024,
        hosts: 1024,
        batch: 0,
        gpu: false,
    },
    Case {
        name: "permutation1024-hpcc",
        about: "the same with HPCC",
        base: PERMUTATION1024,
        hosts: 1024,
        batch: 0,
        gpu: false,
    },
    Case {
        name: "storm32-none",
        about: "32-to-1 incast without congestion control: PFC storms, one core",
        base: STORM32,
        hosts: 33,
        batch: 0,
        gpu: false,
    },
    batch("batch512-cpu", "512 experiments of 128 hosts with short flows, DCQCN, all threads", 512, false),
    batch("batch1-gpu", "one of them on the GPU (or software Vulkan)", 1, true),
    batch("batch64-gpu", "64 of them on the GPU", 64, true),
    batch("batch512-gpu", "512 of them on the GPU", 512, true),
];

/// The batch benchmark on the CPU's threads, or on the adapter that `--engine gpu` would take.
const fn batch(name: &'static str, about: &'static str, batch: u32, gpu: bool) -> Case {
    Case { name, about, base: BATCH128, hosts: 128, batch, gpu }
}

/// All benchmarks.
pub fn list() -> Vec<BenchInfo> {
    CASES
        .iter()
        .map(|c| BenchInfo { name: c.name.into(), about: c.about.into() })
        .chain(benchmark_workloads::list())
        .chain(benchmark_memo::list())
        .collect()
}

/// Runs one benchmark, and passes its row to `sink`.
pub fn run(name: &str, sink: &mut dyn FnMut(BenchRow)) -> anyhow::Result<()> {
    if let Some(ran) = benchmark_workloads::run(name, sink).or_else(|| benchmark_memo::run(name, sink)) {
        return ran;
    }
    let case = CASES.iter().find(|c| c.name == name).ok_or_else(|| anyhow!("no benchmark `{name}`"))?;
    if case.batch > 0 {
        return run_batch(case, sink);
    }
    let mut tables = tables(case)?;
    let start = Instant::now();
    to_the_end(&mut tables.view())?;
    let seconds = start.elapsed().as_secs_f64();
    let hops = packet_hops(&tables.view());
    sink(BenchRow {
        name: case.name.into(),
        engine: "cpu".into(),
        hosts: case.hosts,
        experiments: 1,
        packet_hops: hops,
        seconds,
        packet_hops_per_s: hops as f64 / seconds,
        peak_bytes: tables.bytes(),
    });
    Ok(())
}

/// Runs a batch to its end, through the common interface of the engines.
fn run_batch(case: &Case, sink: &mut dyn FnMut(BenchRow)) -> anyhow::Result<()> {
    let mut engine: Box<dyn Engine> = Box::new(CpuEngine);
    let mut engine_name = "cpu".to_string();
    if case.gpu {
        match open::open(None, SoftwarePolicy::IfNothingElse) {
            Ok(device) => {
                engine_name = device.report.name.clone();
                engine = Box::new(GpuEngine::on(&device)?);
            }
            Err(e) => {
                tell(&format!("{}: left out: {e}", case.name));
                return Ok(());
            }
        }
    }
    let one = tables(case)?;
    let to_the_end = |engine: &mut dyn Engine, batch: &mut [Tables]| -> anyhow::Result<()> {
        while !batch.iter().all(is_final) {
            let slice = engine.advance(batch, u32::MAX as u64, &|| false)?;
            if let Some((_, why)) = slice.failures.first() {
                return Err(anyhow!("{why}"));
            }
        }
        Ok(())
    };
    // A first run compiles the kernels, which are compiled at their first dispatch.
    OwnedTables::with_views(&mut [one.clone()], |batch| to_the_end(engine.as_mut(), batch))?;
    let mut batch = vec![one; case.batch as usize];
    let start = Instant::now();
    let hops = OwnedTables::with_views(&mut batch, |batch| -> anyhow::Result<u64> {
        to_the_end(engine.as_mut(), batch)?;
        Ok(batch.iter().map(packet_hops).sum())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    sink(BenchRow {
        name: case.name.into(),
        engine: engine_name,
        hosts: case.hosts,
        experiments: case.batch as u64,
        packet_hops: hops,
        seconds,
        packet_hops_per_s: hops as f64 / seconds,
        peak_bytes: batch.iter().map(OwnedTables::bytes).sum(),
    });
    Ok(())
}

/// Tables of a benchmark before its first step.
fn tables(case: &Case) -> anyhow::Result<OwnedTables> {
    let cc = if case.batch > 0 {
        "dcqcn"
    } else {
        case.name.rsplit('-').next().context("benchmarks are named after their congestion control")?
    };
    let text = format!("name = \"{}\"\n[base]\n{}\n[base.transport]\ncc = \"{cc}\"\n", case.name, case.base);
    let sweep = sweep::parse(&text, Path::new("benchmark"), &SetOverrides(Vec::new()))?;
    let config = sweep.config(&sweep.experiments[0]).map_err(|e| anyhow!("{e}"))?;
    Ok(prepare(&config, 0)?.built.tables)
}

fn to_the_end(t: &mut Tables) -> anyhow::Result<()> {
    loop {
        cpu::run(t, u32::MAX);
        match t.exps[0].status {
            status::NEEDS_PACKETS => grow::grow(t, u32::MAX as u64)?,
            status::DONE => return Ok(()),
            other => return Err(anyhow!("the benchmark ended with status {other}")),
        }
    }
}
