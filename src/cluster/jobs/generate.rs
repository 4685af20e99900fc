//! Random jobs, as an alternative to a trace.
//!
//! Layer: cluster. Each pair of job and purpose has its own random stream, so jobs do not depend on each other.

use std::sync::Arc;

use super::job::{ClusterJob, announce_jobs};
use crate::fixed_point::{exp2, exponential, log_uniform};
use hyperfold_config::spec::{ClusterRun, JobClassKeys, JobGenerator, JobsLike};
use hyperfold_llm::workload::random::RandomStream;

const MINUTE_MS: u64 = 60_000;
/// log2(10) with 32 fraction bits.
const LOG2_10: i64 = 14_267_572_527;

/// The random stream of a job for one purpose.
fn stream(keys: &JobGenerator, job: u64, purpose: u64) -> RandomStream {
    RandomStream::new(keys.seed, job * 8 + purpose)
}

/// A random share in millionths, below 1,000,000.
fn share(random: &mut RandomStream) -> u64 {
    u64::from(random.below(1_000_000))
}

/// Jobs of Microsoft's Philly cluster as Gavel draws them (Narayanan et al., OSDI'20, section 7.1): 70 % have one GPU, 25 % two to four, 5 % eight;
/// durations are 10^x minutes, x even in 1.5 to 3 for 80 % and in 3 to 4 for the others.
fn philly(random: &mut RandomStream) -> (u32, u64) {
    let gpus = match share(random) {
        0..700_000 => 1,
        700_000..825_000 => 2,
        825_000..950_000 => 4,
        _ => 8,
    };
    let long = share(random) >= 800_000;
    let (start, span) = if long { (3_000_000, 1_000_000) } else { (1_500_000, 1_500_000) };
    let x = start + share(random) as i64 * span / 1_000_000;
    (gpus, (exp2(LOG2_10 * x / 1_000_000) * MINUTE_MS as f64).round() as u64)
}

/// Jobs of a shared cluster with many short ones and a long tail, as those of Alibaba's PAI (Weng et al., NSDI'22). Sizes and durations here are our choice:
/// 75 % have one GPU, 20 % two to eight, 5 % sixteen to sixty-four; durations have a median of about 25 minutes, one of ten takes above four hours.
fn alibaba(random: &mut RandomStream) -> (u32, u64) {
    let gpus = match share(random) {
        0..750_000 => 1,
        750_000..950_000 => 2 << random.below(3),
        _ => 16 << random.below(3),
    };
    let minutes = |random: &mut RandomStream, min_minutes, max_minutes| {
        log_uniform(random, min_minutes * MINUTE_MS, max_minutes * MINUTE_MS)
    };
    let duration = match share(random) {
        0..500_000 => minutes(random, 1, 25),
        500_000..900_000 => minutes(random, 25, 250),
        _ => minutes(random, 250, 4_000),
    };
    (gpus, duration)
}

/// A number of GPUs and a duration in ms. The number is the smallest one times a random power of two. Logarithms of durations are uniformly distributed.
fn uniform(random: &mut RandomStream, gpus: (u32, u32), duration_ms: (u64, u64)) -> (u32, u64) {
    let sizes = (gpus.1 / gpus.0.max(1)).max(1).ilog2() + 1;
    (gpus.0 << random.below(sizes), log_uniform(random, duration_ms.0.max(1), duration_ms.1.max(1)))
}

/// A random class, by weights. PRECONDITION: one weight is above 0.
fn class(random: &mut RandomStream, classes: &[JobClassKeys]) -> u32 {
    let all: u64 = classes.iter().map(|class| class.weight_ppm).sum();
    let draw = ((u128::from(random.next_u64()) * u128::from(all)) >> 64) as u64;
    let mut below = 0;
    let found = classes.iter().position(|class| {
        below += class.weight_ppm;
        draw < below
    });
    found.expect("the lot is below the sum of the weights") as u32
}

/// Random jobs in the order of their arrival, for a cluster of `gpus` GPUs. If the smallest size is above `gpus`, the jobs ask for more than there is.
pub(crate) fn jobs(keys: &JobGenerator, run: &ClusterRun, gpus: u64) -> Vec<ClusterJob> {
    announce_jobs(keys.count);
    let max_gpus = gpus.min(u64::from(u32::MAX)) as u32;
    // User n submits 1/n as many jobs as the first user. The weights are cumulative, in millionths of the first user's.
    let weights: Vec<u64> = (1..=u64::from(keys.users))
        .scan(0, |sum, n| {
            *sum += 1_000_000 / n;
            Some(*sum)
        })
        .collect();
    let users: Vec<Arc<str>> = (0..keys.users).map(|n| n.to_string().into()).collect();
    let all_weights = weights.last().copied().unwrap_or(1);
    let mut jobs: Vec<ClusterJob> = (0..keys.count)
        .map(|n| {
            let shape = &mut stream(keys, n, 0);
            let class = match &keys.like {
                JobsLike::Classes { .. } => Some(class(&mut stream(keys, n, 4), &run.classes)),
                _ => None,
            };
            let (gpus, duration_ms) = match &keys.like {
                JobsLike::Philly => philly(shape),
                JobsLike::Alibaba => alibaba(shape),
                JobsLike::Uniform { gpus, duration_ms } => uniform(shape, (gpus.0, gpus.1.min(max_gpus)), *duration_ms),
                JobsLike::Classes { duration_ms: (min_ms, max_ms) } => {
                    let gpus = class.map_or(1, |class_idx| run.classes[class_idx as usize].gpus);
                    (gpus, log_uniform(shape, (*min_ms).max(1), (*max_ms).max(1)))
                }
            };
            // Sizes of a class are not cut, because only its layouts run. The smallest size of `uniform` is what the user asked for.
            let is_cut = matches!(keys.like, JobsLike::Philly | JobsLike::Alibaba);
            let gpus = if is_cut { gpus.min(max_gpus) } else { gpus };
            let min_gpus = (u64::from(gpus) * run.min_share_ppm).div_ceil(1_000_000).max(1) as u32;
            let draw = ((u128::from(stream(keys, n, 1).next_u64()) * u128::from(all_weights)) >> 64) as u64;
            let user = weights.partition_point(|&w| w <= draw).min(users.len() - 1);
            let high = share(&mut stream(keys, n, 2)) < keys.high_share_ppm;
            let (compute_ps, comm_bytes) = run.iterations.as_ref().map_or((0, 0), |keys| keys.of_gpus(gpus));
            ClusterJob {
                name: n.to_string().into(),
                user: Arc::clone(&users[user]),
                submit_ms: 0,
                gpus,
                duration_ms,
                estimate_ms: duration_ms,
                priority: u32::from(high),
                min_gpus,
                comm_share_ppm: run.comm_share_ppm,
                compute_ps,
                comm_bytes,
                class,
                iterations: None,
            }
        })
        .collect();
    if keys.load_ppm > 0 {
        // The load is the GPU-milliseconds that arrive per millisecond and GPU.
        let work: u128 = jobs.iter().map(|j| u128::from(j.gpus) * u128::from(j.duration_ms)).sum();
        let gap = work as f64 / (gpus as f64 * (keys.load_ppm as f64 / 1e6)) / jobs.len() as f64;
        let mut at_ms = 0;
        for (n, job) in jobs.iter_mut().enumerate() {
            at_ms += (exponential(&mut stream(keys, n as u64, 3)) * gap).round() as u64;
            job.submit_ms = at_ms;
        }
    }
    jobs
}
