//! What a network lacks from the beginning because of `topology.outages`, and the links that lose packets by its file.
//!
//! Layer: cli. Which links are down, the host's own code says, as it does for a run.

use std::collections::BTreeMap;

use hyperfold_base::units::counted;
use hyperfold_network::topology::{Network, NodeKind};

use super::source::FoundNetwork;

/// Most links or nodes that a line names.
const NAMED: usize = 6;

/// The first names of a list, and how many more there are.
fn first(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The links that are down from the beginning, by the nodes at their ends; empty if there are none.
pub fn links_down(net: &Network, names: &[String]) -> String {
    let name = |link: &u32| {
        let link = &net.links[*link as usize];
        format!("{} {}", names[link.a as usize], names[link.b as usize])
    };
    first(&net.failed.iter().map(name).collect::<Vec<_>>())
}

/// The network without the links that are down from the beginning.
pub fn working(net: &Network) -> Network {
    let works = |(link, _): &(u32, _)| !net.failed.contains(link);
    let links = (0u32..).zip(&net.links).filter(works).map(|(_, link)| link.clone()).collect();
    Network { links, failed: Default::default(), lossy_links: Vec::new(), ..net.clone() }
}

/// Hosts that reach less than half of those that they would reach without failures.
fn cut_off(net: &Network) -> Vec<usize> {
    let (whole, left) = (most_reached(net, false), most_reached(net, true));
    let is_host = |node: &usize| net.nodes[*node].kind == NodeKind::Host;
    (0..net.nodes.len()).filter(is_host).filter(|&node| 2 * left[node] < whole[node]).collect()
}

/// For each host, how many hosts are at the switches that its links lead to, directly or over other switches. Hosts do not forward, so each port counts by
/// itself, and the one that reaches most is taken.
fn most_reached(net: &Network, without_failed: bool) -> Vec<usize> {
    let is_switch = |node: u32| net.nodes[node as usize].kind == NodeKind::Switch;
    let counts = |(link, l): &(u32, &hyperfold_network::topology::Link)| {
        net.is_packet_link(l) && !(without_failed && net.failed.contains(link))
    };
    let links: Vec<_> = (0u32..).zip(&net.links).filter(counts).map(|(_, link)| (link.a, link.b)).collect();
    let mut part: Vec<u32> = (0..net.nodes.len() as u32).collect();
    for &(a, b) in links.iter().filter(|&&(a, b)| is_switch(a) && is_switch(b)) {
        let (a, b) = (root(&mut part, a), root(&mut part, b));
        part[a.max(b) as usize] = a.min(b);
    }
    // Pairs of a host and a part that it is linked to, each once.
    let mut ends: Vec<(u32, u32)> = Vec::new();
    for &(a, b) in &links {
        for (host, far) in [(a, b), (b, a)] {
            if net.nodes[host as usize].kind == NodeKind::Host {
                ends.push((host, root(&mut part, far)));
            }
        }
    }
    ends.sort_unstable();
    ends.dedup();
    let mut hosts_of_part: BTreeMap<u32, usize> = BTreeMap::new();
    ends.iter().for_each(|(_, part)| *hosts_of_part.entry(*part).or_default() += 1);
    let mut reached = vec![0; net.nodes.len()];
    for (host, part) in ends {
        reached[host as usize] = reached[host as usize].max(hosts_of_part[&part]);
    }
    reached
}

/// The first node of the part that a node belongs to. It shortens the path for the next search.
fn root(part: &mut [u32], mut node: u32) -> u32 {
    while part[node as usize] != node {
        part[node as usize] = part[part[node as usize] as usize];
        node = part[node as usize];
    }
    node
}

/// The hosts that are cut off, by name; empty if there are none.
pub fn named_cut_off(net: &Network, names: &[String]) -> String {
    first(&cut_off(net).into_iter().map(|host| names[host].clone()).collect::<Vec<_>>())
}

/// Lines of `topo show`; none if nothing fails and nothing gets lost.
pub fn lines(found: &FoundNetwork) -> Vec<String> {
    let (net, topology) = (&found.network, &found.config.topology);
    let mut lines = Vec::new();
    let mut line = |text: String| {
        let label = if lines.is_empty() { "failures" } else { "" };
        lines.push(format!("{label:<12}{text}"));
    };
    if !net.failed.is_empty() {
        let names = net.names();
        let (n, are) = (counted(net.failed.len(), "link"), if net.failed.len() == 1 { "is" } else { "are" });
        line(format!("{n} {are} down from the beginning: {}; what follows is without them", links_down(net, &names)));
        let cut_off = named_cut_off(net, &names);
        if !cut_off.is_empty() {
            line(format!("cut off are {cut_off}"));
        }
    }
    if !net.lossy_links.is_empty() {
        let loses = if net.lossy_links.len() == 1 { "loses" } else { "lose" };
        line(format!("{} of the file {loses} packets (error rates)", counted(net.lossy_links.len(), "link")));
    }
    let later = topology.outages.iter().filter(|outage| outage.times.fails_during_run()).count();
    match later + topology.impairments.len() {
        0 => {}
        n => line(format!(
            "{} more of topology.outages that fail later, or are slow or lose packets, {} not shown",
            n,
            if n == 1 { "is" } else { "are" }
        )),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_network::topology::parse_ns3;

    /// Hosts 0 to 3 at leaf 5, host 4 at leaf 6, which spine 7 joins.
    fn network(failed: &[u32]) -> Network {
        let links = ["0 5", "1 5", "2 5", "3 5", "4 6", "5 7", "6 7"];
        let links = links.map(|ends| format!("{ends} 100Gbps 1us 0\n")).concat();
        let network = parse_ns3("test", &format!("8 3 7\n5 6 7\n{links}")).expect("it is right").network;
        Network { failed: failed.iter().copied().collect(), ..network }
    }

    #[test]
    fn who_is_cut_off_is_named() {
        for (failed, named) in [
            (&[][..], ""),
            (&[0], "host0"),
            (&[5], "host4"),
            (&[6, 2], "host2, host4"),
            (&[0, 1, 2, 3], "host0, host1, host2, host3, host4"),
        ] {
            let net = network(failed);
            assert_eq!(named_cut_off(&net, &net.names()), named, "{failed:?}");
            assert_eq!(working(&net).links.len(), 7 - failed.len());
        }
        let net = network(&[5]);
        assert_eq!(links_down(&net, &net.names()), "switch5 switch7");
    }
}
