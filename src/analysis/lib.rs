//! TODO

pub mod compare;
pub mod optimize;
