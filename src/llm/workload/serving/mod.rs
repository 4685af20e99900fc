//! Inference: requests to a model, from their arrival to their last token, as programs of ranks.
//!
//! Layer: workload. [`draw`] and [`read_requests`] give requests. `schedule` runs the scheduler of every instance over them, with the times that kernels and
//! communication take on an idle system ([`StepCosts`]). [`serve`] writes the resulting plan as programs: steps in the planned order, none before its requests
//! or their keys and values are there. How long steps take when they compete is left to the simulation of the programs. Knows no network.

mod decisions;
mod error;
mod graph;
mod kv;
mod request;
mod request_file;
mod scheduler;
mod setup;
mod state;
mod step_cost;
mod step_shape;
#[cfg(test)]
mod tests;

pub use decisions::{PlannedRequest, PoolUse, Round, ServingPlan};
pub use error::ServingError;
pub use graph::{RequestOps, RoundOps, ServedOps, ServedWorkload, serve};
pub use kv::{KvTransfer, kv_capacity_tokens, kv_token_bytes, kv_transfers, weight_bytes, wrong_model};
pub use request::{Prefix, RequestDistribution, ServingRequest, draw};
pub use request_file::{MAX_S, RequestTrace, read_requests};
pub use scheduler::schedule;
pub use setup::{Batching, Draft, KvAdmission, Pool, PoolRole, ServingSetup};
pub use step_cost::{BoundTimes, StageCost, StepCosts};
pub use step_shape::{StepShape, StepSize};
