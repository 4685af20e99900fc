//! All shortest paths between the NICs that the hash chooses; each switch chooses among those that are left, by its queues.
//!
//! Layer: routing.

use super::RoutingPolicy;
use super::spray::Spray;
use crate::routing::{FlowKey, FlowPaths, RouteError, Router};

/// The policy `routing.policy = "adaptive"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Adaptive {
    /// Seed of the hash.
    pub seed: u32,
    /// The most paths of a flow. If there are more, they are sampled evenly.
    pub max_paths: u32,
}

impl RoutingPolicy for Adaptive {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        Spray { seed: self.seed, max_paths: self.max_paths }.paths(router, flow, link)
    }

    fn sprays(&self) -> bool {
        true
    }

    fn is_adaptive(&self) -> bool {
        true
    }
}
