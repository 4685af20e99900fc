//! Distances and numbers of shortest paths between the hosts of a network, and rings of ports that can wait for each other.
//!
//! Layer: routing.

use std::collections::BTreeMap;

use super::router::Router;
use super::table::{NextHopTable, UNREACHED};
use crate::topology::{ArcIdx, NodeIdx, NodeKind};

/// Distances and shortest paths between all ordered pairs of hosts that reach each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distances {
    /// Links of the longest shortest path from host to host.
    pub diameter: u32,
    /// Links of a shortest path, averaged over the pairs.
    pub mean: f64,
    /// Shortest paths of the pair that has the fewest.
    pub min_paths: u64,
    /// Shortest paths of the pair that has the most, at most 2^48.
    pub max_paths: u64,
    /// Shortest paths of a pair, averaged.
    pub mean_paths: f64,
    /// Pairs that no path joins.
    pub unreached_pairs: u64,
}

/// The most paths that are counted.
const MAX_PATHS: u64 = 1 << 48;

/// Hosts with the same links to the same switches. A host that is linked to another one is a group of its own.
struct HostGroup {
    /// Some host of the group.
    host: NodeIdx,
    /// Number of its hosts.
    n: u64,
    /// Attachment switches by number, with the links to each.
    switches: Vec<(u32, u64)>,
}

impl Router<'_> {
    /// Surveys all pairs of hosts. Hosts that are linked to each other directly are one link apart.
    pub fn distances(&self) -> Distances {
        let direct = self.direct_links();
        let groups = self.host_groups(&direct);
        let mut sum = Survey::new();
        for to in &groups {
            let table = self.host_table(to.host);
            let counts = table.map(|t| self.path_counts(t, to)).unwrap_or_default();
            for from in &groups {
                if let Some(links) = direct.get(&(from.host, to.host)) {
                    sum.add(1, 1, *links);
                    continue;
                }
                let same = from.host == to.host;
                let pairs = if same { from.n * (from.n - 1) } else { from.n * to.n };
                let Some(table) = table else {
                    sum.distances.unreached_pairs += pairs;
                    continue;
                };
                let near = from.switches.iter().map(|(s, _)| table.dist(*s)).min().unwrap_or(UNREACHED);
                if near == UNREACHED {
                    sum.distances.unreached_pairs += pairs;
                    continue;
                }
                let paths = from.switches.iter().filter(|(s, _)| table.dist(*s) == near);
                let paths =
                    paths.fold(0u64, |n, (s, links)| n.saturating_add(links.saturating_mul(counts[*s as usize])));
                sum.add(pairs, u32::from(near) + 2, paths.min(MAX_PATHS));
            }
        }
        sum.finish()
    }

    fn host_groups(&self, direct: &BTreeMap<(NodeIdx, NodeIdx), u64>) -> Vec<HostGroup> {
        let mut groups = BTreeMap::new();
        for (host, _) in (0..).zip(&self.net.nodes).filter(|(_, n)| n.kind == NodeKind::Host) {
            let mut links: BTreeMap<u32, u64> = BTreeMap::new();
            for &far in self.graph().neighbours(host) {
                let switch = self.graph().switch_of[far as usize];
                if switch != u32::MAX {
                    *links.entry(switch).or_default() += 1;
                }
            }
            let switches: Vec<(u32, u64)> = links.into_iter().collect();
            let alone = direct.range((host, 0)..=(host, NodeIdx::MAX)).next().map(|_| host);
            groups.entry((alone, switches.clone())).or_insert(HostGroup { host, n: 0, switches }).n += 1;
        }
        groups.into_values().collect()
    }

    /// Number of shortest paths from each switch to a host of a group, by the links to it.
    fn path_counts(&self, table: &NextHopTable, to: &HostGroup) -> Vec<u64> {
        let n = self.graph().switches.len() as u32;
        let mut order: Vec<u32> = (0..n).filter(|&s| table.dist(s) != UNREACHED).collect();
        order.sort_by_key(|&s| table.dist(s));
        let mut counts = vec![0u64; n as usize];
        for switch in order {
            counts[switch as usize] = match table.n_next(switch) {
                0 => to.switches.iter().find(|(s, _)| *s == switch).map_or(0, |(_, links)| *links),
                hops => (0..hops)
                    .map(|i| counts[self.switch_at(self.next_arc(table, switch, i)) as usize])
                    .fold(0u64, u64::saturating_add)
                    .min(MAX_PATHS),
            };
        }
        counts
    }

    /// Number of links between each two hosts that are joined directly, in both directions.
    fn direct_links(&self) -> BTreeMap<(NodeIdx, NodeIdx), u64> {
        let is_host = |v: NodeIdx| self.net.nodes[v as usize].kind == NodeKind::Host;
        let mut links = BTreeMap::new();
        for link in self.net.links.iter().filter(|l| is_host(l.a) && is_host(l.b)) {
            *links.entry((link.a, link.b)).or_default() += 1;
            *links.entry((link.b, link.a)).or_default() += 1;
        }
        links
    }

    /// A ring of ports of switches on shortest paths, each of which can wait for the next one; `None` if there is no ring.
    ///
    /// With pause frames such a ring can come to a halt for ever: every port waits for room behind the next one. Trees and Clos networks have none, since
    /// their paths go up and then down. A torus has one in each dimension of more than three switches.
    pub fn waiting_ring(&self) -> Option<Vec<ArcIdx>> {
        let mut waits: Vec<Vec<ArcIdx>> = vec![Vec::new(); 2 * self.net.links.len()];
        let groups = self.host_groups(&BTreeMap::new());
        for to in &groups {
            let Some(table) = self.host_table(to.host) else { continue };
            // Switches that packets to this group can be at, the farthest first.
            let mut is_met = vec![false; self.graph().switches.len()];
            for (switch, _) in groups.iter().flat_map(|from| &from.switches) {
                is_met[*switch as usize] = table.dist(*switch) != UNREACHED;
            }
            let mut order: Vec<u32> = (0..is_met.len() as u32).filter(|&s| table.dist(s) != UNREACHED).collect();
            order.sort_by_key(|&s| std::cmp::Reverse(table.dist(s)));
            for switch in order {
                if !is_met[switch as usize] {
                    continue;
                }
                for i in 0..table.n_next(switch) {
                    let arc = self.next_arc(table, switch, i);
                    let next = self.switch_at(arc);
                    is_met[next as usize] = true;
                    waits[arc as usize].extend((0..table.n_next(next)).map(|k| self.next_arc(table, next, k)));
                }
            }
            waits.iter_mut().filter(|w| w.len() > 64).for_each(|w| {
                w.sort_unstable();
                w.dedup();
            });
        }
        ring(&waits)
    }
}

/// A ring of a graph, found depth first; `None` if there is none.
fn ring(next: &[Vec<ArcIdx>]) -> Option<Vec<ArcIdx>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        New,
        OnPath,
        Done,
    }
    let mut visits = vec![Visit::New; next.len()];
    for start in 0..next.len() {
        if visits[start] != Visit::New {
            continue;
        }
        // Nodes of the path, each with the position of the next neighbour to try.
        let mut path = vec![(start as ArcIdx, 0usize)];
        visits[start] = Visit::OnPath;
        while let Some((node, tried)) = path.last_mut() {
            let node = *node;
            let Some(&far) = next[node as usize].get(*tried) else {
                visits[node as usize] = Visit::Done;
                path.pop();
                continue;
            };
            *tried += 1;
            match visits[far as usize] {
                Visit::New => {
                    visits[far as usize] = Visit::OnPath;
                    path.push((far, 0));
                }
                Visit::OnPath => {
                    let first = path.iter().position(|(n, _)| *n == far).unwrap_or(0);
                    return Some(path[first..].iter().map(|(n, _)| *n).collect());
                }
                Visit::Done => {}
            }
        }
    }
    None
}

/// Sums over pairs of hosts.
struct Survey {
    distances: Distances,
    pairs: u64,
}

impl Survey {
    fn new() -> Survey {
        let distances = Distances {
            diameter: 0,
            mean: 0.0,
            min_paths: u64::MAX,
            max_paths: 0,
            mean_paths: 0.0,
            unreached_pairs: 0,
        };
        Survey { distances, pairs: 0 }
    }

    fn add(&mut self, pairs: u64, links: u32, paths: u64) {
        if pairs == 0 {
            return;
        }
        let d = &mut self.distances;
        d.diameter = d.diameter.max(links);
        d.mean += pairs as f64 * f64::from(links);
        d.min_paths = d.min_paths.min(paths);
        d.max_paths = d.max_paths.max(paths);
        d.mean_paths += pairs as f64 * paths as f64;
        self.pairs += pairs;
    }

    fn finish(mut self) -> Distances {
        let pairs = self.pairs.max(1) as f64;
        self.distances.mean /= pairs;
        self.distances.mean_paths /= pairs;
        if self.pairs == 0 {
            self.distances.min_paths = 0;
        }
        self.distances
    }
}
