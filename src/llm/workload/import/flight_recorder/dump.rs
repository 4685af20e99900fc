//! The calls of one rank.
//!
//! Layer: workload. Plain data.

use std::ops::Range;

use crate::collective::CollectiveOp;
use crate::workload::import::torch::files::OfRank;

/// What the recorder of a rank had.
pub(super) struct Dump {
    pub(super) path: String,
    pub(super) rank: Option<u32>,
    /// As many ranks as its process groups have; 0: it has none.
    pub(super) world_size: u32,
    /// Whether the recorder was full, so that the first calls are gone.
    pub(super) has_lost: bool,
    /// Its calls, in the order in which they were launched.
    pub(super) units: Vec<Launch>,
    /// The calls of all units.
    pub(super) calls: Vec<RecordedCall>,
    /// The calls of a unit that was not launched yet: its end is not there.
    pub(super) n_open: usize,
    /// Number of calls whose creation is before that of the call before them.
    pub(super) n_clock_steps: u64,
}

/// A call, or several that are launched together.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) group: u32,
    /// Number in its group: of collectives, or of sends and receives.
    pub(super) sequence: u64,
    pub(super) is_message: bool,
    /// When the host launched it, ns from 1970.
    pub(super) created_ns: u64,
    /// How long it ran on the GPU; `None`: not recorded.
    pub(super) duration_ns: Option<u64>,
    pub(super) has_completed: bool,
    pub(super) record_id: u64,
    /// Its calls in [`Dump::calls`].
    pub(super) calls: Range<u32>,
    /// Whether it is part of the workload.
    pub(super) keep: bool,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedCall {
    pub(super) kind: Kind,
    /// Bytes, as a program counts them.
    pub(super) bytes: u64,
    /// Bytes that the rank begins with.
    pub(super) in_bytes: u64,
    /// Index of PyTorch's name for it.
    pub(super) name: u32,
    /// Whether it is part of the workload, if its unit is.
    pub(super) keep: bool,
}

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Collective(CollectiveOp),
    /// To a member of the group.
    Send(u32),
    /// From a member of the group.
    Recv(u32),
}

impl Dump {
    /// The calls of a unit.
    pub(super) fn calls_of(&self, unit: &Launch) -> &[RecordedCall] {
        &self.calls[unit.calls.start as usize..unit.calls.end as usize]
    }

    /// The rank, where dumps are in the order of ranks; 0 for a single one.
    pub(super) fn rank_or_first(&self) -> u32 {
        self.rank.unwrap_or(0)
    }

    /// What a unit does, for messages.
    pub(super) fn told(&self, unit: &Launch) -> String {
        let calls = self.calls_of(unit);
        let one = |c: &RecordedCall| match c.kind {
            Kind::Collective(op) => format!("{op:?} of {} bytes", c.bytes),
            Kind::Send(_) => format!("send of {} bytes", c.bytes),
            Kind::Recv(_) => format!("receive of {} bytes", c.bytes),
        };
        match calls {
            [only] => one(only),
            [first, ..] => format!("{} calls at once, the first {}", calls.len(), one(first)),
            [] => "nothing".to_string(),
        }
    }
}

impl OfRank for Dump {
    const WHAT: &'static str = "dump";
    const NAMES_RANK: &'static str = "a file's name that ends in the rank";

    fn path(&self) -> &str {
        &self.path
    }

    fn rank(&self) -> Option<u32> {
        self.rank
    }

    fn world_size(&self) -> Option<u32> {
        Some(self.world_size)
    }
}
