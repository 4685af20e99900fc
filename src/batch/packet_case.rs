//! One experiment in the terms of network, flows and paths: what its tables are built from.
//!
//! Layer: batch. Types only; `build` and `build_tasks` make tables of them.

use crate::columns::NEVER;
use crate::routing::FlowPaths;
use crate::topology::Network;
use crate::transport::{RttWindow, Transport};
use crate::workload::Flow;
use crate::workload::tasks::TaskGraph;

/// One experiment, in the terms of the layers above the engine.
pub struct PacketCase<'a> {
    pub network: &'a Network,
    /// The flows that cross at packet level, with `paths` and `rtt` beside them.
    pub flows: &'a [Flow],
    pub paths: &'a [FlowPaths],
    pub rtt: &'a [RttWindow],
    pub transport: &'a Transport,
    /// What ranks do; its queue pairs are the flows whose ids are `first_qp` and up, in its order. `None`: flows only.
    pub graph: Option<GraphCase<'a>>,
    pub options: BuildOptions,
}

/// A task graph beside the flows. INVARIANT: `flows[first_qp + q]` is queue pair `q`, with no bytes and start `NEVER`.
#[derive(Clone, Copy)]
pub struct GraphCase<'a> {
    pub graph: &'a TaskGraph,
    pub first_qp: usize,
    /// From an end on one NIC to what waits for it on another of the same host, ps.
    pub release_ps: u64,
    /// Every message starts with fresh congestion-control state.
    pub fresh_qp: bool,
}

/// What is recorded and how far, never what happens.
#[derive(Clone, Copy, Debug)]
pub struct BuildOptions {
    /// The experiment's index in the sweep.
    pub exp_id: u32,
    /// Flows have rates in place of packets: what only packets need is left out.
    pub flow_level: bool,
    /// Integrate queues for links.csv.
    pub links: bool,
    /// RTT samples kept a flow (even), 0 for none.
    pub rtt_cap: u32,
    /// Steps are this many times shorter than they may be. Changes nothing but the time it takes; a test relies on that.
    pub step_divisor: u64,
    /// End of simulated time.
    pub time_limit_ps: u64,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions { exp_id: 0, flow_level: false, links: false, rtt_cap: 0, step_divisor: 1, time_limit_ps: NEVER }
    }
}
