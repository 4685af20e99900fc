//! Copies of an experiment that run without carried rates, and the data to compare with them.
//!
//! Layer: fold/run. Only data.

use hyperfold_columns::{FlowIdx, OwnedTables, TaskIdx};

/// The copies of an experiment, and the data to compare with them.
#[derive(Default)]
pub(crate) struct ContinuedAudits {
    /// Time of the next comparison in ps; 0: none before a copy is made.
    pub next: u64,
    pub copies: Vec<ExperimentCopy>,
    /// Memory that the tables of the next copy reuse.
    pub tables: OwnedTables,
    /// Packet-hops that copies took: the planned number, or what messages that ended in them needed, if that is more.
    pub hops: u64,
    /// Spans of time in which rates were carried on, in ps.
    pub carried: Vec<(u64, u64)>,
    /// Sum of the lengths of the `carried` spans, each weighted by the share of sent bytes that had not settled; in ps times millionths.
    pub unsettled: u128,
}

/// Results of one copy.
pub(crate) struct ExperimentCopy {
    /// Start and end of the copy, in ps.
    pub from: u64,
    pub to: u64,
    /// For each queue pair of the partition: bytes sent by `from`, and by `to` in the copy.
    pub flows: Vec<(FlowIdx, u64, u64)>,
    /// Bytes sent by `to` in the experiment, once it has got there.
    pub experiment_sent: Option<Vec<u64>>,
    /// Tasks that were done in the copy: duration and end, in ps.
    pub tasks: Vec<(TaskIdx, u64, u64)>,
}

impl ContinuedAudits {
    /// Adds a span in which rates were carried on, from `since` to `at_ps`, and the share that had not settled.
    pub(crate) fn carried(&mut self, since: u64, at_ps: u64, unsettled_ppm: u64) {
        self.carried.push((since, at_ps));
        self.unsettled += u128::from(at_ps - since) * u128::from(unsettled_ppm);
    }

    /// End of the last copy, in ps.
    pub(crate) fn ended(&self) -> u64 {
        self.copies.last().map_or(0, |copied| copied.to)
    }
}
