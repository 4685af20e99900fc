//! One shortest path chosen by the destination alone, as in InfiniBand's forwarding tables: D-mod-k.
//!
//! Layer: routing. Flows to one host share its path and no other. Flows to consecutive hosts take different switches above the leaves. So shifts and rings over
//! all hosts have no collisions in a full fat-tree (Zahavi, "Fat-tree routing and node ordering", 2012).

use super::RoutingPolicy;
use crate::routing::{FlowKey, FlowPaths, RouteError, Router};

/// The policy `routing.policy = "destination"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    /// Seed of the hash that chooses among several NICs.
    pub seed: u32,
}

impl RoutingPolicy for Destination {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        let nics = router.hashed_path(flow, self.seed, link)?;
        let (first, last) = (nics[0], nics[nics.len() - 1]);
        Ok(FlowPaths {
            data: vec![router.shortest_path(first, last, u64::from(flow.dst_rank))],
            ack: vec![router.shortest_path(last ^ 1, first ^ 1, u64::from(flow.src_rank))],
        })
    }
}
