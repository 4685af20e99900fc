//! From a configuration to a network with everything that is sent over it, within a budget of memory.

pub(crate) mod error;
pub(crate) mod experiment;
pub(crate) mod host_memory;
mod inside_servers;
pub(crate) mod links;
pub(crate) mod memory_refusal;
pub(crate) mod network;
pub(crate) mod own_routing;
pub(crate) mod pauses;
pub(crate) mod placement;
pub mod prepare;
pub(crate) mod prepared_before;
pub(crate) mod route;
pub mod servers;
pub(crate) mod switches;
