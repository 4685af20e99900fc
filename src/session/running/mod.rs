//! The experiments of a plan on engines, reported as they end; searches among them.

pub(crate) mod audits;
pub(crate) mod axis_effects;
pub(crate) mod candidates;
pub(crate) mod clusters;
pub(crate) mod dark_losses;
pub(crate) mod devices;
pub(crate) mod interrupt;
pub(crate) mod jobs_alone;
pub(crate) mod search;
pub(crate) mod simulate;
pub(crate) mod simulator;
pub(crate) mod update;
pub(crate) mod watched_pauses;
pub(crate) mod work_done;
pub(crate) mod workers;
