//! The parameters of the scheduler: a model, its instances on GPUs, and how they form steps.

use std::sync::Arc;

use crate::collective::ExpertDispatcher;
use crate::model::{Layout, Model, Precision, Transformer};

/// A model, the pools of instances that serve it, and the limits of their steps.
#[derive(Clone, Debug)]
pub struct ServingSetup {
    /// A transformer; see [`ServingSetup::transformer`].
    pub model: Arc<Model>,
    /// Operands of the layers' products.
    pub precision: Precision,
    /// Whether weights of layers have 4 bits that kernels widen to 16; products are then in 16 bit.
    pub narrow_weights: bool,
    /// Bytes of an element of cached keys and values.
    pub kv_bytes: u64,
    /// One pool that does both phases, or one that prefills and one that decodes, in this order.
    pub pools: Vec<Pool>,
    /// Which phases a step may combine.
    pub batching: Batching,
    /// What memory for keys and values a request takes when it is admitted.
    pub admission: KvAdmission,
    /// Whether keys and values of prefixes stay in memory for later requests.
    pub prefix_cache: bool,
    /// Whether a request goes to the instance that has to compute least for it, and not to the one with the fewest tokens ahead.
    pub to_prefix: bool,
    /// Clients that send their next request when the last one is answered; 0 if requests arrive on their own.
    pub clients: u32,
    /// Most sequences of an instance in a step.
    pub max_sequences: u32,
    /// Most tokens of an instance in a step.
    pub max_batch_tokens: u32,
    /// Most tokens of one prompt in a step; `u32::MAX` if only the batch limits them.
    pub chunk_tokens: u32,
    /// Tokens whose keys and values share a block of memory.
    pub kv_block_tokens: u32,
    /// Time in ps at the end of every step.
    pub step_overhead_ps: u64,
    /// Number of layers whose collectives are joined; `u32::MAX` joins all of a stage.
    pub joined_layers: u32,
    /// Load of the busiest expert divided by the mean.
    pub expert_skew: f64,
    /// The kernels that exchange tokens with experts; `None`: NCCL's all-to-all.
    pub expert_dispatcher: Option<ExpertDispatcher>,
    /// Factor on the times of kernels.
    pub compute_scale: f64,
    /// How tokens are drafted; `None`: every token takes a step.
    pub draft: Option<Draft>,
    /// Seed of the choice of the rank that has the busiest expert in a step, and of which drafted tokens are accepted.
    pub seed: u64,
}

/// Speculative decoding: a few layers more draft tokens, and the next step of the model computes all of them at once to accept the first ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draft {
    /// Drafted tokens of a sequence and step, at least 1.
    pub tokens: u32,
    /// Probability that a drafted token is accepted, if those before it are.
    pub acceptance: f64,
    /// Layers that draft, of the model's own shape, on the last stage. They use its embedding and its output matrix.
    pub layers: u32,
}

/// Which phases a step may combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batching {
    /// Decoding sequences, and chunks of prompts beside them.
    Mixed,
    /// Only prompts whenever one waits.
    PrefillFirst,
}

/// What memory for keys and values a request takes when it is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvAdmission {
    /// Memory for its prompt and its whole answer, so nothing is preempted.
    Reserved,
    /// Memory for what is computed next. Where none is left, the sequence that was admitted last gives its memory back and is computed anew later.
    OnDemand,
}

/// The phases that the instances of a pool run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolRole {
    /// Prompts and answers.
    Both,
    /// Prompts only: they compute the first token.
    Prefill,
    /// Answers only: they compute the further tokens.
    Decode,
}

/// Equal instances of the model on consecutive ranks. Each `ep` of them share experts, and their steps run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Phases that its instances run.
    pub role: PoolRole,
    /// Tensor-parallel ranks of an instance.
    pub tp: u32,
    /// Pipeline stages of an instance.
    pub pp: u32,
    /// Number of instances; a multiple of `ep`.
    pub dp: u32,
    /// Number of instances that share experts.
    pub ep: u32,
    /// First of its ranks.
    pub first_rank: u32,
    /// Tokens whose keys and values an instance has memory for.
    pub kv_tokens: u64,
}

impl Pool {
    /// Number of ranks of the pool.
    pub fn ranks(&self) -> u32 {
        self.tp * self.pp * self.dp
    }

    /// Rank of one GPU of an instance.
    pub fn rank(&self, instance: u32, stage: u32, tp: u32) -> u32 {
        self.first_rank + (instance * self.pp + stage) * self.tp + tp
    }

    /// Instance, stage and tensor-parallel place of a rank of the pool.
    pub fn place(&self, rank: u32) -> (u32, u32, u32) {
        let offset = rank - self.first_rank;
        (offset / self.tp / self.pp, offset / self.tp % self.pp, offset % self.tp)
    }

    /// Number of engines: groups of instances whose steps run together.
    pub fn engines(&self) -> u32 {
        self.dp / self.ep
    }

    /// Name of an instance in messages.
    pub fn name(&self) -> &'static str {
        match self.role {
            PoolRole::Both => "an instance",
            PoolRole::Prefill => "an instance that prefills",
            PoolRole::Decode => "an instance that decodes",
        }
    }

    /// The layout from which kernels are derived, for a step of `tokens` tokens.
    pub fn layout(&self, setup: &ServingSetup, tokens: u32) -> Layout {
        Layout {
            tp: self.tp,
            pp: self.pp,
            dp: self.dp,
            ep: self.ep,
            global_batch: self.dp,
            seq: tokens.max(1),
            precision: setup.precision,
            fused_activation_cast: true,
            flash_attention: true,
            expert_skew: setup.expert_skew,
            expert_dispatcher: setup.expert_dispatcher,
            ..Layout::one_gpu()
        }
    }

    /// Layers of each stage, as (first, end).
    pub fn stages(&self, layers: u32) -> Vec<(u32, u32)> {
        let layout = Layout { pp: self.pp, ..Layout::one_gpu() };
        let mut first = 0;
        let stage = |n: u32| {
            first += n;
            (first - n, first)
        };
        layout.chunk_layers(layers, 0).into_iter().map(stage).collect()
    }
}

impl ServingSetup {
    /// The model's transformer. PRECONDITION: the caller that made the setup checked that it is a transformer.
    pub fn transformer(&self) -> &Transformer {
        self.model.transformer().expect("checked when the setup was made")
    }

    /// Tokens of a decoding sequence that a step computes: the last one that was chosen, and those that were drafted.
    pub fn decode_tokens(&self) -> u32 {
        1 + self.draft.map_or(0, |draft| draft.tokens)
    }

    /// Layers that draft on a stage.
    pub fn draft_layers(&self, pool: &Pool, stage: u32) -> u32 {
        self.draft.filter(|_| stage + 1 == pool.pp).map_or(0, |draft| draft.layers)
    }

    /// The pool that requests arrive at.
    pub fn first_pool(&self) -> &Pool {
        &self.pools[0]
    }

    /// Number of ranks of all pools.
    pub fn ranks(&self) -> u32 {
        self.pools.iter().map(Pool::ranks).sum()
    }

    /// Index of the pool of a rank.
    pub fn pool_of(&self, rank: u32) -> usize {
        self.pools.iter().rposition(|p| p.first_rank <= rank).unwrap_or(0)
    }
}
