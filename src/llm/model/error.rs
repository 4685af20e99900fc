//! Errors of a model or its layout.
//!
//! Layer: model.

use thiserror::Error;

/// Why a model is not available or a layout cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    /// There is no model of this name.
    #[error("`workload.model = \"{name}\"`: no model is called that; {hint}")]
    Unknown {
        /// Name that no model has.
        name: String,
        /// Names that may have been meant.
        hint: String,
    },
    /// A model's table is no TOML, or lacks a key.
    #[error("{place}: {why}")]
    Syntax {
        /// The file and, if known, the line.
        place: String,
        /// The fault, in words for the user.
        why: String,
    },
    /// A model's table has a wrong value.
    #[error("{file}: `{key} = {value}`: it must be {expected}")]
    Value {
        /// Path of the file, or key of the table.
        file: String,
        /// Key in the table.
        key: &'static str,
        /// Value, as it was written.
        value: String,
        /// A description of values that would be right.
        expected: String,
    },
    /// A key of the sweep file that does not fit the model, the cluster or another key.
    #[error("`{key} = {value}`: it must be {expected}")]
    Layout {
        /// Dotted name of the key.
        key: &'static str,
        /// Value that the key has.
        value: String,
        /// A description of values that would be right.
        expected: String,
    },
}
