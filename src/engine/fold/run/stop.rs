//! Why a folded run stops.
//!
//! Layer: fold/run.

/// Why a folded run stops.
#[derive(Debug)]
pub enum Stop {
    /// Not provably exact, for this reason: start over without folding.
    Abandon(&'static str),
    /// The unfolded engine would fail as well.
    Fail(String),
    /// Another experiment is recording what this one needs. The turn is to be repeated later.
    Wait,
}

/// Reasons to start over.
pub mod reason {
    pub const BUFFER: &str = "a shared buffer may have come near a pause or a drop";
    pub const TIME: &str = "the time limit was reached";
    pub const KIND: &str = "a NIC without a partition has something other than a start or a task to do";
    pub const FLAG: &str = "buffer, pool, retries or orphans ask for the whole network";
    pub const STUCK: &str = "nothing is left to happen, and not all is done";
    pub const FRAMES: &str = "a pause frame arrived";
    pub const BACKING_STORE: &str = "a state that was left on the disk is not to be had";
}
