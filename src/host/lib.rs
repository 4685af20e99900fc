//! The host side of a run: from resolved experiments to tables, through the engine, to outcomes.
//!
//! Layer: batch. Knows every layer above it; formats nothing and prints nothing.

#![forbid(unsafe_code)]

mod benchmark;
pub mod breakdown;
mod build_joined;
pub mod build_tables;
mod build_tasks;
mod class_program;
pub mod closed_forms;
pub mod conserve;
pub mod cost;
mod dedup;
mod dedup_key;
pub mod devices;
pub mod diagnose;
mod error;
pub mod estimate;
mod experiment;
pub mod flow_info;
pub mod fold_explain;
mod host_memory;
pub mod job;
mod job_cache;
mod job_key;
mod job_outcomes;
mod job_rows;
mod jobs;
mod join_graphs;
mod kept;
mod kernel_times;
mod marking;
pub mod memo_keeper;
pub mod memo_store;
mod memo_store_file;
mod memory_refusal;
mod message_estimate;
mod network;
pub mod outcome;
pub mod packet_case;
mod peers;
mod placement;
mod plan_cache;
mod planner;
pub mod prepare;
mod read_outcome;
mod route;
pub mod runner;
pub mod servers;
pub mod serving;
mod serving_outcome;
mod steady_pipeline;
mod task_row_cache;
pub mod timeline;
mod traffic;
pub mod training;
pub mod worked_out;
pub mod world;

pub use class_program::{ClassProgram, queue_pairs};
pub use devices::{Worker, run_on_devices};
pub use error::{BuildError, JobError, PrepareError, SetupError};
pub use estimate::estimate;
pub use experiment::QueuedExperiment;
pub use job_cache::{cached_job_bytes, experiments_begin_anew, forget_jobs};
pub use join_graphs::add_tasks;
pub use kept::{KeptExperiment, KeptExperiments, prepare_to_keep};
pub use memory_refusal::MemoryRefusal;
pub use network::cluster_network;
pub use outcome::{
    Ending, ExperimentOutcome, FlowOutcome, Iteration, JobOutcome, JobTimes, LinkOutcome, PoolOutcome, RequestOutcome,
    ServingOutcome, SharedLinkOutcome,
};
pub use plan_cache::forget_plans;
pub use prepare::{LONG_PACKET_HOPS, Prepared, prepare, prepare_within};
pub use route::{fits, is_worked_out};
pub use runner::{MOST_FOLDED_A_THREAD, RunEvent, RunOptions, run};
pub use traffic::QP_DPORT;
pub use training::TrainingSetup;
pub use world::{Batch, Ended, Limits};

/// The allocator of unit tests, which counts memory as the program does.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: hyperfold_base::budget::CountingAllocator = hyperfold_base::budget::CountingAllocator;
