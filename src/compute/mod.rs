//! Compute: kernels, what submodules become as kernels, and how long a kernel takes on a GPU: measured, else by a roofline.
//!
//! Layer: compute. Host-side floats through one libm; results are whole ps. Knows no parallel schedule, no network.
//!
//! - [`Gpu`]: specifications, from `assets/gpus.toml` or a user's table.
//! - [`Kernel`]: what decides a duration. [`convert`]: a model's submodules as kernels and the exchanges between them.
//! - [`Timing`]: durations: the operation database (`assets/kernels`, overlaid by the user's), scaled to GPUs it lacks, then the roofline.
//! - [`Slowdown`]: what communication beside a kernel costs it. [`validation`]: all of it against published measurements.

mod attention;
pub mod convert;
mod curves;
mod database;
mod error;
mod gpu;
mod kernel;
mod roofline;
mod slowdown;
mod timing;
pub mod validation;

pub use attention::with_attention;
pub use convert::{
    Among, DlrmPart, KernelRole, LINEAR_OFFSET, LayerKind, LayerPart, LayerStep, Pass, Site, dlrm_kernels,
    expert_loads, kind_of, layer_kernels, layer_steps, list_layer_kernels, optimizer_kernels, shard_kernels,
};
pub use database::UserDatabase;
pub use error::Error;
pub use gpu::Gpu;
pub use kernel::{Class, Dtype, Kernel};
pub use slowdown::{FEATURES, KernelFeatures, Slowdown, SlowdownTable, Trees, overlap_ratio};
pub use timing::Timing;
