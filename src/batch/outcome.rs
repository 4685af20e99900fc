//! The outcome of an experiment: its flows, links, iteration and totals, or why there is none.
//!
//! Layer: batch. Plain data in integers; `read_outcome` fills it, `results` formats it.

use std::ops::Range;
use std::sync::Arc;

use crate::cost::Bill;
use crate::workload::program::Workload;
use crate::workload::serving::{BoundTimes, PoolRole};

use super::breakdown::Breakdown;
use super::planner::LongestCollective;

/// A flow's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOutcome {
    pub id: u32,
    pub src: u32,
    pub dst: u32,
    pub bytes: u64,
    pub start_ps: u64,
    pub ideal_ps: u64,
    /// From start to the last ACK at the sender.
    pub fct_ps: Option<u64>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkOutcome {
    pub name: String,
    pub rate_bps: u64,
    /// Wire bytes sent, pause frames included.
    pub bytes: u64,
    pub max_queue_bytes: u64,
    /// Integral of the egress queue over time, units of 1024 byte-picoseconds.
    pub queue_area: u64,
    pub marks: u64,
    /// Pause frames that reached the transmitter.
    pub pauses: u64,
    pub drops: u64,
}

/// All that is known of an experiment that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExperimentOutcome {
    /// From 0 to the last completion; of several jobs to that of the last that is no background.
    pub makespan_ps: u64,
    /// Shared by duplicates of an experiment.
    pub flows: Arc<Vec<FlowOutcome>>,
    /// Flows had rates in place of packets: counts of packets, marks, pauses, drops and queues are unknown.
    pub flow_level: bool,
    pub packet_hops: u64,
    /// Marks that switch ports put on data packets.
    pub ecn_marks: u64,
    /// Pause frames received.
    pub pfc_pauses: u64,
    pub drops: u64,
    /// Data packets that were sent again.
    pub retransmissions: u64,
    pub max_queue_bytes: u64,
    pub links: Vec<LinkOutcome>,
    /// (flow, when, round-trip time), by flow.
    pub rtts: Vec<(u32, u64, u64)>,
    /// Of several jobs that of the first.
    pub iteration: Option<Iteration>,
    /// Of inference; of several jobs that of the first that serves.
    pub serving: Option<Arc<ServingOutcome>>,
    /// How the collective is carried out that takes longest.
    pub longest_collective: Option<LongestCollective>,
    /// Memory of the fullest rank, where a model tells.
    pub peak_memory_bytes: Option<u64>,
    /// What the cluster costs and draws.
    pub bill: Option<Bill>,
    /// Where there are several, in their order.
    pub jobs: Vec<JobOutcome>,
    /// Links that data of several of them cross, in the order of link ends, where somebody asks for them.
    pub shared_links: Vec<SharedLinkOutcome>,
}

impl ExperimentOutcome {
    /// Each job by its name, with its times.
    pub fn job_times(&self) -> Vec<(Arc<str>, JobTimes)> {
        let times = |job: &JobOutcome| JobTimes {
            makespan_ps: job.end_ps.map(|end| end - job.start_ps),
            iteration_ps: job.iteration.map(|iteration| iteration.time.total),
        };
        self.jobs.iter().map(|job| (Arc::clone(&job.name), times(job))).collect()
    }
}

/// A direction of a link that data of several jobs cross.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLinkOutcome {
    pub name: String,
    /// Places of these jobs, ascending, and the payload of each over the link.
    pub jobs: Vec<(usize, u64)>,
}

/// What one of several jobs came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutcome {
    pub name: Arc<str>,
    /// `workload.kind`.
    pub kind: String,
    pub gpus: u32,
    /// Which, in the order of ranks: `0-7,16`.
    pub gpu_list: String,
    /// As the sweep file has it.
    pub placement: String,
    pub background: bool,
    pub start_ps: u64,
    /// Its last completion; `None`: something of it did not end.
    pub end_ps: Option<u64>,
    pub iteration: Option<Iteration>,
    pub serving: Option<Arc<ServingOutcome>>,
    pub peak_memory_bytes: Option<u64>,
    pub longest_collective: Option<LongestCollective>,
    /// Its flows among those of the experiment.
    pub flows: Range<usize>,
    /// Payload.
    pub bytes: u64,
    /// Of carrying each packet once.
    pub packet_hops: u64,
    /// Jobs whose data cross links that its data cross, and how many links.
    pub shares_with: Vec<(Arc<str>, u32)>,
    pub shared_links: u32,
    /// Payload over these links, each counted.
    pub shared_bytes: u64,
    /// The shared link over which most bytes of all jobs go.
    pub busiest_shared_link: Option<String>,
    /// The same job without the others, where that was simulated.
    pub alone: Option<JobTimes>,
    /// The same job beside all others but the named one, where that was simulated.
    pub without: Vec<(Arc<str>, JobTimes)>,
}

/// Times of a job; `None`: it did not end, or has no iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTimes {
    /// From the job's start to its end.
    pub makespan_ps: Option<u64>,
    pub iteration_ps: Option<u64>,
}

/// What a program came to, per measured iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iteration {
    /// The rank whose timeline it is.
    pub rank: u32,
    pub time: Breakdown,
    pub ranks: u64,
    /// As in `Workload`: 0 where they do not apply.
    pub tokens: u64,
    pub model_flops: u128,
    pub peak_flops: u64,
    /// A benchmark of one collective: its bytes, and bus over algorithm bandwidth.
    pub collective: Option<(u64, (u64, u64))>,
}

impl Iteration {
    /// Of a workload, whose critical rank and time are `found`.
    pub(super) fn of(
        workload: &Workload,
        collective: Option<(u64, (u64, u64))>,
        (rank, time): (u32, Breakdown),
    ) -> Iteration {
        Iteration {
            rank,
            time,
            ranks: workload.ranks.len() as u64,
            tokens: workload.tokens,
            model_flops: workload.model_flops,
            peak_flops: workload.peak_flops,
            collective,
        }
    }
}

/// What inference came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingOutcome {
    /// In the order of their arrival.
    pub requests: Vec<RequestOutcome>,
    pub pools: Vec<PoolOutcome>,
}

/// One request. Times count from the job's start; `None`: it did not come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOutcome {
    pub arrival_ps: u64,
    pub prompt: u32,
    pub output: u32,
    pub instance: u32,
    /// Of the pool that decodes, where that is another one.
    pub decode_instance: Option<u32>,
    /// Its first step begins.
    pub begin_ps: Option<u64>,
    pub first_token_ps: Option<u64>,
    pub last_token_ps: Option<u64>,
    /// Its keys and values are on all ranks that decode.
    pub received_ps: Option<u64>,
    pub transferred_bytes: u64,
}

/// One pool of GPUs. Times are sums over the stages of all instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOutcome {
    pub role: PoolRole,
    pub instances: u32,
    pub stages: u32,
    pub gpus: u32,
    pub rounds: u64,
    pub sequences: u64,
    /// Of one instance.
    pub kv_capacity_tokens: u64,
    pub kv_peak_tokens: u64,
    /// Tokens times time over all instances.
    pub kv_token_ps: u128,
    /// Of instances.
    pub kv_blocked_ps: u64,
    /// From the begin to the end of rounds.
    pub busy_ps: u64,
    /// As planned: kernels by what bounds them.
    pub bound: BoundTimes,
}

/// Why an experiment has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Failed(String),
    /// The machine ended it, not the model: `limits.wall_s` was reached, or there was too little memory.
    MachineLimit(String),
    /// The fullest rank needs more memory than its GPU has: a result that costs nothing.
    Oom {
        peak_bytes: u64,
        /// What the bytes are, in words.
        breakdown: String,
    },
}
