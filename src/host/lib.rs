//! The host side of a run: from resolved experiments to tables, through an engine, to outcomes.
//!
//! | module | content |
//! |---|---|
//! | [`setup`] | an experiment is prepared: network, flows or programs, placement of jobs, memory; errors say what to change |
//! | [`programs`] | programs of jobs become task graphs and queue pairs |
//! | [`tables`] | networks and task graphs become rows: the only place that knows both |
//! | [`batches`] | a batch as a bevy world, rounds, several devices, equal experiments once, checks of what ends |
//! | [`outcomes`] | results are read off rows; timelines and breakdowns of one experiment |
//! | [`estimates`] | times without packets: closed forms, and walks along task graphs |
//! | [`memo_file`] | what folding keeps on disk |
//! | [`kernel_check`] | kernels of a device, held against the CPU engine before they are believed |
//! | [`cost`] | prices and powers |
//!
//! It formats nothing, prints nothing and writes no results: that is `hyperfold-session`'s and `hyperfold-results`'.
//! Start with [`prepare`], then `batches/runner.rs`.

#![forbid(unsafe_code)]

pub mod batches;
pub mod cost;
pub mod estimates;
pub mod kernel_check;
pub mod memo_file;
pub mod outcomes;
pub mod programs;
pub mod setup;
pub mod tables;

pub use batches::devices::{Worker, run_on_devices};
pub use batches::runner::{MAX_FOLDED_PER_THREAD, RunEvent, RunOptions, run};
pub use batches::world::{Batch, Ended, Limits};
pub use estimates::estimate::estimate;
pub use outcomes::outcome::{
    Ending, ExperimentOutcome, FlowOutcome, Iteration, JobOutcome, JobTimes, LinkOutcome, MeanRoundTrip, PoolOutcome,
    RequestOutcome, ServingOutcome, SharedLinkOutcome, WatchdogOutcome,
};
pub use outcomes::series_outcome::{FlowSampleOutcome, LinkSampleOutcome, SeriesOutcome};
pub use programs::class_program::{ClassProgram, queue_pairs};
pub use programs::job_cache::{cached_job_bytes, experiments_begin_anew, forget_jobs};
pub use programs::join_graphs::add_tasks;
pub use programs::plans::plan_cache::forget_plans;
pub use programs::traffic::QP_DPORT;
pub use programs::training::TrainingSetup;
pub use setup::error::{BuildError, JobError, PrepareError, SetupError};
pub use setup::experiment::QueuedExperiment;
pub use setup::links::at_beginning::failed_before_run;
pub use setup::links::names::nodes_of_link;
pub use setup::memory_refusal::MemoryRefusal;
pub use setup::network::{cluster_network, file_loses_packets};
pub use setup::own_routing::{named_routing_policy, register_routing_policy};
pub use setup::prepare::{
    LONG_PACKET_HOPS, MemorySize, OUTCOME_BYTES, Prepared, prepare, prepare_within, unknown_to_folding,
};
pub use setup::prepared_before::{KeptExperiment, KeptExperiments, prepare_to_keep};
pub use setup::route::{fits, is_worked_out};
pub use setup::switches::chips::{BufferTier, TierChip, tier_chips};

/// The allocator of unit tests, which counts memory as the program does.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: hyperfold_base::budget::CountingAllocator = hyperfold_base::budget::CountingAllocator;
