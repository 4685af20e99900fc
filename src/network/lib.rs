//! TODO

pub mod routing;
pub mod topology;
pub mod transport;
