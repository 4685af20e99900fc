//! Errors of a model or its layout.
//!
//! Layer: model.

use thiserror::Error;

/// Why a model is not available or a layout cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    #[error("`workload.model = \"{name}\"`: no model is called that; {hint}")]
    Unknown { name: String, hint: String },
    /// `place` is the file and, if known, the line.
    #[error("{place}: {why}")]
    Syntax { place: String, why: String },
    #[error("{file}: `{key} = {value}`: it must be {expected}")]
    Value { file: String, key: &'static str, value: String, expected: String },
    /// A key of the sweep file that does not fit the model, the cluster or another key.
    #[error("`{key} = {value}`: it must be {expected}")]
    Layout { key: &'static str, value: String, expected: String },
}
