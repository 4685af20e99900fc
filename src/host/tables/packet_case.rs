//! The case that tables are built from: one experiment as network, flows and paths.
//!
//! Layer: host. Types only; `build` and `build_tasks` build tables from them.

use hyperfold_columns::NEVER;
use hyperfold_config::spec::SeriesKeys;
use hyperfold_llm::workload::Flow;
use hyperfold_llm::workload::tasks::TaskGraph;
use hyperfold_network::changes::TimedChange;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::Network;
use hyperfold_network::transport::{RttWindow, Transport};

/// One experiment, in the terms of the layers above the engine.
pub struct PacketCase<'a> {
    /// The network, whose hosts are the ends of flows.
    pub network: &'a Network,
    /// Flows that cross the network as packets; `paths` and `rtt` have one entry for each.
    pub flows: &'a [Flow],
    /// Paths of each flow's data and answers.
    pub paths: &'a [FlowPaths],
    /// Base RTT and window of each flow.
    pub rtt: &'a [RttWindow],
    /// Parameters of transport and switches.
    pub transport: &'a Transport,
    /// The task graph of ranks. Its queue pairs are `flows[first_qp..]`, in its order. `None`: flows only.
    pub graph: Option<GraphCase<'a>>,
    /// Changes of the network while the experiment runs, in order. Their flows are indices into `flows`.
    pub changes: &'a [TimedChange],
    /// Settings of what is recorded, and how far the simulation goes.
    pub options: BuildOptions,
}

/// A task graph beside the flows. INVARIANT: `flows[first_qp + q]` is queue pair `q`, with no bytes and start `NEVER`.
#[derive(Clone, Copy)]
pub struct GraphCase<'a> {
    /// Graph whose tasks become rows.
    pub graph: &'a TaskGraph,
    /// Index of its first queue pair among the flows of the case.
    pub first_qp: usize,
    /// Time from an end on one NIC to the start of what waits for it on another NIC of the same host, ps.
    pub release_ps: u64,
    /// Whether every message starts with fresh congestion-control state.
    pub fresh_qp: bool,
}

/// Options that decide what is recorded and how far the simulation goes, never what happens.
#[derive(Clone, Copy, Debug)]
pub struct BuildOptions {
    /// The experiment's index in the sweep.
    pub exp_id: u32,
    /// Whether flows have rates instead of packets: then tables leave out what only packets need.
    pub flow_level: bool,
    /// Whether to integrate queues for links.csv.
    pub links: bool,
    /// RTT samples kept per flow (even); 0 for none.
    pub rtt_cap: u32,
    /// Whether each queue pair adds up its round-trip times. Where samples are kept, it does so anyway.
    pub rtt_means: bool,
    /// Samples over time; `None`: none are taken. Flow level has none.
    pub series: Option<SeriesKeys>,
    /// Divides the length of steps. Changes only the run time; a test relies on that.
    pub step_divisor: u64,
    /// End of simulated time, ps.
    pub time_limit_ps: u64,
}

impl BuildOptions {
    /// Packets without a limit of time, of which nothing is recorded beside results.
    pub const PACKETS: BuildOptions = BuildOptions {
        exp_id: 0,
        flow_level: false,
        links: false,
        rtt_cap: 0,
        rtt_means: false,
        series: None,
        step_divisor: 1,
        time_limit_ps: NEVER,
    };
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions::PACKETS
    }
}
