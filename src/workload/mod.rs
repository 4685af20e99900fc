//! Workloads: what is sent, when.

pub mod flow;

pub use flow::Flow;
