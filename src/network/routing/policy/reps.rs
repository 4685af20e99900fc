//! The paths of a number of entropies, of which senders choose those again whose packets arrived without a mark: recycled entropies packet spraying (REPS).
//!
//! Layer: routing.

use super::RoutingPolicy;
use super::entropy::Entropy;
use crate::routing::{FlowKey, FlowPaths, RouteError, Router};

/// The policy `routing.policy = "reps"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reps {
    /// Seed of the hash.
    pub seed: u32,
    /// Number of entropies of a flow.
    pub count: u32,
}

impl RoutingPolicy for Reps {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        Entropy { seed: self.seed, count: self.count }.paths(router, flow, link)
    }

    fn sprays(&self) -> bool {
        true
    }

    fn has_entropies(&self) -> bool {
        true
    }

    fn recycles(&self) -> bool {
        true
    }
}
