//! Compute: kernels, the conversion of submodules to kernels, and the duration of a kernel on a GPU: measured, else by a roofline.
//!
//! Layer: compute. Floats on the host go through one libm; results are whole ps. Knows no parallel schedule and no network.
//!
//! - [`Gpu`]: specifications, from `assets/gpus.toml` or a user's table.
//! - [`Kernel`]: the parameters that determine a duration. [`convert`]: a model's submodules as kernels and the exchanges between them.
//! - [`Timing`]: durations from the operation database (`assets/kernels`, overlaid by the user's), scaled to GPUs that it lacks, then from the roofline.
//! - [`Slowdown`]: how much communication slows down a kernel that overlaps with it. [`validation`]: comparison with published measurements.

mod attention;
mod attention_names;
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
    Among, DlrmPart, KernelRole, LINEAR_OFFSET, LayerKind, LayerPart, LayerStep, Pass, Site, UNPAD, dlrm_kernels,
    expert_loads, kind_of, layer_kernels, layer_steps, list_layer_kernels, optimizer_kernels, shard_kernels,
    split_backward,
};
pub use database::UserDatabase;
pub use error::Error;
pub use gpu::Gpu;
pub use kernel::{Class, Dtype, Kernel};
pub use slowdown::{FEATURES, KernelFeatures, Slowdown, SlowdownTable, Trees, overlap_ratio};
pub use timing::Timing;
