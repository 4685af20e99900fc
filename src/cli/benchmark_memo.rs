//! Benchmark of what experiments of a sweep share: a thousand variants of a training job in one run, compared with runs of one variant each that share
//! nothing.
//!
//! Layer: cli. Both do what `run` does, from configuration to outcome, on one core. No files are written.

use std::path::Path;
use std::time::Instant;

use anyhow::{anyhow, bail};

use hyperfold_base::input;
use hyperfold_config::sweep::{self, SetOverrides, Sweep};
use hyperfold_engine::EngineError;
use hyperfold_fold::FoldEngine;
use hyperfold_host::{QueuedExperiment, RunEvent, RunOptions};

use super::measurement::{BenchInfo, BenchRow};
use super::tell;

const TOGETHER: &str = "variants1000-together";
const ALONE: &str = "variants1000-alone";
const BOTH: &str = "variants1000";

/// Number of variants that are run alone: every fiftieth. All of them would take an hour.
const SAMPLE: usize = 20;

/// Data-parallel training on two servers. Variants differ in path seeds, kernel speeds and packet sizes.
const SWEEP: &str = r#"
name = "variants1000"
[base]
cluster = { gpus = 16, server = "dgx-a100" }
workload = { kind = "model", model = "gpt3-1.7b", tp = 8, pp = 1, dp = 2, microbatch = 4, global_batch = 16, seq = 512 }
transport = { cc = "dcqcn" }
[axes]
"routing.seed" = [1, 2, 3, 4, 5]
"workload.compute_scale" = { start = 1.0, stop = 1.49, step = 0.01 }
"transport.payload_bytes" = [1000, 1500, 2000, 4000]
"#;

/// The benchmarks of this file.
pub(super) fn list() -> impl Iterator<Item = BenchInfo> {
    [
        (TOGETHER, "1,000 variants of a training job that share patterns, in one run on one core"),
        (ALONE, "20 of them in runs of their own that remember nothing of each other"),
        (BOTH, "both, and how many times cheaper a variant is together than alone, by processor time"),
    ]
    .into_iter()
    .map(|(name, about)| BenchInfo { name: name.into(), about: about.into() })
}

/// Runs a benchmark. `None`: it is not one of this file.
pub(super) fn run(name: &str, sink: &mut dyn FnMut(BenchRow)) -> Option<anyhow::Result<()>> {
    [TOGETHER, ALONE, BOTH].contains(&name).then(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        let sweep = sweep::parse(SWEEP, Path::new("benchmark"), &SetOverrides(Vec::new()))?;
        let mut measured = |name: &'static str| -> anyhow::Result<f64> {
            let (row, processor_s) = pool.install(|| measured(name, &sweep))?;
            let each = row.seconds / row.experiments as f64;
            let of_processor = processor_s / row.experiments as f64;
            tell(&format!("{name}: {each:.4} s an experiment, {of_processor:.4} s of processor"));
            sink(row);
            Ok(of_processor)
        };
        if name != BOTH {
            let name = if name == TOGETHER { TOGETHER } else { ALONE };
            return measured(name).map(|_| ());
        }
        let (alone, together) = (measured(ALONE)?, measured(TOGETHER)?);
        tell(&format!("{BOTH}: a variant is {:.1} times cheaper together than alone", alone / together));
        Ok(())
    })
}

/// Runs the variants together or alone on this thread. Returns the row, and the processor time of this thread in seconds.
fn measured(name: &'static str, sweep: &Sweep) -> anyhow::Result<(BenchRow, f64)> {
    let n = sweep.experiments.len();
    let (start, before) = (Instant::now(), processor_s());
    let (mut hops, mut experiments) = (0, 0);
    // Results of earlier benchmarks are forgotten.
    forget();
    if name == TOGETHER {
        hops = one_run(sweep, 0, n)?;
        experiments = n;
    } else {
        // The step spreads the sample over all axes, because it and the lengths of the axes have no common divisor.
        for k in 0..SAMPLE {
            hops += one_run(sweep, k * (n / SAMPLE + 1) % n, 1)?;
            experiments += 1;
            forget();
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let processor_s = match (before, processor_s()) {
        (Some(before), Some(after)) => after - before,
        _ => seconds,
    };
    let row = BenchRow {
        name: name.into(),
        engine: "cpu".into(),
        hosts: 16,
        experiments: experiments as u64,
        packet_hops: hops,
        seconds,
        packet_hops_per_s: hops as f64 / seconds,
        peak_bytes: super::benchmark_workloads::peak_bytes(),
    };
    Ok((row, processor_s))
}

fn forget() {
    hyperfold_host::forget_jobs();
    hyperfold_host::forget_plans();
}

/// Processor time of this thread in seconds. `None`: the system does not report it.
fn processor_s() -> Option<f64> {
    let text = input::read_text_anywhere(Path::new("/proc/thread-self/schedstat"), 4096).ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

/// Runs `n` experiments from index `first` on, with a memo of their own, and returns their packet-hops.
fn one_run(sweep: &Sweep, first: usize, n: usize) -> anyhow::Result<u64> {
    let chosen = &sweep.experiments[first..first + n];
    let configs = chosen
        .iter()
        .map(|e| Ok(QueuedExperiment { exp_id: e.exp_id, config: sweep.config(e).map_err(|e| anyhow!("{e}"))? }))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut hops = 0;
    let mut failed = None;
    let mut tell = |news: RunEvent| -> Result<(), EngineError> {
        if let RunEvent::Ended(ended) = news {
            hops += ended.packet_hops;
            failed = failed.take().or(ended.result.err().map(|e| format!("experiment {}: {e:?}", ended.exp_id)));
        }
        Ok(())
    };
    hyperfold_host::run(
        configs.into_iter(),
        Box::new(FoldEngine::default()),
        &RunOptions::default(),
        || false,
        &mut tell,
    )?;
    if let Some(why) = failed {
        bail!("{why}");
    }
    Ok(hops)
}
