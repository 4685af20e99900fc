//! What integration tests share: a case as the engine and the oracle take it, the golden cases, random cases.
//!
//! Every test binary declares it at its root: `#[path = "../support/mod.rs"] mod support;`.
#![allow(dead_code, reason = "every test binary uses another part of it")]

use hyperfold_llm::workload::Flow;
use hyperfold_network::changes::TimedChange;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::Network;
use hyperfold_network::transport::{RttWindow, Transport};

pub mod engine;
pub mod golden;
pub mod gpu;
pub mod gpu_graphs;
pub mod graphs;
pub mod inputs;
pub mod program;
pub mod random;
pub mod random_changes;
pub mod random_classes;
pub mod random_cut_through;
pub mod random_pauses;
pub mod random_switches;
pub mod random_tasks;
pub mod small;
pub mod soak;
pub mod table;
pub mod tasks;
pub mod transports;

/// One packet-level experiment, resolved: what an engine takes.
#[derive(Clone, Debug)]
pub struct Case {
    pub network: Network,
    /// In file order; `flows[i].id == i`.
    pub flows: Vec<Flow>,
    /// Parallel to `flows`.
    pub paths: Vec<FlowPaths>,
    pub transport: Transport,
    /// Parallel to `flows`.
    pub rtt: Vec<RttWindow>,
    /// Links that fail, and new paths.
    pub changes: Vec<TimedChange>,
}
