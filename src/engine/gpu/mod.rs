//! GPU side of the engine: adapters and their self-test; the WGSL twin of `cpu`, and the host that runs it.
//!
//! Layer: engine. Knows nothing of sweeps, topologies or workloads.

pub mod adapter;
pub mod batch_runner;
pub mod device;
pub mod device_tables;
pub mod engine;
pub mod faults;
pub mod kernels;
pub mod measure;
mod on_device;
pub mod open;
pub mod pack;
pub mod rates;
pub mod selftest;
mod slab;

pub use adapter::{AdapterReport, DeviceChoice, GpuError, SoftwarePolicy};
pub use batch_runner::{DispatchProgress, ExperimentError, GpuEngine, Mode, Report};
pub use device::GpuDevice;
pub use faults::RunError;
pub use kernels::{EntryPoint, KernelParts, source};
pub use measure::{DeviceTimes, measure};
pub use selftest::{SelfTest, SubTest};
