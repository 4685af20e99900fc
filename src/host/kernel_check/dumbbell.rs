//! The network of the stored experiments: two switches with four hosts each, and two trunks of different rates between them.
//!
//! Layer: host.

use hyperfold_columns::OwnedTables;
use hyperfold_llm::workload::Flow;
use hyperfold_network::changes::TimedChange;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Link, Network, Node, NodeKind, SwitchNames};
use hyperfold_network::transport::{Cc, RttWindow, Transport};

use super::transports::transport;
use crate::tables::build_tables::{BuildOptions, GraphCase, PacketCase, build};

/// Hosts on each of the two switches.
pub const SIDE: u32 = 4;
/// Hosts of the network.
pub const HOSTS: u32 = 2 * SIDE;
const GBPS: u64 = 1_000_000_000;
const US: u64 = 1_000_000;
/// Sender and receiver of each flow: an incast of three hosts of one side and two of the other into host 0, and flows back and beside it.
const PAIRS: [(u32, u32); 9] = [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (0, 6), (4, 2), (5, 1), (5, 0)];

/// Input from which the tables of a stored experiment are built.
#[derive(Clone, Debug)]
pub struct SmallCase {
    /// The network.
    pub network: Network,
    /// Flows; `flows[i].id == i`.
    pub flows: Vec<Flow>,
    /// Paths of each flow.
    pub paths: Vec<FlowPaths>,
    /// Parameters of transport and switches.
    pub transport: Transport,
    /// Base RTT and window of each flow.
    pub rtt: Vec<RttWindow>,
    /// Changes of the network at time 0.
    pub changes: Vec<TimedChange>,
}

impl SmallCase {
    /// The network with congestion control `cc`, without flows.
    pub fn idle(cc: Cc) -> SmallCase {
        let (flows, paths, rtt) = (Vec::new(), Vec::new(), Vec::new());
        SmallCase { network: dumbbell(), flows, paths, transport: transport(cc), rtt, changes: Vec::new() }
    }

    /// Nine flows with congestion control `cc`, the first of `bytes`, each of the others a little larger than the one before.
    pub fn incast(cc: Cc, bytes: u64) -> SmallCase {
        let mut case = SmallCase::idle(cc);
        for (i, &(src, dst)) in (0..).zip(&PAIRS) {
            case.add_flow(src, dst, bytes + bytes * 7 / 60 * i + i, (i / 3) * 3 * US);
        }
        case
    }

    /// Adds a flow that is sprayed over all shortest paths.
    pub fn add_flow(&mut self, src: u32, dst: u32, bytes: u64, start_ps: u64) {
        let id = self.flows.len() as u32;
        let (src_rank, dst_rank) = (src, dst);
        let sport = 10_000 + id as u16;
        self.flows.push(Flow { id, src_rank, dst_rank, bytes, start_ps, sport, dport: 100, class: 3 });
        self.paths.push(FlowPaths { data: paths(src, dst), ack: paths(dst, src) });
        self.rtt.push(RttWindow { rtt_ps: 6_500_000, window_bytes: 20_000 });
    }

    /// Leaves each flow one of its paths.
    pub fn keep_one_path(&mut self) {
        for (i, paths) in self.paths.iter_mut().enumerate() {
            for all in [&mut paths.data, &mut paths.ack] {
                let kept = all.swap_remove(i % all.len());
                *all = vec![kept];
            }
        }
    }

    /// Its tables, with a task graph if there is one.
    pub fn tables(&self, graph: Option<GraphCase>, options: BuildOptions) -> OwnedTables {
        let built = build(&PacketCase {
            network: &self.network,
            flows: &self.flows,
            paths: &self.paths,
            rtt: &self.rtt,
            transport: &self.transport,
            graph,
            changes: &self.changes,
            options,
        });
        built.expect("the stored experiments are valid").tables
    }
}

/// Hosts 0 to 3 on switch 8, 4 to 7 on switch 9.
pub fn dumbbell() -> Network {
    let mut links: Vec<Link> = (0..HOSTS)
        .map(|h| Link {
            a: h,
            b: HOSTS + h / SIDE,
            rate_bps: if h < SIDE { 25 * GBPS } else { 40 * GBPS },
            delay_ps: US,
        })
        .collect();
    links.push(Link { a: HOSTS, b: HOSTS + 1, rate_bps: 40 * GBPS, delay_ps: US + 500_000 });
    links.push(Link { a: HOSTS, b: HOSTS + 1, rate_bps: 100 * GBPS, delay_ps: US });
    let nodes = (0..HOSTS + 2)
        .map(|id| Node {
            kind: if id < HOSTS { NodeKind::Host } else { NodeKind::Switch },
            id,
            server: if id < HOSTS { id } else { u32::MAX },
        })
        .collect();
    Network {
        nodes,
        links,
        ranks: (0..HOSTS).collect(),
        nvlink: None,
        switch_names: SwitchNames::ById,
        ..Network::default()
    }
}

/// All shortest paths between two hosts: up, over either trunk where it must cross, down.
pub fn paths(src: u32, dst: u32) -> Vec<Vec<ArcIdx>> {
    let (up, down) = (2 * src, 2 * dst + 1);
    let (from, to) = (src / SIDE, dst / SIDE);
    if from == to {
        return vec![vec![up, down]];
    }
    (HOSTS..HOSTS + 2).map(|link| vec![up, 2 * link + from, down]).collect()
}
