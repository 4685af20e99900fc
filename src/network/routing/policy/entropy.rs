//! The paths of a number of entropies: header values that switches hash, so that two of them may share a path.
//!
//! Layer: routing.

use super::RoutingPolicy;
use crate::routing::{FlowKey, FlowPaths, RouteError, Router};

/// The policy `routing.policy = "entropy"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entropy {
    /// Seed of the hash.
    pub seed: u32,
    /// Number of entropies of a flow.
    pub count: u32,
}

impl RoutingPolicy for Entropy {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        let nics = router.hashed_path(flow, self.seed, link)?;
        let (first, last) = (nics[0], nics[nics.len() - 1]);
        let way = |first, last, sport: u16, dport| -> Vec<_> {
            // Any odd factor spreads the entropies over the source ports of UDP, which switches hash.
            let port = |entropy: u32| sport ^ (entropy as u16).wrapping_mul(0x9e37);
            (0..self.count)
                .map(|entropy| router.path_of_ports(first, last, (port(entropy), dport), self.seed))
                .collect()
        };
        Ok(FlowPaths {
            data: way(first, last, flow.sport, flow.dport),
            ack: way(last ^ 1, first ^ 1, flow.dport, flow.sport),
        })
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::parse_ns3;

    #[test]
    fn entropies_use_all_paths_unevenly() {
        // Nodes 0 and 1 are hosts, 2 and 3 their leaves, 4 to 7 spines.
        let ends = ["0 2", "1 3", "2 4", "2 5", "2 6", "2 7", "3 4", "3 5", "3 6", "3 7"];
        let links = ends.map(|ends| format!("{ends} 100Gbps 1us 0\n")).concat();
        let net = parse_ns3("test", &format!("8 6 10\n2 3 4 5 6 7\n{links}")).unwrap().network;
        let router = Router::new(&net);
        let flow = FlowKey { id: 0, src_rank: 0, dst_rank: 1, sport: 10_000, dport: 100 };
        let paths = router.paths(flow, &Entropy { seed: 1, count: 64 }).unwrap();
        for way in [&paths.data, &paths.ack] {
            assert_eq!(way.len(), 64);
            let mut uses = std::collections::BTreeMap::new();
            way.iter().for_each(|path| *uses.entry(path[1]).or_insert(0) += 1);
            assert_eq!(uses.len(), 4, "{uses:?}");
            assert!(uses.values().any(|&n| n != 16) && uses.values().all(|&n| (6..28).contains(&n)), "{uses:?}");
        }
        assert!(paths.data.iter().all(|path| path[0] == paths.data[0][0] && path.len() == 4));
    }
}
