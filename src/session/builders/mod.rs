//! Sweeps, networks, programs and flows made in code.

pub(crate) mod flow_list;
pub(crate) mod program_builder;
pub(crate) mod sweep_builder;
pub(crate) mod topology_builder;
