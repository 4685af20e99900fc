//! The benchmark of what experiments of a sweep share: a thousand variants of a training job in one run, beside runs of one variant each that know nothing of it.
//!
//! Layer: cli. Both are what `run` does with them, from configuration to outcome, on one core; files are not written.

use std::path::Path;
use std::time::Instant;

use anyhow::{anyhow, bail};

use crate::batch::{self, QueuedExperiment, RunEvent, RunOptions};
use crate::engine::EngineError;
use crate::engine::fold::FoldEngine;
use crate::input;
use crate::sweep::{self, SetOverrides, Sweep};

use super::measurement::{BenchInfo, BenchRow};
use super::tell;

const TOGETHER: &str = "variants1000-together";
const ALONE: &str = "variants1000-alone";
const BOTH: &str = "variants1000";

/// Variants that are run alone: every fiftieth. All of them would take an hour.
const SAMPLE: usize = 20;

/// Data parallel training on two servers: seeds of paths, speeds of kernels, sizes of packets.
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

/// What there is.
pub(super) fn list() -> impl Iterator<Item = BenchInfo> {
    [
        (TOGETHER, "1,000 variants of a training job that share patterns, in one run on one core"),
        (ALONE, "20 of them in runs of their own that remember nothing of each other"),
        (BOTH, "both, and how many times cheaper a variant is together than alone, by processor time"),
    ]
    .into_iter()
    .map(|(name, about)| BenchInfo { name: name.into(), about: about.into() })
}

/// Runs one, if it is one of these.
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

/// Runs the variants together or alone on this thread: the row, and seconds of its processor.
fn measured(name: &'static str, sweep: &Sweep) -> anyhow::Result<(BenchRow, f64)> {
    let n = sweep.experiments.len();
    let (start, before) = (Instant::now(), processor_s());
    let (mut hops, mut experiments) = (0, 0);
    // Nothing that another benchmark has made is known.
    forget();
    if name == TOGETHER {
        hops = one_run(sweep, 0, n)?;
        experiments = n;
    } else {
        // Spread over all axes: the step and their lengths have no common divisor.
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
    batch::forget_jobs();
    batch::forget_plans();
}

/// Seconds of processor that this thread has had, where the system tells.
fn processor_s() -> Option<f64> {
    let text = input::read_text_anywhere(Path::new("/proc/thread-self/schedstat"), 4096).ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

/// Runs `n` experiments from the `first` on with a memo of their own; gives their packet-hops.
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
    batch::run(configs.into_iter(), Box::new(FoldEngine::default()), &RunOptions::default(), || false, &mut tell)?;
    if let Some(why) = failed {
        bail!("{why}");
    }
    Ok(hops)
}
