//! The kernels: their text, the parts of it that a batch needs, and what a driver makes of these.
//!
//! | file | holds |
//! |---|---|
//! | `source`, `entry_points` | the text of all kernels, and the module made of it |
//! | `parts` | which parts of the kernels experiments need |
//! | `pruned` | takes the other parts out of a module |
//! | `pipelines` | compiled kernels |
//! | `sets` | the kernels that a device has, by their parts, and which of them run a batch |
//!
//! Layer: engine. Knows entry points and bindings, not the content of the tables.

mod entry_points;
pub mod parts;
mod pipelines;
mod pruned;
mod sets;
pub mod source;

pub use parts::KernelParts;
pub use pipelines::{EntryPoint, Kernels};
pub use sets::KernelSets;
