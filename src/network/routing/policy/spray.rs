//! All shortest paths between the NICs that the hash chooses.
//!
//! Layer: routing.

use super::RoutingPolicy;
use crate::routing::{FlowKey, FlowPaths, RouteError, Router};

/// The policy `routing.policy = "spray"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spray {
    /// Seed of the hash.
    pub seed: u32,
    /// The most paths of a flow. If there are more, they are sampled evenly.
    pub max_paths: u32,
}

impl RoutingPolicy for Spray {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        let nics = router.hashed_path(flow, self.seed, link)?;
        let (first, last) = (nics[0], nics[nics.len() - 1]);
        // If paths are sampled, each flow begins at a different one, so that all flows together use all paths.
        let offset = router.hash(flow, self.seed)?;
        Ok(FlowPaths {
            data: router.shortest_paths(first, last, self.max_paths, offset),
            ack: router.shortest_paths(last ^ 1, first ^ 1, self.max_paths, offset),
        })
    }

    fn sprays(&self) -> bool {
        true
    }
}
