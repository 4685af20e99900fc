//! What the scheduler decided: steps of instances, and where each request is in them.

use super::step_cost::{BoundTimes, StageCost};
use super::step_shape::StepShape;

/// One step of the instances of an engine.
#[derive(Clone, Debug)]
pub struct Round {
    pub start_ps: u64,
    pub end_ps: u64,
    /// Of each instance of the engine.
    pub instances: Vec<InstanceRound>,
    /// Times and exchanges of each stage, by instance.
    pub costs: Vec<Vec<StageCost>>,
    /// The engine's last round that had ended when this one was put together.
    pub after: Option<u32>,
}

/// What an instance has in a round.
#[derive(Clone, Debug, Default)]
pub struct InstanceRound {
    pub shape: StepShape,
    /// Requests that are in a round for the first time on the pool where they arrive.
    pub admitted: Vec<u32>,
    /// Requests whose keys and values came from elsewhere and are used for the first time.
    pub received: Vec<u32>,
    /// Requests whose keys and values had left before, which made room for those admitted.
    pub sent: Vec<u32>,
    /// Requests whose prompts end in this round, and whose keys and values go elsewhere then.
    pub handed_on: Vec<u32>,
}

/// A round, by its engine and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundAt {
    pub engine: u32,
    pub round: u32,
}

/// Where a request is served. Times are those of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRequest {
    /// Instance of the first pool, counted there; and of the second, where there is one and the answer has more than a token.
    pub instance: u32,
    pub decode_instance: Option<u32>,
    /// The first that it is in; that of its first token; that of its last.
    pub first_round: RoundAt,
    pub first_token: RoundAt,
    pub last_token: RoundAt,
    pub first_token_ps: u64,
    pub last_token_ps: u64,
    /// Round of its decoding engine that made room for it; `None`: there was room.
    pub room_after: Option<u32>,
}

/// What the scheduler decided and saw.
#[derive(Clone, Debug)]
pub struct ServingPlan {
    /// Engines of the first pool, then of the second.
    pub engines: Vec<ServingEngine>,
    /// As requests were given.
    pub requests: Vec<PlannedRequest>,
    /// By pool.
    pub pools: Vec<PoolUse>,
}

/// Instances whose steps are one.
#[derive(Clone, Debug, Default)]
pub struct ServingEngine {
    pub pool: usize,
    /// First of its instances, counted in the pool.
    pub first_instance: u32,
    pub rounds: Vec<Round>,
}

/// How a pool was used. Times are sums over instances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolUse {
    pub rounds: u64,
    /// Sequences in rounds, for their mean.
    pub sequences: u64,
    /// Keys and values, in tokens: most at a time of one instance, and time times tokens over all.
    pub kv_peak_tokens: u64,
    pub kv_token_ps: u128,
    /// Time in which the first of a queue waits for memory alone.
    pub kv_blocked_ps: u64,
    /// What the stages of its rounds take.
    pub bound: BoundTimes,
}
