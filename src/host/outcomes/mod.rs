//! The outcome of an experiment: its flows, links, iterations and where their time went.

pub mod breakdown;
pub mod flow_info;
pub mod fold_explain;
pub(crate) mod job_outcomes;
pub mod outcome;
pub(crate) mod read_outcome;
pub mod series_outcome;
pub(crate) mod serving_outcome;
pub mod timeline;
