//! Errors of descriptions of GPUs, operation databases and slowdown models.

use thiserror::Error;

/// Errors of this module. Each names the place, the value and what would be right.
#[derive(Debug, Error, PartialEq)]
pub enum Error {
    #[error("gpu = {name:?} is not known; known are {known}, or give a table of specifications")]
    UnknownGpu { name: String, known: String },
    #[error("gpu {name:?}: {message}")]
    Gpu { name: String, message: String },
    #[error("data type {value:?} is not one of fp32, tf32, bf16, fp16, fp8, mxfp8, nvfp4")]
    Dtype { value: String },
    #[error("{file}: line {line}: {message}")]
    Database { file: String, line: u64, message: String },
    #[error("{file}: no row is for GPU {gpu:?}; its rows are for {found}")]
    DatabaseGpu { file: String, gpu: String, found: String },
    #[error("{file}: line {line}: {message}")]
    Slowdown { file: String, line: u64, message: String },
    #[error("{file}: {message}")]
    Trees { file: String, message: String },
}
