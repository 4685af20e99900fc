//! Converts the outcome of inference to columns of results.csv and rows of requests.csv.
//!
//! Layer: session. Knows the bounds within which a request counts as good.

use hyperfold_base::units::PS_PER_S;
use hyperfold_config::spec::{Config, Serving, Source, WorkloadSection};
use hyperfold_host::{ExperimentOutcome, PoolOutcome, RequestOutcome, ServingOutcome};
use hyperfold_llm::workload::serving::PoolRole;
use hyperfold_results::{Micro, Ps, RequestRecord, ServingRecord, TimeStats, fct_stats};
use hyperfold_validated::LatencyWorth;

/// Share of time from which waiting for memory, or idling, counts as the limit.
const LIMIT_SHARE: f64 = 0.5;

/// Returns the keys of an inference workload.
fn keys(workload: &WorkloadSection) -> Option<&Serving> {
    match workload {
        WorkloadSection::Program(p) => match &p.source {
            Source::Inference(serving) => Some(serving),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the keys of the inference workload; with several jobs, of the first job that serves.
fn first_keys(config: &Config) -> Option<&Serving> {
    let job_keys = config.jobs.iter().flat_map(|jobs| &jobs.jobs).find_map(|job| keys(&job.workload));
    keys(&config.workload).or(job_keys)
}

/// Times of a request, ps; `None`: it did not get so far, or has no such time.
struct Times {
    queue: Option<u64>,
    ttft: Option<u64>,
    /// Mean time between tokens after the first; an answer of one token has none.
    tpot: Option<u64>,
    e2e: Option<u64>,
    kv_transfer: Option<u64>,
}

impl Times {
    fn of(r: &RequestOutcome) -> Times {
        let elapsed = |time_ps: Option<u64>, start_ps: u64| time_ps.map(|time_ps| time_ps.saturating_sub(start_ps));
        let gaps = u64::from(r.output) - 1;
        let decoding = r.last_token_ps.zip(r.first_token_ps).map(|(last, first)| last - first);
        Times {
            queue: elapsed(r.begin_ps, r.arrival_ps),
            ttft: elapsed(r.first_token_ps, r.arrival_ps),
            tpot: decoding.filter(|_| gaps > 0).map(|ps| (ps + gaps / 2) / gaps),
            e2e: elapsed(r.last_token_ps, r.arrival_ps),
            kv_transfer: r.received_ps.zip(r.first_token_ps).map(|(received, first)| received.saturating_sub(first)),
        }
    }

    /// Whether both bounds hold. An answer of one token has no time between tokens.
    fn good(&self, keys: Option<&Serving>) -> bool {
        let Some(keys) = keys else { return false };
        let first = self.ttft.is_some_and(|ps| ps <= keys.ttft_bound_ps);
        self.e2e.is_some() && first && self.tpot.is_none_or(|ps| ps <= keys.tpot_bound_ps)
    }
}

fn stats(times: impl Iterator<Item = Option<u64>>) -> TimeStats {
    match fct_stats(times.flatten().map(|ps| (ps, 0))) {
        Some(s) => TimeStats { mean: Some(s.mean), p50: Some(s.p50), p99: Some(s.p99) },
        None => TimeStats::default(),
    }
}

/// Returns the columns of results.csv. Throughput is relative to the time from the first arrival to the last token. Goodput is relative to the time in which
/// requests arrive: the last answers come after that, and would lower it more the fewer requests there are.
pub(crate) fn serving(outcome: &ServingOutcome, config: &Config, worth: Option<LatencyWorth>) -> ServingRecord {
    let keys = first_keys(config);
    let times: Vec<Times> = outcome.requests.iter().map(Times::of).collect();
    let first = outcome.requests.iter().map(|r| r.arrival_ps).min().unwrap_or(0);
    let last = outcome.requests.iter().filter_map(|r| r.last_token_ps).max().unwrap_or(first);
    let span = last.saturating_sub(first);
    let arriving = outcome.requests.iter().map(|r| r.arrival_ps).max().unwrap_or(first) - first;
    let rate_over = |n: u64, ps: u64| Micro::ratio(u128::from(n) * u128::from(PS_PER_S), u128::from(ps));
    let rate = |n: u64| rate_over(n, span);
    let done = outcome.requests.iter().filter(|r| r.last_token_ps.is_some());
    let good = times.iter().filter(|t| t.good(keys)).count() as u64;
    let (pools, decoder) = (&outcome.pools, outcome.pools.last().expect("there is a pool"));
    let sum = |f: fn(&PoolOutcome) -> u64| pools.iter().map(f).sum::<u64>();
    // Time of the stages of all instances over the whole span.
    let whole = pools.iter().map(|p| stage_time(p, span)).sum::<u128>();
    let share = |ps: u64| Micro::ratio(u128::from(ps), whole);
    let kernels = sum(|p| p.bound.kernels());
    // An instance without requests may end its part of the last step after the last token, so time beside kernels ends with the whole.
    let beside_kernels = u64::try_from(whole).unwrap_or(u64::MAX).saturating_sub(kernels);
    let network = sum(|p| p.busy_ps).saturating_sub(kernels).min(beside_kernels);
    let (steps, instances) = (sum(|p| p.rounds), sum(|p| u64::from(p.instances)));
    let kv_capacity = u128::from(decoder.kv_capacity_tokens) * u128::from(decoder.instances);
    ServingRecord {
        requests: outcome.requests.len() as u64,
        requests_done: done.clone().count() as u64,
        ttft: stats(times.iter().map(|t| t.ttft)),
        tpot: stats(times.iter().map(|t| t.tpot)),
        e2e: stats(times.iter().map(|t| t.e2e)),
        queue: stats(times.iter().map(|t| t.queue)),
        kv_transfer: stats(times.iter().map(|t| t.kv_transfer)),
        kv_transfer_bytes: outcome.requests.iter().map(|r| r.transferred_bytes).sum(),
        requests_per_s: rate(done.clone().count() as u64),
        output_tokens_per_s: rate(done.map(|r| u64::from(r.output)).sum()),
        // If all requests arrive at once, that time is 0.
        goodput_rps: rate_over(good, if arriving > 0 { arriving } else { span }),
        within_bounds: Micro::ratio(u128::from(good), outcome.requests.len() as u128),
        steps,
        sequences_per_step: Micro::ratio(u128::from(sum(|p| p.sequences)), u128::from(steps)),
        kv_capacity_tokens: decoder.kv_capacity_tokens,
        kv_use_mean: Micro::ratio(decoder.kv_token_ps, kv_capacity * u128::from(span)),
        kv_use_peak: Micro::ratio(u128::from(decoder.kv_peak_tokens), u128::from(decoder.kv_capacity_tokens)),
        kv_blocked_share: Micro::ratio(u128::from(sum(|p| p.kv_blocked_ps)), u128::from(instances) * u128::from(span)),
        compute_bound_share: share(sum(|p| p.bound.compute)),
        memory_bound_share: share(sum(|p| p.bound.memory)),
        launch_share: share(sum(|p| p.bound.launch)),
        network_share: share(network),
        unused_share: share(beside_kernels - network),
        limited_by: limited_by(pools, span),
        validated_latency_mean: worth.as_ref().and_then(|w| w.mean).map(micro),
        validated_latency_p90: worth.as_ref().and_then(|w| w.p90).map(micro),
        validated_latency_error: worth.map(|w| w.text),
    }
}

/// A number of at least 0 in millionths.
fn micro(number: f64) -> Micro {
    Micro((number * 1e6).round() as u64)
}

/// Time of all stages of a pool together, ps.
fn stage_time(p: &PoolOutcome, span: u64) -> u128 {
    u128::from(p.instances * p.stages) * u128::from(span)
}

/// Returns what limits each pool, in a word.
fn limited_by(pools: &[PoolOutcome], span: u64) -> String {
    let limit_of = |p: &PoolOutcome| {
        let whole = stage_time(p, span) as f64;
        let blocked = p.kv_blocked_ps as f64 / (f64::from(p.instances) * span as f64);
        let idle = 1.0 - p.busy_ps as f64 / whole;
        let parts = [
            ("compute", p.bound.compute),
            ("memory bandwidth", p.bound.memory),
            ("kernel launches", p.bound.launch),
            ("network", p.busy_ps.saturating_sub(p.bound.kernels())),
        ];
        // The largest part; of equals the first.
        let largest = parts.iter().rev().max_by_key(|part| part.1).map_or("", |part| part.0);
        match () {
            () if span == 0 => "load",
            () if blocked > LIMIT_SHARE => "memory for keys and values",
            () if idle > LIMIT_SHARE => "load",
            () => largest,
        }
    };
    let name = |p: &PoolOutcome| match p.role {
        PoolRole::Both => limit_of(p).to_string(),
        PoolRole::Prefill => format!("prefill: {}", limit_of(p)),
        PoolRole::Decode => format!("decode: {}", limit_of(p)),
    };
    pools.iter().map(name).collect::<Vec<String>>().join("; ")
}

/// Returns rows of requests.csv, job by job.
pub(crate) fn requests(outcome: &ExperimentOutcome, config: &Config) -> Vec<RequestRecord> {
    if outcome.jobs.is_empty() {
        return outcome.serving.iter().flat_map(|serving| rows(serving, None, keys(&config.workload))).collect();
    }
    let keys_of_job = |name: &str| {
        let job = config.jobs.iter().flat_map(|jobs| &jobs.jobs).find(|job| &*job.name == name);
        job.and_then(|job| keys(&job.workload))
    };
    let serving = outcome.jobs.iter().filter_map(|job| Some((&job.name, job.serving.as_ref()?)));
    serving.flat_map(|(name, outcome)| rows(outcome, Some(name), keys_of_job(name))).collect()
}

fn rows(outcome: &ServingOutcome, job: Option<&str>, keys: Option<&Serving>) -> Vec<RequestRecord> {
    let row = |(request, r): (u64, &RequestOutcome)| {
        let times = Times::of(r);
        RequestRecord {
            job: job.map(str::to_string),
            request,
            arrival: Ps(r.arrival_ps),
            prompt_tokens: u64::from(r.prompt),
            output_tokens: u64::from(r.output),
            instance: u64::from(r.instance),
            decode_instance: r.decode_instance.map(u64::from),
            queue: times.queue.map(Ps),
            ttft: times.ttft.map(Ps),
            kv_transfer: times.kv_transfer.map(Ps),
            tpot: times.tpot.map(Ps),
            e2e: times.e2e.map(Ps),
            within_bounds: times.good(keys),
            preemptions: u64::from(r.preemptions),
            cached_tokens: u64::from(r.cached),
        }
    };
    (0..).zip(&outcome.requests).map(row).collect()
}
