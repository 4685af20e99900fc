//! Conditions of constraints: their text, their values, and what they exclude.
//!
//! Layer: sweep.

pub mod condition;
mod condition_code;
mod condition_value;
pub(super) mod constraint;
