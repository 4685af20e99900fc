//! Sets up inference for the layers below: the model on its pools, memory for keys and values, requests, and the resulting programs.
//!
//! Layer: host. Converts types of `spec` to those of `workload::serving`.

use crate::programs::training::{dispatcher, gpu, model, precision};
use crate::setup::error::{JobError, PrepareError, SetupError};
use hyperfold_base::units::PS_PER_S;
use hyperfold_config::spec::{self, Config};
use hyperfold_llm::compute::{Dtype, Gpu};
use hyperfold_llm::model::{Model, Precision};
use hyperfold_llm::workload::program::Workload;
use hyperfold_llm::workload::serving::{
    Batching, Draft, KvAdmission, MAX_S, Pool, PoolRole, PoolUse, RequestDistribution, RequestOps, RequestTrace,
    RoundOps, ServedWorkload, ServingError, ServingPlan, ServingRequest, ServingSetup, StepCosts, draw,
    kv_capacity_tokens, kv_token_bytes, read_requests, schedule, serve, wrong_model,
};
use hyperfold_llm::workload::training::Cluster;

const PPM: f64 = 1e6;

/// The requests of an inference job, and their ops in its programs.
#[derive(Debug)]
pub struct ServingJob {
    /// Requests in the order of their arrival.
    pub requests: Vec<ServingRequest>,
    /// For each request, its ops.
    pub ops: Vec<RequestOps>,
    /// For each request, the instance at which it arrives, and another instance that decodes it, if there is one.
    pub instances: Vec<(u32, Option<u32>)>,
    /// Whether clients wait for answers before they send their next requests.
    pub closed: bool,
    /// Pools of GPUs: one for both phases, or one for prefill and one for decode.
    pub pools: Vec<ServingPool>,
}

/// A pool of GPUs, and how the scheduler used it.
#[derive(Debug)]
pub struct ServingPool {
    /// Instances of the model in the pool, and their layout.
    pub pool: Pool,
    /// The scheduler's treatment of it.
    pub usage: PoolUse,
    /// Ops of its rounds, in the order of time.
    pub rounds: Vec<RoundOps>,
}

/// The result of setting up an inference workload.
pub(crate) struct Served {
    pub workload: Workload,
    pub job: ServingJob,
    /// Peak memory of the fullest rank, bytes.
    pub peak_bytes: u64,
}

/// Sets up the model on its pools, with memory for keys and values. Also returns, for each pool, the bytes that its fullest rank holds besides them.
///
/// # Errors
/// The model or GPU does not exist, the model cannot have the layout, or the weights exceed a GPU's memory.
pub(crate) fn setup(
    config: &Config,
    program: &spec::ProgramSpec,
    asked: &spec::Serving,
) -> Result<(ServingSetup, Vec<u64>), PrepareError> {
    let model: std::sync::Arc<Model> = model(&asked.model)?;
    if let Some(why) = wrong_model(&model.body) {
        return Err(JobError::Serving(ServingError::Model { model: model.name.clone(), why }).into());
    }
    let gpu = gpu(&config.cluster.gpu)?;
    let precision = precision(asked.precision);
    let dtype = Dtype::of(precision, Dtype::Bf16);
    if precision != Precision::Bf16 && !gpu.supports(dtype) {
        let alternatives = crate::programs::training::gpus_with(dtype).join(", ");
        return Err(SetupError::Units { precision: dtype, gpu: gpu.name.clone(), alternatives }.into());
    }
    let pool = |role: PoolRole, layout: &spec::PoolLayout, first_rank: u32| {
        let spec::PoolLayout { tp, pp, dp, ep } = *layout;
        Pool { role, tp, pp, dp, ep, first_rank, kv_tokens: 0 }
    };
    let pools = match &asked.prefill {
        None => vec![pool(PoolRole::Both, &asked.decode, 0)],
        Some(prefill) => {
            let first = pool(PoolRole::Prefill, prefill, 0);
            vec![first, pool(PoolRole::Decode, &asked.decode, first.ranks())]
        }
    };
    let mut setup = ServingSetup {
        model,
        precision,
        narrow_weights: asked.precision == spec::PrecisionChoice::Int4,
        kv_bytes: u64::from(asked.kv_bytes),
        pools,
        batching: match asked.batching {
            spec::BatchingChoice::Mixed => Batching::Mixed,
            spec::BatchingChoice::PrefillFirst => Batching::PrefillFirst,
        },
        admission: match asked.admission {
            spec::AdmissionChoice::Reserved => KvAdmission::Reserved,
            spec::AdmissionChoice::OnDemand => KvAdmission::OnDemand,
        },
        clients: asked.clients,
        prefix_cache: asked.prefix_cache,
        to_prefix: asked.to_prefix,
        max_sequences: asked.max_sequences,
        max_batch_tokens: asked.max_batch_tokens,
        chunk_tokens: asked.chunk_tokens.unwrap_or(u32::MAX),
        kv_block_tokens: asked.kv_block_tokens,
        step_overhead_ps: asked.step_overhead_ps,
        joined_layers: asked.joined_layers.unwrap_or(u32::MAX),
        expert_skew: asked.expert_skew_ppm as f64 / PPM,
        expert_dispatcher: asked.dispatcher.map(dispatcher),
        compute_scale: program.compute.scale_ppm as f64 / PPM,
        draft: asked.draft.map(|draft| Draft {
            tokens: draft.tokens,
            acceptance: draft.acceptance_ppm as f64 / PPM,
            layers: draft.layers,
        }),
        seed: config.jitter_seed(),
    };
    let has = config.cluster.gpu_memory_bytes.unwrap_or(gpu.capacity_bytes);
    let share = (u128::from(has) * u128::from(asked.memory_share_ppm) / 1_000_000) as u64;
    let mut other_bytes = Vec::new();
    for i in 0..setup.pools.len() {
        let pool = setup.pools[i];
        pool.layout(&setup, 1).check(&setup.model, u64::from(pool.ranks())).map_err(SetupError::Model)?;
        let usable = share.saturating_sub(asked.memory_reserve_bytes);
        let (tokens, held) = kv_capacity_tokens(&setup, &pool, usable);
        let held = held + asked.memory_reserve_bytes;
        if tokens == 0 {
            return Err(no_room(&pool, held, share, has));
        }
        setup.pools[i].kv_tokens = tokens;
        other_bytes.push(held);
    }
    Ok((setup, other_bytes))
}

fn no_room(pool: &Pool, held: u64, share: u64, has: u64) -> PrepareError {
    let gib = |bytes: u64| format!("{:.2}", bytes as f64 / (1u64 << 30) as f64);
    let breakdown = format!(
        "out of memory: {} of tp {} x pp {} leaves no room for keys and values: weights, activations and workload.memory_reserve_gib take {} GiB of the {} GiB that workload.memory_share gives of {}; use a larger tp or pp, a narrower workload.precision, or a GPU with more memory",
        pool.name(),
        pool.tp,
        pool.pp,
        gib(held),
        gib(share),
        gib(has)
    );
    PrepareError::Oom { peak_bytes: held, breakdown }
}

/// Returns requests in the order of their arrival, with their line numbers if they are from a file.
fn requests(config: &Config, asked: &spec::Serving) -> Result<RequestTrace, ServingError> {
    match &asked.requests {
        spec::RequestSource::Trace { path } => read_requests(path),
        spec::RequestSource::Generated(g) => {
            let distribution = RequestDistribution {
                count: g.count,
                rate: g.rate_micro as f64 / PPM,
                burstiness: g.burstiness_ppm as f64 / PPM,
                prompt_tokens: g.prompt_tokens,
                output_tokens: g.output_tokens,
                spread: g.spread_ppm as f64 / PPM,
                output_spread: g.output_spread_ppm as f64 / PPM,
                prefix_tokens: g.prefix_tokens,
                prefixes: g.prefixes,
            };
            let requests = draw(&distribution, config.jitter_seed());
            let count = requests.len();
            let arrival_s = |r: &ServingRequest| r.arrival_ps as f64 / PS_PER_S as f64;
            match requests.iter().map(arrival_s).enumerate().find(|(_, at_s)| *at_s > MAX_S) {
                Some((request, at_s)) => Err(ServingError::TooLate { request, count, at_s, max_s: MAX_S }),
                None => Ok(RequestTrace { requests, lines: Vec::new() }),
            }
        }
    }
}

/// Returns notes on keys of the setup that have no effect, or an effect that cannot be trusted.
fn surprises(setup: &ServingSetup, requests: &[ServingRequest]) -> Vec<String> {
    let mut found = Vec::new();
    let context = setup.transformer().seq;
    let tokens = |r: &ServingRequest| u64::from(r.prompt) + u64::from(r.output);
    let beyond = requests.iter().filter(|r| tokens(r) > u64::from(context)).count();
    if beyond > 0 {
        let longest = requests.iter().map(tokens).max().unwrap_or(0);
        found.push(format!(
            "{beyond} of {} requests are longer than the {context} tokens that {} was made for; the longest has {longest}. They are served all the same",
            requests.len(),
            setup.model.name
        ));
    }
    let chunk = setup.chunk_tokens;
    let longest_prompt = requests.iter().map(|r| r.prompt).max().unwrap_or(0);
    if chunk != u32::MAX && chunk >= longest_prompt.min(setup.max_batch_tokens) {
        found.push(format!(
            "workload.chunk_tokens = {chunk} changes nothing: no prompt has more than {longest_prompt} tokens, no step more than workload.max_batch_tokens = {}",
            setup.max_batch_tokens
        ));
    }
    if setup.to_prefix && setup.pools[0].dp == 1 {
        found.push(
            "workload.request_routing = \"prefix\" changes nothing: one instance receives all requests; workload.dp or workload.prefill_dp adds instances"
                .to_string(),
        );
    }
    found
}

/// Returns a note on requests whose memory was taken from them.
fn preempted(plan: &ServingPlan) -> Option<String> {
    let count = plan.requests.iter().filter(|r| r.preemptions > 0).count();
    let times: u32 = plan.requests.iter().map(|r| r.preemptions).sum();
    (count > 0).then(|| {
        format!(
            "{count} of {} requests were preempted, {times} times in all: memory for keys and values ran out, and they were computed anew. \
             workload.admission = \"reserved\" or a smaller workload.max_sequences admits fewer at once",
            plan.requests.len()
        )
    })
}

/// Adds the file and line to an error about a request of a trace.
fn with_line(error: ServingError, source: &spec::RequestSource, lines: &[u64]) -> ServingError {
    match (error, source) {
        (ServingError::TooLong { request, tokens, what, pool, capacity, .. }, spec::RequestSource::Trace { path }) => {
            let line = lines.get(request).copied().unwrap_or(0);
            let place = format!("{} line {line}: the request", path.display());
            ServingError::TooLong { request, place, tokens, what, pool, capacity }
        }
        (error, _) => error,
    }
}

/// Runs the schedulers and generates programs from their decisions. `servers`: the server of each rank.
///
/// # Errors
/// Fails as [`setup`] does; a trace that cannot be read; a request that no instance has memory for; too few GPUs.
pub(crate) fn served(
    config: &Config,
    program: &spec::ProgramSpec,
    asked: &spec::Serving,
    servers: &[u32],
    gpu: &Gpu,
    cluster: &Cluster,
    notes: &mut Vec<String>,
) -> Result<Served, PrepareError> {
    let (setup, other_bytes) = setup(config, program, asked)?;
    if setup.ranks() as usize > servers.len() {
        return Err(JobError::Ranks { needs: setup.ranks() as usize, has: servers.len() }.into());
    }
    let RequestTrace { requests, lines } = requests(config, asked).map_err(JobError::Serving)?;
    notes.extend(surprises(&setup, &requests));
    let dtype = Dtype::of(setup.precision, Dtype::Bf16);
    let costs = StepCosts::new(&setup, cluster.machine(dtype), gpu, servers);
    let plan =
        schedule(&setup, &requests, &costs).map_err(|e| JobError::Serving(with_line(e, &asked.requests, &lines)))?;
    notes.extend(preempted(&plan));
    let made = serve(&setup, &requests, &plan).map_err(JobError::Serving)?;
    let ServedWorkload { workload, requests: ops, rounds } = made;
    let peak =
        |(pool, (usage, held)): (&Pool, (&PoolUse, &u64))| held + usage.kv_peak_tokens * kv_token_bytes(&setup, pool);
    let peak_bytes = setup.pools.iter().zip(plan.pools.iter().zip(&other_bytes)).map(peak).max().unwrap_or(0);
    let pools = setup.pools.iter().zip(&plan.pools).zip(rounds);
    let pools = pools.map(|((pool, usage), rounds)| ServingPool { pool: *pool, usage: *usage, rounds }).collect();
    let instances = plan.requests.iter().map(|r| (r.instance, r.decode_instance)).collect();
    Ok(Served { workload, job: ServingJob { requests, ops, instances, closed: setup.clients > 0, pools }, peak_bytes })
}
