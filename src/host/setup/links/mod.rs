//! Names of links, and those that a configuration names: which fail, which are slow or lose packets, which are sampled.

pub(crate) mod at_beginning;
pub(crate) mod impairments;
pub(crate) mod names;
pub(crate) mod outages;
pub(crate) mod sampled_links;
