//! Why a cluster cannot be simulated.
//!
//! Layer: cluster.

use std::path::PathBuf;

use crate::batch::{BuildError, PrepareError};
use crate::routing::RouteError;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The network, or what it costs.
    #[error(transparent)]
    Network(#[from] PrepareError),
    /// A trace that cannot be read.
    #[error("{}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of a trace that is wrong.
    #[error("{}:{line}: {why}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// A job that could never run.
    #[error("job {job} asks for {gpus} GPUs; {limit}")]
    TooLarge {
        /// Its name.
        job: String,
        /// What it asks for.
        gpus: u32,
        /// What there is.
        limit: String,
    },
    /// A job whose iterations take longer than any job may.
    #[error(
        "job {job}: {iterations} iterations take {:.0} hours; a job has a million at most: give it fewer iterations",
        *.ms as f64 / 3.6e6
    )]
    TooLong {
        /// Its name.
        job: String,
        /// What it asks for.
        iterations: u64,
        /// What they take in one rack.
        ms: u128,
    },
    /// More spares than servers.
    #[error(
        "failures.hot_spares and failures.cold_spares are {spares} servers together; the cluster has {servers}, and one at least has to run jobs"
    )]
    Spares {
        /// Of both kinds.
        spares: u64,
        /// All.
        servers: u32,
    },
    /// Nothing can happen any more, but jobs wait: a defect of a scheduler or placement.
    #[error(
        "{waiting} jobs wait at {hours:.3} h, nothing runs and nothing can happen any more: the scheduler or the placement starts none of them"
    )]
    Stuck {
        /// Jobs in the queue.
        waiting: usize,
        /// When.
        hours: f64,
    },
    /// Events go on, but no job comes any further.
    #[error(
        "at {hours:.0} h jobs have come no further for {events} events: {waiting} wait and {running} run; the first to wait is job {job} with {gpus} GPUs. Let more servers be up at a time, fail less often, or save more often; jobs.simulated_hours ends the run in any case"
    )]
    NoProgress {
        /// When.
        hours: f64,
        /// Since anything was done that lasts.
        events: u64,
        /// Jobs in the queue, and jobs that run.
        waiting: usize,
        /// Likewise.
        running: usize,
        /// The first in the queue, else one that runs.
        job: String,
        /// What it asks for.
        gpus: u32,
    },
    /// Two servers of a job do not reach each other.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// Iterations that are no tables.
    #[error("iterations of jobs (scheduler.iterations_at): {0}")]
    Build(#[from] BuildError),
    /// Iterations came to no end.
    #[error("iterations of jobs stopped with status {status}: a defect, please report the sweep file")]
    Iterations {
        /// Of `columns::status`.
        status: u32,
    },
    /// Later iterations of a program use other queue pairs than the first ones.
    #[error(
        "iterations of jobs use {needs} queue pairs, the first of them {has}: a defect, please report the sweep file"
    )]
    QueuePairs {
        /// Those of the first iterations.
        has: usize,
        /// Those of all.
        needs: usize,
    },
    /// The packet engine could not go on with iterations.
    #[error("iterations of jobs as packets: {0}")]
    Packets(String),
    /// The user has asked to stop.
    #[error("interrupted")]
    Interrupted,
}
