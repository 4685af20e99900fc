//! Topologies: the graph, its generators and file readers.

pub mod network;

pub use network::{ArcIdx, Link, Network, Node, NodeIdx, NodeKind, NvLink};
