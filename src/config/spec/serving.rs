//! `[base.workload]` with `kind = "inference"`: which model serves which requests, and how.
//!
//! Layer: spec. Plain data in integers. Whether the model can have this layout and fits its GPUs is checked where the model is known.

use std::path::{Path, PathBuf};

use super::error::Conflict;
use super::experts::DispatcherChoice;
use super::key_id::KeyId;
use super::named::{Named, named};
use super::scale::{PPM, scaled};
use super::training::PrecisionChoice;
use super::value::Values;

/// Picoseconds of a millisecond, and of a microsecond.
const PS_PER_MS: f64 = 1e9;
const PS_PER_US: f64 = 1e6;

/// A model that serves requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Value of `workload.model`.
    pub model: Named,
    /// Value of `workload.precision`: of the products of layers and of their weights.
    pub precision: PrecisionChoice,
    /// Bytes of an element of cached keys and values.
    pub kv_bytes: u32,
    /// GPUs that decode, and prefill too unless `prefill` does.
    pub decode: PoolLayout,
    /// GPUs that only prefill.
    pub prefill: Option<PoolLayout>,
    /// Value of `workload.batching`.
    pub batching: BatchingChoice,
    /// Value of `workload.admission`.
    pub admission: AdmissionChoice,
    /// Value of `workload.clients`; 0: requests arrive on their own.
    pub clients: u32,
    /// Value of `workload.prefix_cache`.
    pub prefix_cache: bool,
    /// Whether requests go to instances that have their prefixes.
    pub to_prefix: bool,
    /// Speculative decoding; `None`: no token is drafted.
    pub draft: Option<Drafting>,
    /// Value of `workload.max_sequences`.
    pub max_sequences: u32,
    /// Value of `workload.max_batch_tokens`.
    pub max_batch_tokens: u32,
    /// Most tokens of one prompt in a step; `None`: what the batch leaves.
    pub chunk_tokens: Option<u32>,
    /// Value of `workload.kv_block_tokens`.
    pub kv_block_tokens: u32,
    /// Share of a GPU's memory that is used, millionths.
    pub memory_share_ppm: u64,
    /// Value of `workload.memory_reserve_gib`, bytes.
    pub memory_reserve_bytes: u64,
    /// Value of `workload.step_overhead_us`, ps.
    pub step_overhead_ps: u64,
    /// Layers whose collectives are joined into one; `None`: all of a stage.
    pub joined_layers: Option<u32>,
    /// Skew of the load of experts, millionths; a million is even.
    pub expert_skew_ppm: u64,
    /// Value of `workload.ep_dispatcher`; `None`: NCCL's all-to-all.
    pub dispatcher: Option<DispatcherChoice>,
    /// Source of the requests.
    pub requests: RequestSource,
    /// The user's measured kernels.
    pub kernels: Option<PathBuf>,
    /// Value of `workload.ttft_bound_ms`, ps.
    pub ttft_bound_ps: u64,
    /// Value of `workload.tpot_bound_ms`, ps.
    pub tpot_bound_ps: u64,
}

/// Layout of model instances on a pool of GPUs. All fields are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLayout {
    /// Number of tensor-parallel ranks of an instance.
    pub tp: u32,
    /// Number of pipeline stages of an instance.
    pub pp: u32,
    /// Number of instances.
    pub dp: u32,
    /// Number of instances that share experts; divides `dp`.
    pub ep: u32,
}

/// The tokens that a step of an instance processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchingChoice {
    /// Decoding sequences, and chunks of prompts beside them.
    Mixed,
    /// Only prompts whenever one waits.
    PrefillFirst,
}

/// The memory for keys and values that an admitted request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionChoice {
    /// For its prompt and its whole answer.
    Reserved,
    /// For what is computed next.
    OnDemand,
}

/// Speculative decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drafting {
    /// Value of `workload.draft_tokens`, at least 1.
    pub tokens: u32,
    /// Value of `workload.draft_acceptance`, millionths.
    pub acceptance_ppm: u64,
    /// Value of `workload.draft_layers`.
    pub layers: u32,
}

/// The source of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestSource {
    /// A CSV file with a request a line.
    Trace {
        /// Path of the file.
        path: PathBuf,
    },
    /// Requests that are drawn from distributions.
    Generated(GeneratedRequests),
}

/// Distributions from which requests are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratedRequests {
    /// Value of `workload.request_count`.
    pub count: u32,
    /// Requests in a million seconds; 0: all arrive at once.
    pub rate_micro: u64,
    /// FabricShape of the gamma distribution of times between requests, millionths.
    pub burstiness_ppm: u64,
    /// Value of `workload.prompt_tokens`.
    pub prompt_tokens: u32,
    /// Value of `workload.output_tokens`.
    pub output_tokens: u32,
    /// Standard deviation of lengths of prompts over their mean, millionths; 0: all have the mean.
    pub spread_ppm: u64,
    /// Standard deviation of lengths of answers over their mean, millionths.
    pub output_spread_ppm: u64,
    /// Value of `workload.prefix_tokens`.
    pub prefix_tokens: u32,
    /// Value of `workload.prefixes`.
    pub prefixes: u32,
}

impl PoolLayout {
    /// Returns the number of GPUs in the pool.
    pub fn gpus(&self) -> u64 {
        [self.tp, self.pp, self.dp].into_iter().fold(1, |n, d| n.saturating_mul(u64::from(d)))
    }
}

impl Serving {
    /// Types the values. `dir`: folder to which paths are relative.
    pub(super) fn new(v: &Values, dir: &Path) -> Result<Serving, Conflict> {
        let required = |key: KeyId, why: &str| Err(Conflict { job: None, key, why: why.to_string() });
        if v.text(KeyId::Model).is_empty() {
            let why = "it is required with workload.kind = \"inference\": a preset such as \"llama3-70b\", a .toml file or a table";
            return required(KeyId::Model, why);
        }
        let u32_of = |key: KeyId| v.int(key) as u32;
        let value_or = |own: KeyId, other: KeyId| if v.int(own) > 0 { u32_of(own) } else { u32_of(other) };
        let prefill = v.is(KeyId::Serving, "disaggregated").then(|| PoolLayout {
            tp: value_or(KeyId::PrefillTp, KeyId::Tp),
            pp: value_or(KeyId::PrefillPp, KeyId::Pp),
            dp: u32_of(KeyId::PrefillDp),
            ep: value_or(KeyId::PrefillEp, KeyId::Ep),
        });
        let requests = match (v.text(KeyId::Requests), v.text(KeyId::WorkloadPath)) {
            ("trace", "") => {
                let why = "it is required with workload.requests = \"trace\"; give the path of a CSV file of requests";
                return required(KeyId::WorkloadPath, why);
            }
            ("trace", path) => RequestSource::Trace { path: dir.join(path) },
            _ => RequestSource::Generated(GeneratedRequests {
                count: u32_of(KeyId::RequestCount),
                rate_micro: scaled(v.float(KeyId::RequestRate), PPM),
                burstiness_ppm: scaled(v.float(KeyId::Burstiness), PPM),
                prompt_tokens: u32_of(KeyId::PromptTokens),
                output_tokens: u32_of(KeyId::OutputTokens),
                spread_ppm: if v.is(KeyId::Lengths, "fixed") { 0 } else { scaled(v.float(KeyId::LengthSpread), PPM) },
                prefix_tokens: u32_of(KeyId::PrefixTokens),
                prefixes: u32_of(KeyId::Prefixes),
                output_spread_ppm: match v.is(KeyId::Lengths, "fixed") {
                    true => 0,
                    false => scaled(v.float(KeyId::OutputSpread), PPM),
                },
            }),
        };
        let some = |key: KeyId| (v.int(key) > 0).then(|| u32_of(key));
        Ok(Serving {
            model: named(v.text(KeyId::Model), dir),
            precision: PrecisionChoice::new(v),
            kv_bytes: u32_of(KeyId::KvBytes),
            decode: PoolLayout {
                tp: u32_of(KeyId::Tp),
                pp: u32_of(KeyId::Pp),
                dp: u32_of(KeyId::Dp),
                ep: u32_of(KeyId::Ep),
            },
            prefill,
            batching: match v.text(KeyId::Batching) {
                "prefill-first" => BatchingChoice::PrefillFirst,
                _ => BatchingChoice::Mixed,
            },
            admission: match v.is(KeyId::Admission, "reserved") {
                true => AdmissionChoice::Reserved,
                false => AdmissionChoice::OnDemand,
            },
            clients: u32_of(KeyId::Clients),
            prefix_cache: v.bool(KeyId::PrefixCache),
            to_prefix: v.bool(KeyId::PrefixCache) && v.is(KeyId::RequestRouting, "prefix"),
            draft: (v.int(KeyId::DraftTokens) > 0).then(|| Drafting {
                tokens: u32_of(KeyId::DraftTokens),
                acceptance_ppm: scaled(v.float(KeyId::DraftAcceptance), PPM),
                layers: u32_of(KeyId::DraftLayers),
            }),
            max_sequences: u32_of(KeyId::MaxSequences),
            max_batch_tokens: u32_of(KeyId::MaxBatchTokens),
            chunk_tokens: some(KeyId::ChunkTokens),
            kv_block_tokens: u32_of(KeyId::KvBlockTokens),
            memory_share_ppm: scaled(v.float(KeyId::MemoryShare), PPM),
            memory_reserve_bytes: scaled(v.float(KeyId::MemoryReserveGib), (1u64 << 30) as f64),
            step_overhead_ps: scaled(v.float(KeyId::StepOverheadUs), PS_PER_US),
            joined_layers: some(KeyId::JoinedLayers),
            expert_skew_ppm: scaled(v.float(KeyId::ExpertSkew), PPM),
            dispatcher: DispatcherChoice::new(v),
            requests,
            kernels: v.has(KeyId::Kernels).then(|| dir.join(v.text(KeyId::Kernels))),
            ttft_bound_ps: scaled(v.float(KeyId::TtftBoundMs), PS_PER_MS),
            tpot_bound_ps: scaled(v.float(KeyId::TpotBoundMs), PS_PER_MS),
        })
    }

    /// Returns the number of GPUs in both pools.
    pub fn gpus(&self) -> u64 {
        self.decode.gpus().saturating_add(self.prefill.map_or(0, |p| p.gpus()))
    }

    /// Checks degrees against each other and the cluster, and limits of a step against each other.
    pub(super) fn check(&self, v: &Values, gpus: Option<u32>) -> Result<(), Conflict> {
        let fail = |key: KeyId, why: String| Err(Conflict { job: None, key, why });
        for (pool, key) in [(Some(self.decode), KeyId::Ep), (self.prefill, KeyId::PrefillEp)] {
            if let Some(PoolLayout { dp, ep, .. }) = pool.filter(|p| p.dp % p.ep != 0) {
                return fail(
                    key,
                    format!("{ep} instances share experts, so their number {dp} must be a multiple of it"),
                );
            }
        }
        let each = 1 + self.draft.map_or(0, |draft| draft.tokens);
        let sequences = if v.is(KeyId::Batching, "mixed") { self.max_sequences } else { 1 };
        if u64::from(self.max_batch_tokens) < u64::from(sequences) * u64::from(each) {
            let why = match self.draft {
                None => format!(
                    "it must be at least workload.max_sequences = {}: every decoding sequence adds a token to a step",
                    self.max_sequences
                ),
                Some(draft) => format!(
                    "it must be at least {}: each of {sequences} decoding sequences adds a token to a step, and workload.draft_tokens = {} drafted ones",
                    u64::from(sequences) * u64::from(each),
                    draft.tokens
                ),
            };
            return fail(KeyId::MaxBatchTokens, why);
        }
        let Some(gpus) = gpus else { return Ok(()) };
        let parts = |p: &PoolLayout| format!("tp {} x pp {} x dp {}", p.tp, p.pp, p.dp);
        let product = match &self.prefill {
            Some(prefill) => format!("{} and, to prefill, {}", parts(&self.decode), parts(prefill)),
            None => parts(&self.decode),
        };
        let key = if v.given(KeyId::Dp) && v.int(KeyId::Dp) > 0 {
            KeyId::Dp
        } else if v.is_of_job() {
            KeyId::JobGpus
        } else {
            KeyId::Gpus
        };
        // A job alone on a cluster that is smaller than a server leaves the rest of the server idle.
        let per_server = if v.is_of_job() { 1 } else { v.int(KeyId::GpusPerServer).max(1) as u64 };
        let whole = self.gpus().div_ceil(per_server).saturating_mul(per_server);
        if whole != u64::from(gpus) {
            let has = if v.is_of_job() { "the job has".to_string() } else { "cluster.gpus =".to_string() };
            let mut why = format!("{product} are {} GPUs, but {has} {gpus}", self.gpus());
            if whole != self.gpus() {
                why += &format!("; in servers of {per_server} GPUs they take cluster.gpus = {whole}");
            }
            return fail(key, why);
        }
        Ok(())
    }
}
