//! Why a submission is refused.
//!
//! Layer: submit.

use thiserror::Error;

use hyperfold_base::printable::shortened;

/// Why a submission cannot be written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SubmitError {
    #[error("{option} {shown}: {why}", shown = shown(.value))]
    BadValue { option: &'static str, value: String, why: String },
}

impl SubmitError {
    pub(super) fn bad(option: &'static str, value: &str, why: impl Into<String>) -> SubmitError {
        SubmitError::BadValue { option, value: value.into(), why: why.into() }
    }
}

/// A value for messages: on one line, and cut to 60 characters.
fn shown(value: &str) -> String {
    format!("`{}`", shortened(value, 60).escape_debug())
}
