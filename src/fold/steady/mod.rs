//! Steady partitions: how they are detected, and how their queue pairs go on while they are not simulated.
//!
//! Layer: above `memo`, below `run`.

pub(super) mod audit;
pub(super) mod carried_error;
pub(super) mod detector;
pub(super) mod rate_drift;
pub(super) mod rates;
pub(super) mod rates_plan;
pub(super) mod sampled_rates;
pub(super) mod sampling;
pub(super) mod shares;
pub(super) mod skip;
pub(super) mod skip_criterion;
pub(super) mod skip_planning;
