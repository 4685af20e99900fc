//! The scheduler's decisions: the steps of instances, and the steps that each request is in.

use super::step_cost::{BoundTimes, StageCost};
use super::step_shape::StepShape;

/// One step of all instances of an engine.
#[derive(Clone, Debug)]
pub struct Round {
    /// Time of its start, as the scheduler computes it.
    pub start_ps: u64,
    /// Time of its end, as the scheduler computes it.
    pub end_ps: u64,
    /// One entry per instance of the engine.
    pub instances: Vec<InstanceRound>,
    /// Times and exchanges, by instance and stage.
    pub costs: Vec<Vec<StageCost>>,
    /// The engine's last round that had ended when this round was formed.
    pub after: Option<u32>,
}

/// The part of an instance in a round.
#[derive(Clone, Debug, Default)]
pub struct InstanceRound {
    /// Tokens and sequences that it processes.
    pub shape: StepShape,
    /// Requests that are in a round for the first time, on the pool where they arrive.
    pub admitted: Vec<u32>,
    /// Requests whose keys and values came from another pool and are used for the first time.
    pub received: Vec<u32>,
    /// Requests whose keys and values left before this round, which freed memory for the admitted requests.
    pub sent: Vec<u32>,
    /// Requests whose prompts end in this round and whose keys and values then go to another pool.
    pub handed_on: Vec<u32>,
}

/// A round: its engine and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundAt {
    /// Number of the engine.
    pub engine: u32,
    /// Number of the round, from 0.
    pub round: u32,
}

/// Engines and times at which a request is served. Times are as the scheduler computes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRequest {
    /// Instance of the first pool, counted there.
    pub instance: u32,
    /// Instance of the second pool, counted there. `None` without a second pool, or if the answer has one token.
    pub decode_instance: Option<u32>,
    /// The request's first round.
    pub first_round: RoundAt,
    /// Round of the request's first token.
    pub first_token: RoundAt,
    /// Round of the request's last token.
    pub last_token: RoundAt,
    /// Time of the first token.
    pub first_token_ps: u64,
    /// Time of the last token.
    pub last_token_ps: u64,
    /// Round of the decoding engine whose end freed the memory for the request; `None` if there was memory at once.
    pub room_after: Option<u32>,
    /// The request of the same client whose end it waited for; `None` if it arrived on its own.
    pub after: Option<u32>,
    /// Tokens of its prompt whose keys and values were in memory when it was admitted first.
    pub cached: u32,
    /// How often its memory was taken from it, so that it was computed anew.
    pub preemptions: u32,
}

/// Everything the scheduler decided, and its statistics.
#[derive(Clone, Debug)]
pub struct ServingPlan {
    /// Engines of the first pool, then of the second.
    pub engines: Vec<ServingEngine>,
    /// The requests, in the order in which they were given.
    pub requests: Vec<PlannedRequest>,
    /// Statistics of each pool.
    pub pools: Vec<PoolUse>,
}

/// A group of instances that share experts and therefore run their steps together.
#[derive(Clone, Debug, Default)]
pub struct ServingEngine {
    /// Index of its pool.
    pub pool: usize,
    /// First of the engine's instances, counted in the pool.
    pub first_instance: u32,
    /// Rounds in the order of time.
    pub rounds: Vec<Round>,
}

/// How a pool was used. Times are sums over instances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolUse {
    /// Number of rounds.
    pub rounds: u64,
    /// Sum over rounds of the sequences in each, for their mean.
    pub sequences: u64,
    /// Most keys and values of one instance at a time, in tokens.
    pub kv_peak_tokens: u64,
    /// Sum over instances of keys and values times the time that they are held, in tokens times ps.
    pub kv_token_ps: u128,
    /// Time in which the first request of a queue waits for memory alone.
    pub kv_blocked_ps: u64,
    /// Times of the stages of its rounds, by what bounds them.
    pub bound: BoundTimes,
}
