//! TODO

pub mod collective;
pub mod compute;
pub mod memory;
pub mod model;
pub mod workload;
