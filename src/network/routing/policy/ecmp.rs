//! One shortest path chosen by the hash of addresses and ports.
//!
//! Layer: routing.

use super::RoutingPolicy;
use crate::routing::{FlowKey, FlowPaths, RouteError, Router};

/// The policy `routing.policy = "ecmp"`. Seed 1 chooses as the reference does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecmp {
    /// Seed of the hash.
    pub seed: u32,
}

impl RoutingPolicy for Ecmp {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        let data = router.hashed_path(flow, self.seed, link)?;
        let ack = router.hashed_way_back(flow, &data, self.seed);
        Ok(FlowPaths { data: vec![data], ack: vec![ack] })
    }
}
