//! Times without simulating a packet: estimates, closed forms, long pipelines from short ones.

pub mod closed_forms;
pub mod estimate;
pub(crate) mod message_estimate;
pub(crate) mod steady_pipeline;
pub mod worked_out;
