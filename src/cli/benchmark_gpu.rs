//! `hyperfold bench gpu`: what a GPU does, by workload, number of experiments side by side, way of dispatch and size of a workgroup.
//!
//! Layer: cli. Lines come in the order of what they tell, each as soon as it is measured, so that a budget of a minute is well spent too. Every line
//! says whether the device has left the same bytes as the CPU engine.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, anyhow};
use rayon::prelude::*;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::args::BenchArgs;
use super::exit::{CliError, Exit};
use super::output::is_closed;
use super::{say, table};
use hyperfold_base::budget;
use hyperfold_columns::{OwnedTables, Tables, status};
use hyperfold_config::sweep::{self, Experiment, SetOverrides, Sweep};
use hyperfold_engine::gpu::{
    self, DeviceChoice, DeviceTimes, GpuDevice, GpuEngine, KernelParts, Mode, SoftwarePolicy, batch_runner, open,
};
use hyperfold_engine::{cpu, grow, packet_hops};
use hyperfold_host::prepare;

/// The CPU engine takes this part of all steps before the measured ones, so that queues and windows are as in the middle of a run.
const PART_BEFORE: u64 = 3;
/// Most measured steps of a fused kernel, and of kernels system by system.
const FUSED_STEPS: u32 = 60;
const SYSTEM_STEPS: u32 = 20;
/// Most bytes of tables that one measurement takes, if a third of the host's memory is not less.
const MAX_BYTES: u64 = 48 << 30;
/// An adapter in software gets so many times fewer experiments and steps: it rehearses, and its figures say nothing about a GPU.
const SOFTWARE_SHARE: u32 = 64;

/// A workload: its name, the configuration of its variants, and the axes over which they differ.
const WORKLOADS: [(&str, &str, &str); 4] = [
    (
        "allreduce",
        "cluster = { gpus = 64, gpus_per_server = 4 }\ntopology = { kind = \"clos\", oversubscription = 2.0 }\n\
         workload = { kind = \"collective\", op = \"all-reduce\", bytes = 4000000, algorithm = \"ring\" }\n\
         transport = { payload_bytes = 1000 }\nfidelity = { fast_forward = \"off\" }\n",
        "\"transport.cc\" = [\"dcqcn\", \"hpcc\", \"timely\", \"dctcp\"]\n\"routing.seed\" = [1, 2, 3, 4]\n",
    ),
    (
        "permutation",
        "cluster = { gpus = 128, gpus_per_server = 1 }\ntopology = { kind = \"fat-tree\" }\n\
         workload = { kind = \"traffic\", pattern = \"permutation\", bytes = 4000000 }\n",
        "\"transport.cc\" = [\"dcqcn\", \"hpcc\", \"timely\", \"dctcp\"]\n\"routing.seed\" = [1, 2, 3, 4]\n",
    ),
    (
        "incast",
        "cluster = { gpus = 64, gpus_per_server = 1 }\ntopology = { kind = \"fat-tree\" }\n\
         workload = { kind = \"traffic\", pattern = \"incast\", fan_in = 15, bytes = 4000000 }\n",
        "\"transport.cc\" = [\"dcqcn\", \"hpcc\", \"timely\", \"dctcp\"]\n\"routing.seed\" = [1, 2, 3, 4]\n",
    ),
    (
        "small",
        "cluster = { gpus = 16, gpus_per_server = 4 }\ntopology = { kind = \"clos\" }\n\
         workload = { kind = \"collective\", op = \"all-reduce\", bytes = 4000000, algorithm = \"ring\" }\n\
         fidelity = { fast_forward = \"off\" }\n",
        "\"transport.cc\" = [\"dcqcn\", \"hpcc\", \"timely\", \"dctcp\"]\n\"routing.seed\" = [1, 2, 3, 4]\n",
    ),
];

/// Plan of the measurements, the most telling first: workload, experiments, way of dispatch, invocations a workgroup.
const PLAN: [(&str, usize, Mode, u32); 22] = [
    ("allreduce", 512, Mode::Fused, batch_runner::WORKGROUP),
    ("allreduce", 512, Mode::PerSystem, batch_runner::WORKGROUP),
    ("permutation", 512, Mode::Fused, batch_runner::WORKGROUP),
    ("permutation", 512, Mode::PerSystem, batch_runner::WORKGROUP),
    ("allreduce", 64, Mode::Fused, batch_runner::WORKGROUP),
    ("allreduce", 2048, Mode::Fused, batch_runner::WORKGROUP),
    ("allreduce", 512, Mode::Fused, 64),
    ("incast", 512, Mode::Fused, batch_runner::WORKGROUP),
    ("small", 2048, Mode::Fused, batch_runner::WORKGROUP),
    ("small", 2048, Mode::Fused, 64),
    ("allreduce", 132, Mode::Fused, batch_runner::WORKGROUP),
    ("allreduce", 1, Mode::Fused, batch_runner::WORKGROUP),
    ("allreduce", 512, Mode::Fused, 256),
    ("permutation", 2048, Mode::Fused, batch_runner::WORKGROUP),
    ("permutation", 512, Mode::Fused, 64),
    ("allreduce", 64, Mode::PerSystem, batch_runner::WORKGROUP),
    ("allreduce", 1, Mode::PerSystem, batch_runner::WORKGROUP),
    ("incast", 512, Mode::PerSystem, batch_runner::WORKGROUP),
    ("allreduce", 1024, Mode::Fused, batch_runner::WORKGROUP),
    ("permutation", 64, Mode::Fused, batch_runner::WORKGROUP),
    ("small", 8192, Mode::Fused, batch_runner::WORKGROUP),
    ("allreduce", 4096, Mode::Fused, batch_runner::WORKGROUP),
];

/// One measurement.
#[derive(Debug, Serialize)]
struct Line<'a> {
    device: &'a str,
    driver: &'a str,
    workload: &'a str,
    experiments: usize,
    dispatch: &'static str,
    workgroup: u32,
    /// Steps of all experiments together.
    steps: u64,
    packet_hops: u64,
    packet_hops_per_s: f64,
    /// Time of the kernels by the device's own clock, or the wall time where it has none.
    kernel_s: f64,
    wall_s: f64,
    upload_s: f64,
    download_s: f64,
    /// Time of a first step of one experiment, which compiles what is not compiled yet.
    compile_s: f64,
    bytes: u64,
    /// Seconds of each kernel.
    kernels: Vec<(&'static str, f64)>,
    /// Digest of all tables of the first sixteen experiments after the steps.
    digest: String,
    same_as_cpu: bool,
}

/// Variants of a workload in the middle of their run, and after the measured steps.
struct Variants {
    workload: &'static str,
    steps: u32,
    before: Vec<OwnedTables>,
    after: Vec<OwnedTables>,
}

/// Measures the adapter that `--engine gpu` would take, or the chosen one. A line whose bytes are not the CPU engine's makes it exit code 3.
///
/// # Errors
/// There is no such adapter, the device fails, or the file cannot be written.
pub fn execute(args: &BenchArgs) -> Result<Exit, CliError> {
    let choice = args.device.map(DeviceChoice::Index);
    let device = open::open(choice.as_ref(), SoftwarePolicy::IfNothingElse).map_err(CliError::bad_input)?;
    match measure_plan(&device, args).map_err(CliError::broken)? {
        true => Ok(Exit::Ok),
        false => Ok(Exit::Condition),
    }
}

/// Measures what the budget allows of the plan. Returns whether every line has the bytes of the CPU engine.
fn measure_plan(device: &GpuDevice, args: &BenchArgs) -> anyhow::Result<bool> {
    let clock = Instant::now();
    let mut all_same = true;
    let mut file = match &args.out {
        Some(path) => Some(File::create(path).with_context(|| format!("cannot write {}", path.display()))?),
        None => None,
    };
    let seconds = args.budget.unwrap_or(f64::INFINITY);
    let mut engines: Vec<(u32, GpuEngine)> = Vec::new();
    let mut variants: Vec<Variants> = Vec::new();
    let mut longest: f64 = 0.0;
    let share = if device.report.is_software() { SOFTWARE_SHARE } else { 1 };
    let max_bytes = MAX_BYTES.min(budget::total() / 3);
    for (workload, experiments, mode, workgroup) in PLAN {
        let experiments = experiments.div_ceil(share as usize);
        let begin = clock.elapsed().as_secs_f64();
        if begin + longest > seconds || is_closed() {
            break;
        }
        let engine = engine_for(device, workgroup, &mut engines)?;
        let known = variants_for(workload, mode, share, &mut variants)?;
        if known.before.iter().map(OwnedTables::bytes).max().unwrap_or(0) * experiments as u64 > max_bytes {
            continue;
        }
        let line = measure(device, engine, known, experiments, mode, workgroup)
            .with_context(|| format!("{workload} x {experiments}"))?;
        let json = serde_json::to_string(&line).expect("plain numbers and strings serialise");
        say(&if args.json { json.clone() } else { as_text(&line) });
        if let Some(file) = &mut file {
            writeln!(file, "{json}").and_then(|()| file.flush()).context("cannot write the measurements")?;
        }
        all_same &= line.same_as_cpu;
        longest = longest.max(clock.elapsed().as_secs_f64() - begin);
    }
    Ok(all_same)
}

fn engine_for<'a>(
    device: &GpuDevice,
    workgroup: u32,
    engines: &'a mut Vec<(u32, GpuEngine)>,
) -> anyhow::Result<&'a mut GpuEngine> {
    let place = match engines.iter().position(|e| e.0 == workgroup) {
        Some(place) => place,
        None => {
            let limits = device.device.limits();
            let engine = GpuEngine::with_workgroup(device.device.clone(), device.queue.clone(), &limits, workgroup)?;
            engines.push((workgroup, engine));
            engines.len() - 1
        }
    };
    Ok(&mut engines[place].1)
}

fn variants_for<'a>(
    workload: &'static str,
    mode: Mode,
    share: u32,
    known: &'a mut Vec<Variants>,
) -> anyhow::Result<&'a Variants> {
    let steps = if mode == Mode::Fused { FUSED_STEPS } else { SYSTEM_STEPS } / share.min(4);
    let place = match known.iter().position(|v| v.workload == workload && v.steps == steps) {
        Some(place) => place,
        None => {
            known.push(variants_of(workload, steps)?);
            known.len() - 1
        }
    };
    Ok(&known[place])
}

/// Prepares all variants of a workload, and takes the measured steps of each on the CPU engine.
fn variants_of(workload: &'static str, steps: u32) -> anyhow::Result<Variants> {
    let sweep = sweep_of(workload)?;
    let both: Vec<(OwnedTables, OwnedTables)> = sweep
        .experiments
        .par_iter()
        .map(|experiment| in_the_middle(&sweep, experiment, steps).with_context(|| workload))
        .collect::<anyhow::Result<_>>()?;
    let (before, after) = both.into_iter().unzip();
    Ok(Variants { workload, steps, before, after })
}

fn sweep_of(workload: &str) -> anyhow::Result<Sweep> {
    let (_, base, axes) = WORKLOADS.iter().find(|w| w.0 == workload).ok_or_else(|| anyhow!("no workload"))?;
    let text = format!("name = \"{workload}\"\n[base]\n{base}[axes]\n{axes}");
    Ok(sweep::parse(&text, Path::new("benchmark"), &SetOverrides(Vec::new()))?)
}

/// Tables of an experiment in the middle of its run, and after so many more steps.
fn in_the_middle(sweep: &Sweep, experiment: &Experiment, steps: u32) -> anyhow::Result<(OwnedTables, OwnedTables)> {
    let config = sweep.config(experiment).map_err(|e| anyhow!("{e}"))?;
    let mut before = prepare(&config, experiment.exp_id as u32)?.built.tables;
    let mut whole = before.clone();
    advance(&mut whole.view(), u64::MAX)?;
    let n_before = whole.exps[0].steps / PART_BEFORE;
    advance(&mut before.view(), n_before)?;
    loop {
        let mut after = before.clone();
        cpu::run(&mut after.view(), steps);
        match after.exps[0].status {
            status::RUNNING => return Ok((before, after)),
            // Pools do not grow while the device is measured, so the measured steps begin after it.
            status::NEEDS_PACKETS => advance(&mut before.view(), u64::from(steps))?,
            _ => anyhow::bail!("it ends after {} steps", whole.exps[0].steps),
        }
    }
}

/// Takes steps on the CPU engine, and gives the experiment more packets where it asks for them.
fn advance(t: &mut Tables, steps: u64) -> anyhow::Result<()> {
    let end = t.exps[0].steps.saturating_add(steps);
    while t.exps[0].steps < end {
        cpu::run(t, (end - t.exps[0].steps).min(1 << 20) as u32);
        match t.exps[0].status {
            status::RUNNING => {}
            status::NEEDS_PACKETS => grow::grow(t, u64::from(u32::MAX))?,
            status::DONE => break,
            other => return Err(anyhow!("the workload ended with status {other}")),
        }
    }
    Ok(())
}

fn measure<'a>(
    device: &'a GpuDevice,
    engine: &mut GpuEngine,
    variants: &Variants,
    experiments: usize,
    mode: Mode,
    workgroup: u32,
) -> anyhow::Result<Line<'a>> {
    let mut batch: Vec<OwnedTables> =
        (0..experiments).map(|k| variants.before[k % variants.before.len()].clone()).collect();
    engine.fix_parts(Some(KernelParts::needed_by(batch.iter().map(|t| &t.exps[0]))));
    // A step of one experiment compiles what is not compiled yet.
    let clock = Instant::now();
    OwnedTables::with_views(&mut [variants.before[0].clone()], |batch| gpu::measure(engine, batch, mode, 1))?;
    let compile_s = clock.elapsed().as_secs_f64();
    let counts = |batch: &mut [OwnedTables]| {
        OwnedTables::with_views(batch, |batch| -> (u64, u64) {
            (batch.iter().map(packet_hops).sum(), batch.iter().map(|t| t.exps[0].steps).sum())
        })
    };
    let (hops_before, steps_before) = counts(&mut batch);
    let times: DeviceTimes =
        OwnedTables::with_views(&mut batch, |batch| gpu::measure(engine, batch, mode, variants.steps))?;
    let (hops, steps) = counts(&mut batch);
    let packet_hops = hops - hops_before;
    let kernel_s = match times.kernels.is_empty() {
        true => times.wall_s,
        false => times.kernels.iter().map(|k| k.1).sum(),
    };
    let same_as_cpu =
        batch.iter().enumerate().all(|(k, t)| t.as_bytes() == variants.after[k % variants.after.len()].as_bytes());
    let mut digest = Sha256::new();
    batch.iter().take(variants.before.len()).for_each(|t| t.as_bytes().iter().for_each(|table| digest.update(table)));
    Ok(Line {
        device: &device.report.name,
        driver: &device.report.driver_info,
        workload: variants.workload,
        experiments,
        dispatch: if mode == Mode::Fused { "fused" } else { "by system" },
        workgroup,
        steps: steps - steps_before,
        packet_hops,
        packet_hops_per_s: packet_hops as f64 / kernel_s,
        kernel_s,
        wall_s: times.wall_s,
        upload_s: times.upload_s,
        download_s: times.download_s,
        compile_s,
        bytes: times.bytes,
        kernels: times.kernels,
        digest: digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect(),
        same_as_cpu,
    })
}

fn as_text(line: &Line) -> String {
    let kernels: Vec<String> = match line.kernels.len() {
        0 | 1 => Vec::new(),
        _ => line.kernels.iter().map(|(name, s)| format!("{name} {:.0} %", 100.0 * s / line.kernel_s)).collect(),
    };
    format!(
        "{:<12} {:>5} experiments  {:<9} workgroup {:>3}  {:>8.1} M packet-hops/s  {} steps, {} packet-hops in {}; up {}, down {}, {}; {}{}{}",
        line.workload,
        line.experiments,
        line.dispatch,
        line.workgroup,
        line.packet_hops_per_s / 1e6,
        table::count(line.steps),
        table::count(line.packet_hops),
        table::seconds(line.kernel_s),
        table::seconds(line.upload_s),
        table::seconds(line.download_s),
        table::bytes(line.bytes),
        if line.same_as_cpu { "bytes of the CPU engine" } else { "NOT THE BYTES OF THE CPU ENGINE" },
        if kernels.is_empty() { "" } else { "; " },
        kernels.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_measured_in_the_middle_of_its_run() {
        for (workload, ..) in WORKLOADS {
            assert!(PLAN.iter().any(|line| line.0 == workload), "{workload} is never measured");
            let sweep = sweep_of(workload).unwrap_or_else(|e| panic!("{workload}: {e:#}"));
            assert!(sweep.experiments.len() == 16, "{workload}");
            let (before, after) = in_the_middle(&sweep, &sweep.experiments[0], FUSED_STEPS)
                .unwrap_or_else(|e| panic!("{workload}: {e:#}"));
            assert_eq!(after.exps[0].steps - before.exps[0].steps, u64::from(FUSED_STEPS), "{workload}");
        }
    }
}
