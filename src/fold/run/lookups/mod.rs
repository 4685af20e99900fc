//! The turn of a partition that is looked up, and what goes into the memo and comes out of it.
//!
//! Layer: fold.

pub(crate) mod checkpoint;
pub(crate) mod claim;
pub(crate) mod lookup;
pub(crate) mod lookup_turn;
pub(crate) mod progress;
pub(crate) mod recording;
pub(crate) mod restore;
pub(crate) mod resume;
