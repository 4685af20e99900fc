//! Names of directions of links, by the nodes at their ends.
//!
//! Layer: host.

use std::collections::HashMap;

use hyperfold_network::topology::Network;

/// Returns the names of the links that link ends transmit on: `host12->leaf3`, and `host12->leaf3#k` if links are parallel.
pub(crate) fn link_names(net: &Network, end_arcs: &[u32]) -> Vec<String> {
    let mut parallel = HashMap::new();
    let key = |arc: u32| (net.arc_from(arc), net.arc_to(arc));
    for &arc in end_arcs {
        *parallel.entry(key(arc)).or_insert(0u32) += 1;
    }
    let mut seen = HashMap::new();
    let names = net.names();
    end_arcs
        .iter()
        .map(|&arc| {
            let (from_node, to_node) = key(arc);
            let plain = format!("{}->{}", names[from_node as usize], names[to_node as usize]);
            if parallel[&(from_node, to_node)] == 1 {
                return plain;
            }
            let k = seen.entry((from_node, to_node)).or_insert(0u32);
            *k += 1;
            format!("{plain}#{k}")
        })
        .collect()
}

/// Returns the names of the node that sends and of the one that receives, of a link that is named as [`link_names`] does.
pub fn nodes_of_link(name: &str) -> (&str, &str) {
    let (source, target) = name.split_once("->").unwrap_or((name, ""));
    (source, target.split_once('#').map_or(target, |(node, _)| node))
}
