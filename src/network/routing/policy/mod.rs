//! Policies that choose among the shortest paths of a flow.
//!
//! Layer: routing. A policy is one file here that implements [`RoutingPolicy`], and one line of the registry (`src/base/registries.rs`). It chooses when an
//! experiment is built. Packets of a flow take its paths at random or in turn, or switches
//! choose among them by their queues. Routes of a file are a policy too, but have no
//! name.
//!
//! An example, which always takes the first path:
//!
//! ```
//! use hyperfold_network::routing::{FlowKey, FlowPaths, RouteError, Router, RoutingPolicy};
//! use hyperfold_network::topology::parse_ns3;
//!
//! #[derive(Debug)]
//! struct FirstPath;
//!
//! impl RoutingPolicy for FirstPath {
//!     fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
//!         // The NICs at both ends are those that the hash chooses, or the queue pair's link.
//!         let nics = router.hashed_path(flow, 1, link)?;
//!         let (first, last) = (nics[0], nics[nics.len() - 1]);
//!         let data = vec![router.shortest_path(first, last, 0)];
//!         // Arcs 2 i and 2 i + 1 are the two directions of link i.
//!         Ok(FlowPaths { data, ack: vec![router.shortest_path(last ^ 1, first ^ 1, 0)] })
//!     }
//! }
//!
//! // Nodes 0 and 1 are hosts, 2 and 3 their leaves, 4 and 5 spines.
//! let links = ["0 2", "1 3", "2 4", "2 5", "3 4", "3 5"].map(|ends| format!("{ends} 100Gbps 1us 0\n")).concat();
//! let net = parse_ns3("example", &format!("6 4 6\n2 3 4 5\n{links}")).unwrap().network;
//! let router = Router::new(&net);
//! let key = |sport| FlowKey { id: 0, src_rank: 0, dst_rank: 1, sport, dport: 100 };
//! // A flow takes the same path whatever its ports.
//! assert_eq!(router.paths(key(1), &FirstPath).unwrap(), router.paths(key(2), &FirstPath).unwrap());
//! ```

mod adaptive;
mod destination;
mod ecmp;
mod entropy;
mod mixed;
mod reps;
mod round_robin;
mod spray;

pub use ecmp::Ecmp;
pub use entropy::Entropy;
pub use spray::Spray;

use super::error::RouteError;
use super::file::RouteFile;
use super::hash::FlowKey;
use super::path::FlowPaths;
use super::router::Router;
pub use super::router::RoutingPolicy;
use hyperfold_base::{by_name, for_each_routing_policy};

/// The keys of a policy: `[base.routing]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyKeys {
    /// Seed of hashes; 1 hashes as the reference does.
    pub seed: u32,
    /// Most paths that a flow is sprayed over, or number of its entropies; at least 1.
    pub max_paths: u32,
}

/// Makes a policy with these keys.
type MakePolicy = fn(PolicyKeys) -> Box<dyn RoutingPolicy>;

/// All policies by name. `"file"` is not one of them, because its paths are listed.
pub const ROUTING_POLICIES: &[(&str, MakePolicy)] = for_each_routing_policy!(by_name);

/// The policy with this name.
pub fn routing_policy(name: &str, keys: PolicyKeys) -> Option<Box<dyn RoutingPolicy>> {
    ROUTING_POLICIES.iter().find(|(known, _)| *known == name).map(|(_, make)| make(keys))
}

impl RoutingPolicy for RouteFile {
    fn paths(&self, _: &Router, flow: &FlowKey, _: Option<u32>) -> Result<FlowPaths, RouteError> {
        self.listed(flow)
    }
}
