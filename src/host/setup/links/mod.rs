//! Names of links, and those that a configuration names: which fail, which are slow, which are sampled.

pub(crate) mod names;
pub(crate) mod outages;
pub(crate) mod sampled_links;
pub(crate) mod slow_links;
