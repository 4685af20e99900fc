//! Folding: the CPU engine without the work that changes nothing. An experiment is cut into *partitions*, NICs, ports and queue pairs that active flows connect;
//! each steps by itself, and a partition whose like was simulated before is looked up instead.
//!
//! Layer: engine; columns and numbers only. Exact: every bit of every result is the unfolded engine's. Where that cannot be proven while it runs (a shared buffer
//! that may pause or drop), the experiment starts over unfolded. `docs/explanation/folding.md` says why it is exact.

mod memo;
mod rows;
mod run;
mod steady;

use std::time::Duration;

pub use memo::backing_store::BackingStore;
pub use memo::codec::{SEMANTICS, Unsaved, Version, version};
pub use memo::in_flight::Recorder;
pub use memo::table::{Memo, NodeId};
pub use run::audit::Audit;
pub use run::engine::FoldEngine;

/// What folding did for one experiment. The counts depend on the experiment and on what the memo held. The times are
/// estimates: see [`run::stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldStats {
    /// Packet-hops that were simulated. An experiment that started over counts them again.
    pub hops_simulated: u64,
    /// Skips of steady partitions, the packet-hops they skipped, and the model time they skipped, summed over
    /// partitions, ps.
    pub skips: u64,
    pub hops_skipped: u64,
    pub skipped_ps: u128,
    /// How often congestion-control state was rounded between messages, or the origin of a telemetry counter moved.
    pub rounded: u64,
    /// Skips that were also simulated, to measure the error: packet-hops of that, and what was found.
    pub audit_hops: u64,
    pub audit: Audit,
    /// Lifetimes of partitions, from idle to idle, that were looked up; those that had to be simulated at least in
    /// part.
    pub hits: u64,
    pub misses: u64,
    /// 1: started over without folding.
    pub restarts: u64,
    /// Lifetimes that began idle and were looked up, and how many of these the memo knew. The first number counts
    /// patterns of contention, the second repetitions.
    pub episodes: u64,
    pub episodes_known: u64,
    /// Snapshots that were looked up at checkpoints, and how many of these the memo knew.
    pub snapshots: u64,
    pub snapshots_known: u64,
    /// Partitions that were formed: from idle rows, or as pieces of a split.
    pub partitions: u64,
    /// The most partitions at one time.
    pub partitions_max: u64,
    /// Partitions times model time (ps), and the model time itself. Their quotient is the mean number of partitions.
    pub partition_ps: u128,
    pub span_ps: u64,
    /// Bytes of keys and outcomes in the memo at the experiment's last turn. All experiments of the process share the
    /// memo.
    pub memo_bytes: u64,
    /// Wall time spent simulating partitions, looking them up, and on checkpoints, which write and look up snapshots.
    pub simulating: Duration,
    pub looking_up: Duration,
    pub checkpointing: Duration,
    /// Wall time spent on audits. No result needs it.
    pub auditing: Duration,
}

/// Why a folded run stops.
#[derive(Debug)]
enum Stop {
    /// Not provably exact, for this reason: start over without folding.
    Abandon(&'static str),
    /// The unfolded engine would fail as well.
    Fail(String),
    /// Another experiment is recording what this one needs. The turn is to be repeated later.
    Wait,
}

/// Reasons to start over.
mod reason {
    pub const BUFFER: &str = "a shared buffer may have come near a pause or a drop";
    pub const TIME: &str = "the time limit was reached";
    pub const KIND: &str = "a NIC without a partition has something other than a start or a task to do";
    pub const FLAG: &str = "buffer, pool, retries or orphans ask for the whole network";
    pub const STUCK: &str = "nothing is left to happen, and not all is done";
    pub const FRAMES: &str = "a pause frame arrived";
    pub const BACKING_STORE: &str = "a state that was left on the disk is not to be had";
}
