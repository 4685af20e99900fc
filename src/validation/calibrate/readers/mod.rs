//! Readers of other tools' measurements: logs of nccl-tests and traces of PyTorch's profiler become measured rows.
//!
//! Layer: validation. Fits nothing.

mod kernel_rows;
pub(super) mod nccl_tests;
pub(super) mod profiler;
mod profiler_trace;
pub(super) mod statistic;
