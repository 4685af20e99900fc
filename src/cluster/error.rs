//! Errors of simulating a cluster.
//!
//! Layer: cluster.

use std::path::PathBuf;

use hyperfold_host::{BuildError, PrepareError};
use hyperfold_network::routing::RouteError;

/// Why a cluster has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The network cannot be built, or its cost cannot be computed.
    #[error(transparent)]
    Network(#[from] PrepareError),
    /// A trace file cannot be read.
    #[error("{}", .path.display())]
    Unreadable {
        /// The trace file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A line of a trace is wrong.
    #[error("{}:{line}: {why}", .path.display())]
    Line {
        /// The trace file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: u64,
        /// The fault and its remedy, in words for the user.
        why: String,
    },
    /// A job asks for more GPUs than it could ever get.
    #[error("job {job} asks for {gpus} GPUs; {limit}")]
    TooLarge {
        /// Name of the job.
        job: String,
        /// GPUs that the job asks for.
        gpus: u32,
        /// The limit that it exceeds, and how to fix it, in words.
        limit: String,
    },
    /// The iterations of a job take longer than any job may.
    #[error(
        "job {job}: {iterations} iterations take {:.0} hours; a job has a million at most: give it fewer iterations",
        *.ms as f64 / 3.6e6
    )]
    TooLong {
        /// Name of the job.
        job: String,
        /// Iterations that the job asks for.
        iterations: u64,
        /// Time that these iterations take in one rack, in ms.
        ms: u128,
    },
    /// There are at least as many spares as servers.
    #[error(
        "failures.hot_spares and failures.cold_spares are {spares} servers together; the cluster has {servers}, and one at least has to run jobs"
    )]
    Spares {
        /// Hot and cold spares together.
        spares: u64,
        /// All servers of the cluster.
        servers: u32,
    },
    /// Jobs wait, but nothing can happen any more: a defect of a scheduler or placement.
    #[error(
        "{waiting} jobs wait at {hours:.3} h, nothing runs and nothing can happen any more: the scheduler or the placement starts none of them"
    )]
    Stuck {
        /// Jobs in the queue.
        waiting: usize,
        /// Simulated time, in hours.
        hours: f64,
    },
    /// A policy that a program registered panicked or gave an impossible answer.
    #[error("{policy}: {why}; other experiments are not touched by it")]
    Policy {
        /// Key, name and version of the policy, in words.
        policy: String,
        /// The fault of the policy.
        why: String,
    },
    /// Events go on, but no job makes lasting progress.
    #[error(
        "at {hours:.0} h jobs have come no further for {events} events: {waiting} wait and {running} run; the first to wait is job {job} with {gpus} GPUs. Let more servers be up at a time, fail less often, or save more often; jobs.simulated_hours ends the run in any case"
    )]
    NoProgress {
        /// Simulated time, in hours.
        hours: f64,
        /// Events since the last lasting progress.
        events: u64,
        /// Jobs in the queue.
        waiting: usize,
        /// Jobs that run.
        running: usize,
        /// Name of the first job in the queue; if the queue is empty, of a running job.
        job: String,
        /// GPUs that this job asks for.
        gpus: u32,
    },
    /// Two servers of a job do not reach each other.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// Tables for the iterations cannot be built.
    #[error("iterations of jobs (scheduler.iterations_at): {0}")]
    Build(#[from] BuildError),
    /// Simulated iterations stopped before they were done.
    #[error("iterations of jobs stopped with status {status}: a defect, please report the sweep file")]
    Iterations {
        /// Final status of the experiment, one of `columns::status`.
        status: u32,
    },
    /// Later iterations of a program use other queue pairs than the first ones.
    #[error(
        "iterations of jobs use {needs} queue pairs, the first of them {has}: a defect, please report the sweep file"
    )]
    QueuePairs {
        /// Queue pairs of the first iterations.
        has: usize,
        /// Queue pairs of all iterations.
        needs: usize,
    },
    /// The packet engine could not go on with iterations.
    #[error("iterations of jobs as packets: {0}")]
    Packets(String),
    /// The user has asked to stop.
    #[error("interrupted")]
    Interrupted,
}
