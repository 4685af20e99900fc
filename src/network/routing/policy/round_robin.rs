//! All shortest paths between the NICs that the hash chooses, in turn.
//!
//! Layer: routing.

use super::RoutingPolicy;
use super::spray::Spray;
use crate::routing::{FlowKey, FlowPaths, RouteError, Router};
use crate::topology::ArcIdx;

/// The policy `routing.policy = "round-robin"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundRobin {
    /// Seed of the hash.
    pub seed: u32,
    /// The most paths of a flow. If there are more, they are sampled evenly.
    pub max_paths: u32,
}

impl RoutingPolicy for RoundRobin {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        let all = Spray { seed: self.seed, max_paths: self.max_paths }.paths(router, flow, link)?;
        Ok(FlowPaths { data: spread(all.data, 0), ack: spread(all.ack, 0) })
    }

    fn sprays(&self) -> bool {
        true
    }

    fn takes_turns(&self) -> bool {
        true
    }
}

/// Orders paths that are the same in their first `depth` arcs so that those after each other part as early as they can: a packet and the next one then share
/// few links.
fn spread(paths: Vec<Vec<ArcIdx>>, depth: usize) -> Vec<Vec<ArcIdx>> {
    if paths.len() < 2 || depth >= paths[0].len() {
        return paths;
    }
    let mut groups: Vec<Vec<Vec<ArcIdx>>> = Vec::new();
    for path in paths {
        match groups.iter_mut().find(|group| group[0].get(depth) == path.get(depth)) {
            Some(group) => group.push(path),
            None => groups.push(vec![path]),
        }
    }
    let mut groups: Vec<_> = groups.into_iter().map(|group| spread(group, depth + 1).into_iter()).collect();
    let mut out = Vec::new();
    loop {
        let before = out.len();
        out.extend(groups.iter_mut().filter_map(Iterator::next));
        if out.len() == before {
            return out;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_after_each_other_part_early() {
        let paths = [[1, 10, 20], [1, 10, 21], [1, 11, 22], [1, 11, 23]].map(|path| path.to_vec()).to_vec();
        let ends: Vec<ArcIdx> = spread(paths, 0).iter().map(|path| path[2]).collect();
        assert_eq!(ends, [20, 22, 21, 23]);
    }
}
