//! Errors of descriptions of GPUs, operation databases and slowdown models.

use thiserror::Error;

/// Errors of this module. Each names the place, the value and what would be right.
#[derive(Debug, Error, PartialEq)]
pub enum Error {
    /// There is no GPU of this name.
    #[error("gpu = {name:?} is not known; known are {known}, or give a table of specifications")]
    UnknownGpu {
        /// Name that no GPU has.
        name: String,
        /// Names that there are.
        known: String,
    },
    /// A GPU's table is wrong.
    #[error("gpu {name:?}: {message}")]
    Gpu {
        /// Name of the GPU.
        name: String,
        /// The fault, in words for the user.
        message: String,
    },
    /// There is no such data type.
    #[error("data type {value:?} is not one of fp32, tf32, bf16, fp16, fp8, mxfp8, nvfp4")]
    Dtype {
        /// Data type, as it was written.
        value: String,
    },
    /// A row of a kernel database is wrong.
    #[error("{file}: line {line}: {message}")]
    Database {
        /// Path of the file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// The fault, in words for the user.
        message: String,
    },
    /// A kernel database has no row for the GPU.
    #[error("{file}: no row is for GPU {gpu:?}; its rows are for {found}")]
    DatabaseGpu {
        /// Path of the file.
        file: String,
        /// Name of the GPU.
        gpu: String,
        /// GPUs that it has rows for.
        found: String,
    },
    /// A row of a table of slowdowns is wrong.
    #[error("{file}: line {line}: {message}")]
    Slowdown {
        /// Path of the file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// The fault, in words for the user.
        message: String,
    },
    /// A tree model cannot be read.
    #[error("{file}: {message}")]
    Trees {
        /// Path of the file.
        file: String,
        /// The fault, in words for the user.
        message: String,
    },
}
