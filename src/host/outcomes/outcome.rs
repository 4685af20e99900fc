//! The outcome of an experiment: its flows, links, iteration and totals, or the reason why there is none.
//!
//! Layer: host. Plain integer data; `read_outcome` fills it, `results` formats it.

use std::ops::Range;
use std::sync::Arc;

use crate::cost::Bill;
use hyperfold_columns::{Exp, PortIdx, watch};
use hyperfold_llm::workload::program::Workload;
use hyperfold_llm::workload::serving::{BoundTimes, PoolRole};

use crate::outcomes::breakdown::Breakdown;
use crate::outcomes::series_outcome::SeriesOutcome;
use crate::programs::plans::planner::LongestCollective;

/// Round trips of a flow or queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeanRoundTrip {
    /// The number that users see.
    pub flow_id: u32,
    /// Source, numbered as that of a [`FlowOutcome`].
    pub src: u32,
    /// Destination, numbered as the source.
    pub dst: u32,
    /// Number of round trips.
    pub n: u32,
    /// Their mean, in ps, rounded down.
    pub mean_ps: u64,
}

/// The outcome of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Number of the flow.
    pub id: u32,
    /// Source: a host's id in the topology file, or a GPU's rank.
    pub src: u32,
    /// Destination, numbered as the source.
    pub dst: u32,
    /// Payload, bytes.
    pub bytes: u64,
    /// Time of its start, ps.
    pub start_ps: u64,
    /// Completion time on an idle network, ps.
    pub ideal_ps: u64,
    /// Time from start to the last ACK at the sender, ps; `None`: it did not finish.
    pub fct_ps: Option<u64>,
    /// Data packets that were sent again; `None`: there were no packets, or those of several messages cannot be told apart.
    pub retransmissions: Option<u64>,
}

/// The outcome of one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkOutcome {
    /// Name of the link direction, as in `host3->leaf0`.
    pub name: String,
    /// Rate of the link, bps.
    pub rate_bps: u64,
    /// Wire bytes sent, pause frames included.
    pub bytes: u64,
    /// Largest egress queue, bytes.
    pub max_queue_bytes: u64,
    /// Integral of the egress queue over time, in units of 1024 byte-picoseconds.
    pub queue_area: u64,
    /// Data packets marked by ECN.
    pub marks: u64,
    /// Pause frames that reached the transmitter.
    pub pauses: u64,
    /// Time for which the transmitter was paused, ps; the times of several traffic classes add up.
    pub paused_ps: u64,
    /// Packets dropped.
    pub drops: u64,
}

/// What the watchdog of pauses did in an experiment, if there was one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchdogOutcome {
    /// Number of times that it began to act for a traffic class of a switch port.
    pub starts: u64,
    /// Number of ports at which it did.
    pub ports: u64,
    /// Packets that it dropped.
    pub drops: u64,
}

impl WatchdogOutcome {
    /// Adds up what the watchdog did at all ports of the experiment with this header and these shared words.
    pub(crate) fn read(exp: &Exp, shared: &[u32]) -> WatchdogOutcome {
        let mut sums = WatchdogOutcome::default();
        if exp.watch_first == 0 {
            return sums;
        }
        for port in PortIdx::all(exp.port_len) {
            let mut starts = 0;
            for class in 0..exp.class_n.max(1) {
                let words = exp.watch_words(port, class);
                starts += u64::from(shared[words + watch::STARTS as usize]);
                sums.drops += u64::from(shared[words + watch::DROPS as usize]);
            }
            sums.starts += starts;
            sums.ports += u64::from(starts > 0);
        }
        sums
    }
}

/// The outcome of an experiment that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExperimentOutcome {
    /// Time from 0 to the last completion, ps; with several jobs, to the last completion of a job that is no background job.
    pub makespan_ps: u64,
    /// The flows; duplicates of an experiment share them.
    pub flows: Arc<Vec<FlowOutcome>>,
    /// Whether flows had rates instead of packets: then counts of packets, marks, pauses, drops and queues are unknown.
    pub flow_level: bool,
    /// Packets that left a port, each time counted.
    pub packet_hops: u64,
    /// Marks that switch ports put on data packets.
    pub ecn_marks: u64,
    /// Pause frames received.
    pub pfc_pauses: u64,
    /// Paused time of all link ends together, ps.
    pub pfc_paused_ps: u64,
    /// Paused time of the link end that was paused longest, ps.
    pub pfc_paused_max_ps: u64,
    /// Packets dropped.
    pub drops: u64,
    /// What the watchdog of pauses did.
    pub watchdog: WatchdogOutcome,
    /// Data packets that were sent again.
    pub retransmissions: u64,
    /// Largest egress queue of any port, bytes.
    pub max_queue_bytes: u64,
    /// Directions of links in the order of link ends; empty unless the configuration asks for them.
    pub links: Vec<LinkOutcome>,
    /// RTT samples as (flow id, time in ps, round-trip time in ps), sorted by flow.
    pub rtts: Vec<(u32, u64, u64)>,
    /// Mean round-trip times, sorted by flow, if they were added up. A flow without one is left out.
    pub rtt_means: Vec<MeanRoundTrip>,
    /// Samples over time, if the configuration asks for them.
    pub series: Option<Arc<SeriesOutcome>>,
    /// Iteration of the program; with several jobs, of the first one that is no background job.
    pub iteration: Option<Iteration>,
    /// Outcome of inference; with several jobs, of the first job that serves.
    pub serving: Option<Arc<ServingOutcome>>,
    /// How the collective that takes longest is carried out.
    pub longest_collective: Option<LongestCollective>,
    /// Memory of the fullest rank, bytes, where a model tells.
    pub peak_memory_bytes: Option<u64>,
    /// Costs and power of the cluster.
    pub bill: Option<Bill>,
    /// Outcomes of several jobs, in their order; else empty.
    pub jobs: Vec<JobOutcome>,
    /// Links that data of several jobs cross, in the order of link ends, if the configuration asks for them.
    pub shared_links: Vec<SharedLinkOutcome>,
}

impl ExperimentOutcome {
    /// Returns each job's name and times.
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
    /// Name of the link direction, as in `leaf0->spine1`.
    pub name: String,
    /// The jobs on the link as (index, payload bytes), ascending.
    pub jobs: Vec<(usize, u64)>,
}

/// The outcome of one of several jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutcome {
    /// Name in the sweep file.
    pub name: Arc<str>,
    /// Value of `workload.kind`.
    pub kind: String,
    /// Number of its GPUs.
    pub gpus: u32,
    /// GPUs in the order of ranks, as text: `0-7,16`.
    pub gpu_list: String,
    /// Placement as in the sweep file.
    pub placement: String,
    /// Whether it is a background job, which the experiment does not wait for.
    pub background: bool,
    /// Time of its start, ps.
    pub start_ps: u64,
    /// Time of its last completion, ps; `None`: a part of it did not end.
    pub end_ps: Option<u64>,
    /// Iteration of its program; `None`: it has none, or none was measured.
    pub iteration: Option<Iteration>,
    /// Outcome of inference, if it serves.
    pub serving: Option<Arc<ServingOutcome>>,
    /// Memory of its fullest rank, bytes, where a model tells.
    pub peak_memory_bytes: Option<u64>,
    /// How the collective that takes longest is carried out.
    pub longest_collective: Option<LongestCollective>,
    /// Range of its flows among those of the experiment.
    pub flows: Range<usize>,
    /// Payload, bytes.
    pub bytes: u64,
    /// Packet-hops if each packet is carried once.
    pub packet_hops: u64,
    /// Jobs whose data cross links that its data cross, each with the number of such links.
    pub shares_with: Vec<(Arc<str>, u32)>,
    /// Number of links that its data and data of any other job cross.
    pub shared_links: u32,
    /// Payload on these links, bytes, counted once per link.
    pub shared_bytes: u64,
    /// Name of the shared link that carries most bytes of all jobs.
    pub busiest_shared_link: Option<String>,
    /// Times of the same job without other jobs, if that was simulated.
    pub alone: Option<JobTimes>,
    /// Times of the same job without the named job, but beside all others, where that was simulated.
    pub without: Vec<(Arc<str>, JobTimes)>,
}

/// Times of a job; `None`: it did not end, or has no iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTimes {
    /// Time from the job's start to its end, ps.
    pub makespan_ps: Option<u64>,
    /// Mean time of a measured iteration, ps.
    pub iteration_ps: Option<u64>,
}

/// A program's mean measured iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iteration {
    /// The rank whose timeline `time` splits.
    pub rank: u32,
    /// The uses of that rank's time.
    pub time: Breakdown,
    /// Number of ranks of the program.
    pub ranks: u64,
    /// Tokens per iteration; 0 if it does not apply.
    pub tokens: u64,
    /// Floating-point operations of the model per iteration, all ranks together; 0 if it does not apply.
    pub model_flops: u128,
    /// Peak of one GPU, in floating-point operations a second; 0 if it does not apply.
    pub peak_flops: u64,
    /// For a benchmark of one collective: its bytes, and bus bandwidth over algorithm bandwidth.
    pub collective: Option<(u64, (u64, u64))>,
}

impl Iteration {
    /// Creates the iteration of a workload from its critical rank and that rank's time.
    pub(crate) fn of(
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

/// The outcome of inference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingOutcome {
    /// Requests in the order of their arrival.
    pub requests: Vec<RequestOutcome>,
    /// Pools of GPUs: one for both phases, or one for prefill and one for decode.
    pub pools: Vec<PoolOutcome>,
}

/// One request. Times count from the job's start, ps; `None`: the request did not get so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOutcome {
    /// Time of its arrival.
    pub arrival_ps: u64,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens of its answer.
    pub output: u32,
    /// Instance at which it arrives.
    pub instance: u32,
    /// Instance of the pool that decodes, if that is another pool.
    pub decode_instance: Option<u32>,
    /// Time when its first step begins.
    pub begin_ps: Option<u64>,
    /// Time of its first token.
    pub first_token_ps: Option<u64>,
    /// Time of its last token.
    pub last_token_ps: Option<u64>,
    /// Time when its keys and values are on all ranks that decode.
    pub received_ps: Option<u64>,
    /// Keys and values that were sent to the pool that decodes, bytes.
    pub transferred_bytes: u64,
    /// How often its memory was taken from it, so that it was computed anew.
    pub preemptions: u32,
    /// Tokens of its prompt whose keys and values were in memory when it was admitted first.
    pub cached: u32,
}

/// One pool of GPUs. Times are sums over the stages of all instances, ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOutcome {
    /// Phases that it serves.
    pub role: PoolRole,
    /// Number of instances of the model.
    pub instances: u32,
    /// Pipeline stages of an instance.
    pub stages: u32,
    /// GPUs of the pool.
    pub gpus: u32,
    /// Rounds of all instances.
    pub rounds: u64,
    /// Sequences in these rounds, added up.
    pub sequences: u64,
    /// Capacity for keys and values of one instance, tokens.
    pub kv_capacity_tokens: u64,
    /// Most tokens in the cache of an instance.
    pub kv_peak_tokens: u64,
    /// Tokens in the cache times time, summed over all instances.
    pub kv_token_ps: u128,
    /// Time in which instances were blocked for lack of memory for keys and values, ps.
    pub kv_blocked_ps: u64,
    /// Time from begin to end of rounds.
    pub busy_ps: u64,
    /// Planned kernel time by what bounds the kernels.
    pub bound: BoundTimes,
}

/// A reason why an experiment has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The experiment cannot run or did not end; the reason for the user.
    Failed(String),
    /// The machine ended it, not the model: `limits.wall_s` was reached, or memory was too small.
    MachineLimit(String),
    /// The fullest rank needs more memory than its GPU has. This result needs no simulation.
    Oom {
        /// Memory that the fullest rank needs, bytes.
        peak_bytes: u64,
        /// The parts of the peak, in words.
        breakdown: String,
    },
}
