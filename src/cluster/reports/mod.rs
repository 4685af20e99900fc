//! Reports of a cluster: outcomes, use of GPU time, history, congestion.
//!
//! Layer: cluster. Decides nothing.

pub(super) mod account;
pub(super) mod congestion;
pub(super) mod history;
pub(super) mod map;
pub(super) mod outcome;
pub(super) mod timeline;
