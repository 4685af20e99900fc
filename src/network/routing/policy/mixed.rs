//! The paths of a number of entropies, of which senders choose those again whose packets arrived without a mark. Where none is kept they take all in turn, but for
//! those with a penalty. It is the default of htsim's simulator of Ultra Ethernet.
//!
//! Layer: routing.

use super::RoutingPolicy;
use super::entropy::Entropy;
use crate::routing::{FlowKey, FlowPaths, RouteError, Router};

/// The policy `routing.policy = "mixed"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mixed {
    /// Seed of the hash.
    pub seed: u32,
    /// Number of entropies of a flow.
    pub count: u32,
}

impl RoutingPolicy for Mixed {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        Entropy { seed: self.seed, count: self.count }.paths(router, flow, link)
    }

    fn sprays(&self) -> bool {
        true
    }

    fn has_entropies(&self) -> bool {
        true
    }

    fn takes_turns(&self) -> bool {
        true
    }

    fn recycles(&self) -> bool {
        true
    }
}
