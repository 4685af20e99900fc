//! Fair rates of the flow level on the device: the kernel `shaders/flow_fill.wgsl` and its host.
//!
//! Layer: engine. Knows networks as numbers only. The caller decides when they are solved.

mod resident;
mod rows;
mod solver;
pub mod source;

pub use solver::{DeviceRates, FEWEST_THAT_PAY};
