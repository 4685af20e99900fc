//! Copies of an experiment that go on without carrying rates on, and what is to be compared with them.
//!
//! Layer: fold/run. The data only.

use crate::columns::{FlowIdx, OwnedTables, TaskIdx};

/// The copies of an experiment, and what is to be compared with them.
#[derive(Default)]
pub(crate) struct ContinuedAudits {
    /// When the experiment is compared next, ps; 0: never before a copy is made.
    pub next: u64,
    pub copies: Vec<ExperimentCopy>,
    /// Memory for the tables of the next copy.
    pub tables: OwnedTables,
    /// Packet-hops that copies took: as planned, or what messages that ended in them needed, if that is more.
    pub hops: u64,
    /// When rates were carried on, ps.
    pub carried: Vec<(u64, u64)>,
    /// The same time times the part of what was sent that had not settled, ps times millionths.
    pub unsettled: u128,
}

/// What a copy did.
pub(crate) struct ExperimentCopy {
    /// From when to when it went, ps.
    pub from: u64,
    pub to: u64,
    /// Of each queue pair of the partition: bytes sent by `from`, and by `to` in the copy.
    pub flows: Vec<(FlowIdx, u64, u64)>,
    /// Bytes sent by `to` in the experiment, once it is there.
    pub came: Option<Vec<u64>>,
    /// Tasks that were done in the copy: how long they took, and when.
    pub tasks: Vec<(TaskIdx, u64, u64)>,
}

impl ContinuedAudits {
    /// Rates were carried on from `since` to `at`, of which a part had not settled.
    pub(crate) fn carried(&mut self, since: u64, at: u64, unsettled_ppm: u64) {
        self.carried.push((since, at));
        self.unsettled += u128::from(at - since) * u128::from(unsettled_ppm);
    }

    /// When the last copy ended, ps.
    pub(crate) fn ended(&self) -> u64 {
        self.copies.last().map_or(0, |copied| copied.to)
    }
}
