//! What is wrong where a figure cannot be made.
//!
//! Layer: plot.

use thiserror::Error;

use hyperfold_results::ReadError;

/// Reason why a figure cannot be made.
#[derive(Debug, Error)]
pub enum PlotError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{option} {name}: {why}")]
    Column { option: &'static str, name: String, why: String },
    #[error("--where '{condition}': {why}")]
    Where { condition: String, why: String },
    #[error("{dir}: there is no {file}; run the sweep with `{key} = true` for it")]
    NotWritten { dir: String, file: &'static str, key: &'static str },
    #[error("{0}")]
    Nothing(String),
    #[error("the figure cannot be painted: {0}")]
    Paint(String),
}
