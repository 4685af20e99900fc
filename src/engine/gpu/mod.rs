//! GPU side of the engine: adapters, their self-test.
//!
//! Layer: engine. Knows nothing of sweeps, topologies or workloads.

pub mod adapter;
pub mod selftest;

pub use adapter::{AdapterReport, DeviceChoice, GpuDevice, GpuError, SoftwarePolicy};
pub use selftest::{SelfTest, SubTest};
