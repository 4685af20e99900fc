//! All shortest paths between the NICs that the hash chooses.
//!
//! Layer: routing.

use super::RoutingPolicy;
use crate::routing::{FlowKey, FlowPaths, RouteError, Router};

/// `routing.policy = "spray"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spray {
    /// Of the hash.
    pub seed: u32,
    /// Where there are more paths, that many, evenly sampled.
    pub max_paths: u32,
}

impl RoutingPolicy for Spray {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        let nics = router.hashed_path(flow, self.seed, link)?;
        let (first, last) = (nics[0], nics[nics.len() - 1]);
        // Where paths are sampled, every flow begins at another one, so that together they use all.
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
