//! Samples of link ends and queue pairs over time. No column: the host takes them between two steps.

use super::index::{FlowIdx, LinkEndIdx};

/// A link end at a sample time. Counters count from the beginning of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndSample {
    /// The link end, which transmits.
    pub end: LinkEndIdx,
    /// Bytes in its queue.
    pub queue_bytes: u32,
    /// Whether the other end has paused it.
    pub paused: bool,
    /// Number of times that it was paused.
    pub pauses: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Packets marked.
    pub marks: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Time for which it was paused, in ps.
    pub paused_ps: u64,
}

/// A queue pair at a sample time, at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// The queue pair.
    pub flow: FlowIdx,
    /// Rate in force, in bps.
    pub rate: u64,
    /// Window in force, in bytes; `None`: there is none.
    pub window: Option<u64>,
    /// Next byte to send.
    pub snd_nxt: u64,
    /// Oldest byte that is not acknowledged.
    pub snd_una: u64,
}

/// What has changed since the sample time before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesSample {
    /// Number of the sample time: its time divided by the interval.
    pub number: u64,
    /// Link ends that have changed, ascending.
    pub ends: Vec<EndSample>,
    /// Queue pairs that have changed, ascending.
    pub flows: Vec<FlowSample>,
}

/// Samples of an experiment, at the multiples of an interval. A sample time at which nothing has changed has no sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSeries {
    /// Whether link ends are sampled.
    pub links: bool,
    /// Whether each link end is sampled; empty: all are.
    pub sampled_ends: Vec<bool>,
    /// Whether queue pairs are sampled.
    pub flows: bool,
    /// Time from one sample time to the next, in ps. It doubles when there are too many samples.
    pub interval: u64,
    /// Maximum number of samples.
    pub cap: usize,
    /// Simulated time at which the experiment ends at the latest, in ps: the time limit without samples.
    pub time_limit: u64,
    /// Number of the next sample time.
    pub next: u64,
    /// The samples, in order of time.
    pub samples: Vec<SeriesSample>,
    /// Number of rows of all samples.
    pub n_rows: usize,
    /// State of each link end at the sample time before.
    pub ends_before: Vec<EndSample>,
    /// State of each queue pair at the sample time before.
    pub flows_before: Vec<FlowSample>,
}

impl TimeSeries {
    /// Whether there are samples.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.links || self.flows
    }

    /// Time of the next sample, in ps; `None`: there are no samples.
    #[inline]
    pub fn next_time(&self) -> Option<u64> {
        self.is_on().then(|| self.next.saturating_mul(self.interval))
    }
}
