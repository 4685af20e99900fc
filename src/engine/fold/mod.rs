//! Folding: the CPU engine without the work that changes nothing. An experiment is cut into *partitions*, NICs, ports and queue pairs that active flows connect;
//! each steps by itself, and a partition whose like was simulated before is looked up instead.
//!
//! Layer: engine; columns and numbers only. Exact: every bit of every result is the unfolded engine's. Where that cannot be proven while it runs (a shared buffer
//! that may pause or drop), the experiment starts over unfolded. ARCHITECTURE.md, "Folding", says why it is exact.

mod bytes;
mod calm;
mod canon;
mod codec;
mod codec_cut;
mod cut;
mod engine;
mod join;
mod live;
mod memo;
mod part;
mod record;
mod replay;
mod rest;
mod run;
mod shelf;
mod split;
mod state;

pub use engine::FoldEngine;
pub use codec::{SEMANTICS, Unsaved, Version, version};
pub use memo::{Id, Memo};
pub use shelf::Shelf;

/// What folding did for one experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldStats {
    /// Packets that left a port and were simulated; again, where it started over.
    pub simulated: u64,
    /// Lives of partitions, from idle to idle, that were looked up or had to be simulated at least in part.
    pub hits: u64,
    pub misses: u64,
    /// 1: started over unfolded.
    pub abandoned: u64,
}

/// Why a folded run cannot go on.
#[derive(Debug)]
enum Stop {
    /// Not provably exact: start over unfolded.
    Abandon,
    /// Nor can the unfolded engine.
    Fail(String),
}
