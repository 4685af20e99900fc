//! TODO

pub mod spec;
pub mod sweep;
