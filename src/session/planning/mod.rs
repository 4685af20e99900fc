//! The plan of a run: its experiments, its cost, and errors in its sweep.

pub(crate) mod excluded;
pub(crate) mod forecast;
mod known_sizes;
pub(crate) mod links_of_another;
pub(crate) mod plan;
pub(crate) mod planned;
pub(crate) mod probe;
pub(crate) mod short_simulation;
pub(crate) mod speed_class;
pub(crate) mod survey;
pub(crate) mod two_models;
