//! Folding: the CPU engine without the work that changes nothing. An experiment is cut into *partitions*, NICs, ports and queue pairs that active flows connect;
//! each steps by itself, and a partition whose like was simulated before is looked up instead.
//!
//! Layer: engine; columns and numbers only. Exact: every bit of every result is the unfolded engine's. Where that cannot be proven while it runs (a shared buffer
//! that may pause or drop), the experiment starts over unfolded. ARCHITECTURE.md, "Folding", says why it is exact.

mod audit;
mod bytes;
mod calm;
mod canon;
mod carry;
mod claims;
mod codec;
mod codec_cut;
mod cut;
mod desk;
mod engine;
mod fresh;
mod gone;
mod join;
mod live;
mod looks;
mod memo;
mod name;
mod nap;
mod part;
mod record;
mod replay;
mod rest;
mod rise;
mod run;
mod shelf;
mod sleep;
mod split;
mod state;
mod stream;
mod tally;
mod watch;

use std::time::Duration;

pub use audit::Audit;
pub use claims::By;
pub use codec::{SEMANTICS, Unsaved, Version, version};
pub use engine::FoldEngine;
pub use memo::{Id, Memo};
pub use shelf::Shelf;

/// What folding did for one experiment. The counts are functions of the experiment and of what the memo held; the times are estimates, see [`tally`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldStats {
    /// Packets that left a port and were simulated; again, where it started over.
    pub simulated: u64,
    /// Times that a steady partition fell asleep, packets that left a port meanwhile, and how long all slept, ps.
    pub skips: u64,
    pub slept: u64,
    pub slept_ps: u128,
    /// Times that what congestion control carries from message to message was rounded, or telemetry counted from elsewhere.
    pub rounded: u64,
    /// Some of these were simulated all the same, `audited` packets of them: what was found.
    pub audited: u64,
    pub audit: Audit,
    /// Lives of partitions, from idle to idle, that were looked up or had to be simulated at least in part.
    pub hits: u64,
    pub misses: u64,
    /// 1: started over unfolded.
    pub abandoned: u64,
    /// Lives that began from idle and were looked up, and how many of them were known: patterns of contention, and those that repeat another.
    pub episodes: u64,
    pub episodes_known: u64,
    /// States in which partitions were looked up at cuts, and how many of them were known.
    pub states: u64,
    pub states_known: u64,
    /// Partitions that came to be: from idle, or as pieces of one that fell apart.
    pub partitions: u64,
    /// The most that there were at once.
    pub partitions_max: u64,
    /// How many there were, summed over model time (partitions times ps), and the model time that was.
    pub partition_ps: u128,
    pub span_ps: u64,
    /// Bytes of keys and outcomes in the memo, which all experiments of the process share, when this one had taken its last turn.
    pub memo_bytes: u64,
    /// Time spent on partitions that are simulated, on those that are looked up, and on cuts, where states are written down and looked up.
    pub simulating: Duration,
    pub looking_up: Duration,
    pub cutting: Duration,
    /// And on audits, which would not be needed for the results.
    pub auditing: Duration,
}

/// Why a folded run does not go on.
#[derive(Debug)]
enum Stop {
    /// Not provably exact, for this reason: start over unfolded.
    Abandon(&'static str),
    /// Nor can the unfolded engine.
    Fail(String),
    /// Not yet: another experiment is finding out what this one needs. The turn is to be taken again.
    Wait,
}

/// Reasons to start over.
mod because {
    pub const BUFFER: &str = "a shared buffer may have come near a pause or a drop";
    pub const TIME: &str = "the time limit was reached";
    pub const KIND: &str = "a NIC without a partition has something other than a start or a task to do";
    pub const FLAG: &str = "buffer, pool, retries or orphans ask for the whole network";
    pub const STUCK: &str = "nothing is left to happen, and not all is done";
    pub const FRAMES: &str = "a pause frame arrived";
    pub const SHELF: &str = "a state that was left on the disk is not to be had";
}
