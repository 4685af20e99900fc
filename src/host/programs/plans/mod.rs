//! How collectives are carried out: algorithms, switches that reduce, and schedules that jobs share.

mod algorithms;
pub(crate) mod group_switches;
pub(crate) mod plan_cache;
pub(crate) mod planner;
