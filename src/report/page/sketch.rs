//! Data for the sketch of a network: tiers of nodes, and how busy the links between them were. `assets/report/charts.js` draws it.
//!
//! Layer: report. It knows the names that `topology::Network::names` gives.

use std::collections::{BTreeMap, BTreeSet};

/// Largest number of hosts, and of switches of a tier, that are drawn.
const HOSTS_UP_TO: usize = 96;
const SWITCHES_UP_TO: usize = 32;

/// A node: its tier and its number.
type Node = (usize, u32);

/// A network that is small enough to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sketch {
    /// Tiers from the hosts up: name of the nodes, their number, and the numbers of the first ones, which are drawn.
    pub tiers: Vec<(String, usize, Vec<u32>)>,
    /// Links between drawn nodes: tier and position of the lower end, tier and position of the upper end, and utilisation of the busier direction.
    pub links: Vec<(usize, usize, usize, usize, f64)>,
}

/// Index of a kind of node; lower tiers are nearer to the hosts. `None`: it is no kind of node of ours.
fn tier(kind: &str) -> Option<usize> {
    ["host", "leaf", "switch", "agg", "spine", "core"].iter().position(|k| *k == kind)
}

/// Tier and number of a node name such as `leaf3`.
fn node(name: &str) -> Option<Node> {
    let digits = name.find(|c: char| c.is_ascii_digit())?;
    Some((tier(&name[..digits])?, name[digits..].parse().ok()?))
}

impl Sketch {
    /// Makes the sketch from names of links, each direction with its utilisation. `None`: there are no links, or a name is not that of a link between nodes.
    pub fn of<'a>(links: impl Iterator<Item = (&'a str, f64)>) -> Option<Sketch> {
        const KINDS: [&str; 6] = ["host", "leaf", "switch", "agg", "spine", "core"];
        let mut found: BTreeMap<(Node, Node), f64> = BTreeMap::new();
        let mut nodes: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); KINDS.len()];
        for (name, utilisation) in links {
            let (from_node, to_node) = name.split_once("->")?;
            let (from_node, to_node) = (node(from_node)?, node(to_node.split('#').next().unwrap_or(to_node))?);
            for (tier, number) in [from_node, to_node] {
                nodes[tier].insert(number);
            }
            let busier = found.entry((from_node.min(to_node), from_node.max(to_node))).or_default();
            *busier = busier.max(utilisation);
        }
        let mut place = vec![0; KINDS.len()];
        let mut tiers = Vec::new();
        for (tier, numbers) in nodes.iter().enumerate().filter(|(_, n)| !n.is_empty()) {
            place[tier] = tiers.len();
            let max_drawn = if tier == 0 { HOSTS_UP_TO } else { SWITCHES_UP_TO };
            tiers.push((KINDS[tier].to_string(), numbers.len(), numbers.iter().copied().take(max_drawn).collect()));
        }
        let drawn = |(tier, number): Node| {
            let (_, _, numbers): &(String, usize, Vec<u32>) = &tiers[place[tier]];
            numbers.binary_search(&number).ok().map(|position| (place[tier], position))
        };
        let link = |(&(a, b), &busy): (&(Node, Node), &f64)| {
            let ((lower, lower_position), (upper, upper_position)) = (drawn(a)?, drawn(b)?);
            Some((lower, lower_position, upper, upper_position, (busy * 100.0).round() / 100.0))
        };
        let links = found.iter().filter_map(link).collect();
        (!tiers.is_empty()).then_some(Sketch { tiers, links })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_and_links_are_read_off_names() {
        let links =
            [("host0->leaf0", 0.5), ("leaf0->host0", 0.25), ("leaf0->spine1#1", 0.125), ("leaf0->spine1#2", 1.0)];
        let s = Sketch::of(links.into_iter()).unwrap();
        let tier = |name: &str, number: u32| (name.to_string(), 1, vec![number]);
        assert_eq!(s.tiers, [tier("host", 0), tier("leaf", 0), tier("spine", 1)]);
        assert_eq!(s.links, [(0, 0, 1, 0, 0.5), (1, 0, 2, 0, 1.0)]);
        assert_eq!(Sketch::of([("12->x", 0.5)].into_iter()), None);
    }

    #[test]
    fn of_many_nodes_the_first_are_drawn() {
        let names: Vec<String> = (0..1000).map(|h| format!("host{h}->leaf{}", h / 10)).collect();
        let s = Sketch::of(names.iter().map(|n| (n.as_str(), 0.1))).unwrap();
        assert_eq!((s.tiers[0].1, s.tiers[0].2.len(), s.tiers[1].1, s.tiers[1].2.len()), (1000, 96, 100, 32));
        assert_eq!(s.links.len(), 96, "links between drawn nodes alone");
    }
}
