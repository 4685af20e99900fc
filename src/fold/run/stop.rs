//! The reasons for which a folded run stops before its end.
//!
//! Layer: fold/run.

use crate::rows::buffer_guard::Failure;

/// Why a folded run stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Folding is not provably exact, for this reason: the experiment starts over without folding.
    Abandon(&'static str),
    /// The buffer of a switch may have come near a pause or a drop: the experiment starts over with this switch coupled.
    Couple(Failure),
    /// Skips gain too little, cause too large an error, or may miss a pause, as the reason says: the experiment goes back, to a point before that could
    /// matter or to its start, and on without skips.
    Exactly(&'static str),
    /// The experiment fails for this reason; without folding it would fail as well.
    Fail(String),
    /// The experiment was handed over: its rows are those of an experiment that was never folded.
    HandedOver,
    /// Another experiment is recording what this one needs. The turn is to be repeated later.
    Wait,
}

/// Reasons to start over, as the log gives them.
pub(crate) mod reason {
    pub(crate) const GAIN: &str = "they leave out too little";
    pub(crate) const LATE: &str = "the first skip would come too late to leave out much";
    pub(crate) const FILLS: &str = "a switch fills up";
    pub(crate) const PAUSE: &str =
        "a switch may have come near a pause or a drop, and switches are coupled in time only without skips";
    pub(crate) const OFF: &str = "by what copies did without them, the makespan may be off by more than 1 %";
    pub(crate) const TIME: &str = "the time limit was reached";
    pub(crate) const KIND: &str = "a NIC without a partition has something other than a start or a task to do";
    pub(crate) const JOIN: &str = "rows would join where they are simulated again, and had not joined at first";
    pub(crate) const FLAG: &str = "a buffer was too full, a pool was empty, or a queue pair gave up";
    pub(crate) const STUCK: &str = "nothing is left to happen, and not all is done";
    pub(crate) const BACKING_STORE: &str = "a state that was left on the disk is not to be had";
}
