//! Trees of switches over which the data of a communicator meets.
//!
//! Layer: topology. [`Network::add_reducers`] makes the parts of the switches that add up.

use super::network::{ArcIdx, Network, NodeIdx, NodeKind};

/// Switches over which the data of some hosts meets in a root, and spreads from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReductionTree {
    /// Each switch, with the index of its parent; `None`: it is the root. Children come before their parents.
    pub switches: Vec<(NodeIdx, Option<usize>)>,
    /// For each host, the index of the switch that it is linked to.
    pub leaf_of: Vec<usize>,
}

/// The switches of the fabric that a host is linked to, in the order of its links.
fn fabric_switches(net: &Network, out: &[Vec<ArcIdx>], host: NodeIdx) -> Vec<NodeIdx> {
    let far = out[host as usize].iter().map(|&arc| net.arc_to(arc));
    far.filter(|&node| is_fabric_switch(net, node)).collect()
}

/// Number of links from a host to switches of the fabric. `out`: [`Network::working_arcs`].
pub fn fabric_ports(net: &Network, out: &[Vec<ArcIdx>], host: NodeIdx) -> usize {
    fabric_switches(net, out, host).len()
}

fn is_fabric_switch(net: &Network, node: NodeIdx) -> bool {
    let node = &net.nodes[node as usize];
    node.kind == NodeKind::Switch && node.server == u32::MAX
}

/// Distances of all switches of the fabric from one of them, in links; `u32::MAX` where no path leads.
fn distances(net: &Network, out: &[Vec<ArcIdx>], from: NodeIdx) -> Vec<u32> {
    let mut distance = vec![u32::MAX; net.nodes.len()];
    distance[from as usize] = 0;
    let mut reached = vec![from];
    for hops in 1.. {
        let mut next = Vec::new();
        for &node in &reached {
            for &arc in &out[node as usize] {
                let far = net.arc_to(arc);
                if distance[far as usize] == u32::MAX && is_fabric_switch(net, far) {
                    distance[far as usize] = hops;
                    next.push(far);
                }
            }
        }
        if next.is_empty() {
            break;
        }
        reached = next;
    }
    distance
}

/// A tree for the data of `hosts`, each by its port number `port`, counted around. Its root is as near to the farthest leaf as any switch is, then as near to
/// all together; of equal ones number `spread` is taken, counted around, so that the trees of several communicators lie apart.
///
/// `out`: [`Network::working_arcs`]. `None`: a host is linked to no switch of the fabric, or two hosts do not reach each other.
pub fn reduction_tree(
    net: &Network,
    out: &[Vec<ArcIdx>],
    hosts: &[NodeIdx],
    port: usize,
    spread: usize,
) -> Option<ReductionTree> {
    let leaf = |&host: &NodeIdx| {
        let switches = fabric_switches(net, out, host);
        (!switches.is_empty()).then(|| switches[port % switches.len()])
    };
    let leaves: Vec<NodeIdx> = hosts.iter().map(leaf).collect::<Option<_>>()?;
    let mut distinct = leaves.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let root = root(net, out, &distinct, spread)?;
    let from_root = distances(net, out, root);
    let mut parent: Vec<Option<NodeIdx>> = vec![None; net.nodes.len()];
    let mut is_in_tree = vec![false; net.nodes.len()];
    is_in_tree[root as usize] = true;
    let mut found = vec![root];
    for &leaf in &distinct {
        let mut node = leaf;
        while !is_in_tree[node as usize] {
            is_in_tree[node as usize] = true;
            found.push(node);
            let nearer = out[node as usize].iter().map(|&arc| net.arc_to(arc)).filter(|&far| {
                is_fabric_switch(net, far) && from_root[far as usize] == from_root[node as usize].wrapping_sub(1)
            });
            let nearer: Vec<NodeIdx> = nearer.collect();
            let known = nearer.iter().copied().find(|&far| is_in_tree[far as usize]);
            let next = known.or_else(|| nearer.get(spread % nearer.len().max(1)).copied())?;
            parent[node as usize] = Some(next);
            node = next;
        }
    }
    found.sort_by_key(|&node| (std::cmp::Reverse(from_root[node as usize]), node));
    let place = |node: NodeIdx| found.iter().position(|&other| other == node);
    let switches = found.iter().map(|&node| (node, parent[node as usize].and_then(place))).collect();
    let leaf_of = leaves.iter().map(|&leaf| place(leaf)).collect::<Option<_>>()?;
    Some(ReductionTree { switches, leaf_of })
}

/// The root for data that enters at `leaves`; see [`reduction_tree`].
fn root(net: &Network, out: &[Vec<ArcIdx>], leaves: &[NodeIdx], spread: usize) -> Option<NodeIdx> {
    if let [only] = leaves {
        return Some(*only);
    }
    // The farthest leaf and the sum over all leaves.
    let mut reach = vec![(0u32, 0u64); net.nodes.len()];
    for &leaf in leaves {
        for (reach, distance) in reach.iter_mut().zip(distances(net, out, leaf)) {
            *reach = (reach.0.max(distance), reach.1 + u64::from(distance));
        }
    }
    let switches = || (0..net.nodes.len() as NodeIdx).filter(|&node| is_fabric_switch(net, node));
    let nearest = switches().map(|node| reach[node as usize]).min().filter(|reach| reach.0 != u32::MAX)?;
    let equal: Vec<NodeIdx> = switches().filter(|&node| reach[node as usize] == nearest).collect();
    Some(equal[spread % equal.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Clos, Fabric, RailOnly, RailOptimized, Reducer, SlimFly};

    /// Checks that each host's leaf is its neighbour, that parents are neighbours and come later, and that there is one root.
    fn check(net: &Network, hosts: &[NodeIdx], tree: &ReductionTree) {
        let are_linked = |a: NodeIdx, b: NodeIdx| net.links.iter().any(|l| [(l.a, l.b), (l.b, l.a)].contains(&(a, b)));
        for (&host, &leaf) in hosts.iter().zip(&tree.leaf_of) {
            assert!(are_linked(host, tree.switches[leaf].0));
        }
        for (i, &(switch, parent)) in tree.switches.iter().enumerate() {
            assert_eq!(parent.is_none(), i + 1 == tree.switches.len(), "the root comes last: {tree:?}");
            assert!(parent.is_none_or(|p| p > i && are_linked(switch, tree.switches[p].0)), "{tree:?}");
        }
    }

    #[test]
    fn hosts_of_one_leaf_meet_there() {
        let net = RailOnly::default().build(&Fabric::uniform(32, 8, 1)).unwrap();
        let hosts = [3, 11, 19, 27];
        let tree = reduction_tree(&net, &net.out_arcs(), &hosts, 0, 5).unwrap();
        check(&net, &hosts, &tree);
        assert_eq!(tree.switches.len(), 1);
        assert_eq!(net.names()[tree.switches[0].0 as usize], "leaf3");
    }

    #[test]
    fn leaves_meet_in_a_spine_and_trees_lie_apart() {
        let rails = RailOptimized { pods: 4, ..RailOptimized::default() };
        let net = rails.build(&Fabric::uniform(64, 8, 1)).unwrap();
        let hosts: Vec<NodeIdx> = (0..8).map(|server| 8 * server + 2).collect();
        let out = net.out_arcs();
        let roots: Vec<NodeIdx> = (0..3)
            .map(|spread| {
                let tree = reduction_tree(&net, &out, &hosts, 0, spread).unwrap();
                check(&net, &hosts, &tree);
                assert_eq!(tree.switches.len(), 5, "four leaves and a spine");
                tree.switches[4].0
            })
            .collect();
        assert!(roots[0] != roots[1] && roots[1] != roots[2]);
    }

    #[test]
    fn three_tiers_and_graphs_without_tiers_have_trees() {
        let clos = Clos { tiers: 3, hosts_per_leaf: 2, ..Clos::default() }.build(&Fabric::uniform(32, 1, 1)).unwrap();
        let fly = SlimFly { q: 5, hosts_per_router: 2 }.build(&Fabric::uniform(100, 1, 1)).unwrap();
        for net in [clos, fly] {
            let hosts: Vec<NodeIdx> = net.ranks.iter().copied().step_by(3).collect();
            for spread in [0, 1, 7] {
                check(&net, &hosts, &reduction_tree(&net, &net.out_arcs(), &hosts, 0, spread).unwrap());
            }
        }
    }

    #[test]
    fn a_reducer_is_as_fast_as_the_links_to_its_neighbour() {
        let mut net = RailOptimized { pods: 2, ..RailOptimized::default() }.build(&Fabric::uniform(16, 8, 1)).unwrap();
        let leaf = net.names().iter().position(|n| n == "leaf0").unwrap() as NodeIdx;
        let spine = net.names().iter().position(|n| n == "spine0").unwrap() as NodeIdx;
        let between = net.links.iter().filter(|l| (l.a, l.b) == (leaf, spine)).count() as u64;
        net.add_reducers(&[Reducer { switch: leaf, neighbour: 0 }, Reducer { switch: spine, neighbour: leaf }]);
        let [.., to_leaf, to_spine] = &net.links[..] else { panic!("there are links") };
        assert_eq!((to_leaf.b, to_leaf.rate_bps), (leaf, 400_000_000_000));
        assert_eq!((to_spine.b, to_spine.rate_bps), (spine, 400_000_000_000 * between));
        assert_eq!(net.host_of(15), Some(15));
        assert_eq!((net.host_of(16), net.host_of(17), net.host_of(18)), (Some(to_leaf.a), Some(to_spine.a), None));
        assert_eq!(net.nodes[to_leaf.a as usize].kind, NodeKind::Reducer);
        assert_eq!(net.names()[to_leaf.a as usize], "leaf0.reducer.host0");
        assert_eq!(net.names()[to_spine.a as usize], "spine0.reducer.leaf0");
    }
}
