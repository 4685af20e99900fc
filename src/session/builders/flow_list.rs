//! Flows made in code, and their routes.
//!
//! Layer: session. Writes a flow file and a route file; errors in them are found when they are read.

use std::collections::HashMap;
use std::fmt::Write;

use crate::builders::topology_builder::NodeId;

/// Source port of the first flow between two hosts, as flow files count ports.
const FIRST_SOURCE_PORT: u32 = 10_000;
/// Destination port of every flow.
const DESTINATION_PORT: u32 = 100;

/// A flow, as a routing policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Number of the flow, from 0: `flow_id` in `flows.csv`.
    pub id: usize,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host.
    pub dst: NodeId,
    /// Payload, bytes.
    pub bytes: u64,
    /// Start time, ns.
    pub start_ns: u64,
}

/// Flows between the hosts of a network made in code.
///
/// ```
/// use hyperfold_session::{FlowList, TopologyBuilder};
///
/// let mut net = TopologyBuilder::new();
/// let (a, b, left, right) = (net.host(), net.host(), net.switch(), net.switch());
/// for switch in [left, right] {
///     net.link(a, switch, 100, 1000);
///     net.link(b, switch, 100, 1000);
/// }
/// let mut flows = FlowList::new();
/// flows.add(a, b, 1_000_000, 0);
/// flows.add(a, b, 1_000_000, 0);
/// // A routing policy of one's own: flows take turns.
/// flows.route_by(|flow| vec![flow.src, if flow.id % 2 == 0 { left } else { right }, flow.dst]);
/// assert!(flows.routes_text().is_some_and(|text| text.contains("0 2 1")));
/// ```
#[derive(Clone, Debug, Default)]
pub struct FlowList {
    flows: Vec<FlowSpec>,
    /// Data path of each flow. If empty, the sweep's routing policy decides.
    routes: Vec<Vec<NodeId>>,
}

impl FlowList {
    /// Creates an empty list.
    pub fn new() -> FlowList {
        FlowList::default()
    }

    /// Adds a flow and returns its number. Flows must be added in the order of start times, as a flow file has them.
    pub fn add(&mut self, src: NodeId, dst: NodeId, bytes: u64, start_ns: u64) -> usize {
        self.flows.push(FlowSpec { id: self.flows.len(), src, dst, bytes, start_ns });
        self.flows.len() - 1
    }

    /// Gives every flow added so far a path: node ids from its source to its destination. Acknowledgements take the reverse path.
    pub fn route_by(&mut self, mut policy: impl FnMut(&FlowSpec) -> Vec<NodeId>) {
        self.routes = self.flows.iter().map(&mut policy).collect();
    }

    /// Returns the flow file, in the format of ns-3.
    pub fn to_text(&self) -> String {
        let mut out = format!("{}\n", self.flows.len());
        for f in &self.flows {
            writeln!(out, "{} {} 3 {DESTINATION_PORT} {} {}", f.src.0, f.dst.0, f.bytes, f.start_ns)
                .expect("writing to a string cannot fail");
        }
        out
    }

    /// Returns the route file; `None`: no routes were given.
    pub fn routes_text(&self) -> Option<String> {
        if self.routes.is_empty() {
            return None;
        }
        let mut n_between: HashMap<(NodeId, NodeId), u32> = HashMap::new();
        let mut out = String::new();
        for (f, path) in self.flows.iter().zip(&self.routes) {
            let nth = n_between.entry((f.src, f.dst)).or_default();
            let port = FIRST_SOURCE_PORT + *nth;
            *nth += 1;
            let path: Vec<String> = path.iter().map(|node| node.0.to_string()).collect();
            let path = path.join(" ");
            writeln!(out, "{} {} {} {port} {DESTINATION_PORT} | {path}", f.id, f.src.0, f.dst.0)
                .expect("writing to a string cannot fail");
        }
        Some(out)
    }
}
