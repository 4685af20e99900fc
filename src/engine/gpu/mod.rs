//! GPU side of the engine: the WGSL twin of `cpu`, and the host that runs it.
//!
//! Layer: engine. Knows nothing of sweeps, topologies or workloads.

pub mod source;
