//! Routing: shortest-path next hops, ECMP, spraying, explicit routes, base round-trip times.
//!
//! Layer: routing, at the level of topology. It knows the ranks and ports of a flow ([`FlowKey`]), not its content.

mod error;
mod file;
mod hash;
pub mod path;
mod policy;
mod router;
mod rtt;
mod survey;
mod table;
mod wrong_paths;

pub use error::RouteError;
pub use file::RouteFile;
pub use hash::{EcmpKey, FlowKey, host_ip, node_seed};
pub use path::FlowPaths;
pub use policy::{Ecmp, Entropy, PolicyKeys, ROUTING_POLICIES, RoutingPolicy, Spray, routing_policy};
pub use router::{Router, is_intra_server};
pub use rtt::{PayloadClock, flow_rtt_window, global_rtt_window, path_rtt_window};
pub use survey::Distances;
pub use wrong_paths::wrong_paths;
