//! TODO

pub mod plot;
pub mod report;
