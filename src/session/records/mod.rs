//! Records of results from outcomes of the simulation.

pub(crate) mod convert;
pub(crate) mod convert_cluster;
pub(crate) mod convert_iteration;
pub(crate) mod convert_jobs;
pub(crate) mod convert_series;
mod convert_serving;
