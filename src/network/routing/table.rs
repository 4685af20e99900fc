//! Next hops towards one destination class, compressed.
//!
//! Layer: routing. A class is a set of attachment switches. All hosts attached to exactly these switches share the table, so there is one table per edge switch
//! and none per host. It knows nothing of flows or hashes.

use crate::topology::{ArcIdx, Network, NodeIdx, NodeKind};

/// Distance of a switch that cannot be reached.
pub(super) const UNREACHED: u16 = u16::MAX;
/// Marks a group that is a list in the arena. Otherwise a group is a run: `len << 16 | first`.
const LISTED: u32 = 1 << 31;

/// The packet-level graph for routing: outgoing arcs per node by ascending neighbour (parallel links by link index), and the switches numbered densely.
pub(super) struct SwitchGraph {
    base: Vec<u32>,
    arcs: Vec<ArcIdx>,
    neighbour_of_arc: Vec<NodeIdx>,
    /// Switch number of a node; `u32::MAX` for hosts.
    pub(super) switch_of: Vec<u32>,
    pub(super) switches: Vec<NodeIdx>,
    /// Adjacency among switches only: for each switch number, the first of its arcs.
    sw_base: Vec<u32>,
    /// For each arc between switches, the neighbour's switch number.
    sw_to: Vec<u32>,
    /// For each arc between switches, the position of the reverse arc among the neighbour's arcs.
    sw_back: Vec<u32>,
}

impl SwitchGraph {
    pub(super) fn new(net: &Network) -> SwitchGraph {
        SwitchGraph::without(net, &|_| false)
    }

    /// The graph without the links of which `is_down` holds, by their index.
    pub(super) fn without(net: &Network, is_down: &dyn Fn(u32) -> bool) -> SwitchGraph {
        let n = net.nodes.len();
        let mut degree = vec![0u32; n + 1];
        let links = || (0u32..).zip(&net.links).filter(|&(i, l)| net.is_packet_link(l) && !is_down(i));
        for (_, l) in links() {
            degree[l.a as usize + 1] += 1;
            degree[l.b as usize + 1] += 1;
        }
        let base = running_sum(degree);
        let mut fill = base.clone();
        let mut arcs = vec![0; base[n] as usize];
        for (i, l) in links() {
            for (end, arc) in [(l.a, 2 * i), (l.b, 2 * i + 1)] {
                arcs[fill[end as usize] as usize] = arc;
                fill[end as usize] += 1;
            }
        }
        // Position of every arc at its transmitting node, after sorting.
        let mut position = vec![0u32; 2 * net.links.len()];
        for v in 0..n {
            let own = &mut arcs[base[v] as usize..base[v + 1] as usize];
            own.sort_unstable_by_key(|&arc| (net.arc_to(arc), arc));
            for (i, &arc) in own.iter().enumerate() {
                position[arc as usize] = i as u32;
            }
        }
        let neighbour_of_arc = arcs.iter().map(|&arc| net.arc_to(arc)).collect::<Vec<_>>();

        let mut switch_of = vec![u32::MAX; n];
        let mut switches = Vec::new();
        for (i, node) in net.nodes.iter().enumerate() {
            if node.kind == NodeKind::Switch {
                switch_of[i] = switches.len() as u32;
                switches.push(i as NodeIdx);
            }
        }
        let mut sw_base = vec![0];
        let (mut sw_to, mut sw_back) = (Vec::new(), Vec::new());
        for &v in &switches {
            for i in base[v as usize]..base[v as usize + 1] {
                let next = switch_of[neighbour_of_arc[i as usize] as usize];
                if next != u32::MAX {
                    sw_to.push(next);
                    sw_back.push(position[(arcs[i as usize] ^ 1) as usize]);
                }
            }
            sw_base.push(sw_to.len() as u32);
        }
        SwitchGraph { base, arcs, neighbour_of_arc, switch_of, switches, sw_base, sw_to, sw_back }
    }

    /// Outgoing arcs of a node by ascending neighbour.
    pub(super) fn arcs(&self, node: NodeIdx) -> &[ArcIdx] {
        &self.arcs[self.base[node as usize] as usize..self.base[node as usize + 1] as usize]
    }

    /// Far ends of [`SwitchGraph::arcs`].
    pub(super) fn neighbours(&self, node: NodeIdx) -> &[NodeIdx] {
        &self.neighbour_of_arc[self.base[node as usize] as usize..self.base[node as usize + 1] as usize]
    }
}

fn running_sum(mut v: Vec<u32>) -> Vec<u32> {
    for i in 1..v.len() {
        v[i] += v[i - 1];
    }
    v
}

/// Next hops of every switch towards the class. It takes six bytes per switch if next hops are runs of neighbours, as in every regular fabric.
pub(super) struct NextHopTable {
    /// Hops from the switch to an attachment switch of the class; 0 if it is one, [`UNREACHED`] if there is no path.
    dist: Vec<u16>,
    /// Next hops as positions in the node's arcs, in the order in which the search visits them.
    group: Vec<u32>,
    /// Lists for groups that are not runs: length, then positions.
    arena: Vec<u32>,
}

/// Scratch memory of a search, which is reused.
#[derive(Default)]
struct Scratch {
    queue: Vec<u32>,
    lens: Vec<u32>,
    positions: Vec<u32>,
}

impl NextHopTable {
    /// Searches breadth-first from the attachment switches (switch numbers, in ascending node id). Hosts do not forward. A switch's next hops are in the order
    /// in which the search visits them, which is the reference's.
    pub(super) fn build(graph: &SwitchGraph, roots: &[u32]) -> NextHopTable {
        thread_local! { static SCRATCH: std::cell::RefCell<Scratch> = std::cell::RefCell::default(); }
        SCRATCH.with_borrow_mut(|s| NextHopTable::build_in(graph, roots, s))
    }

    fn build_in(graph: &SwitchGraph, roots: &[u32], scratch: &mut Scratch) -> NextHopTable {
        let n = graph.switches.len();
        let Scratch { queue, lens, positions } = scratch;
        queue.clear();
        lens.clear();
        lens.resize(n, 0);
        // A switch has at most as many next hops as arcs to switches, so its list has the same place as those.
        if positions.len() < graph.sw_to.len() {
            positions.resize(graph.sw_to.len(), 0);
        }
        let mut dist = vec![UNREACHED; n];
        for &r in roots {
            dist[r as usize] = 0;
            queue.push(r);
        }
        let mut head = 0;
        while head < queue.len() {
            let u = queue[head] as usize;
            head += 1;
            let next = dist[u] + 1;
            if next == UNREACHED {
                break;
            }
            let span = graph.sw_base[u] as usize..graph.sw_base[u + 1] as usize;
            for (&v, &back) in graph.sw_to[span.clone()].iter().zip(&graph.sw_back[span]) {
                let v = v as usize;
                if dist[v] == UNREACHED {
                    dist[v] = next;
                    queue.push(v as u32);
                }
                if dist[v] == next {
                    positions[(graph.sw_base[v] + lens[v]) as usize] = back;
                    lens[v] += 1;
                }
            }
        }
        let mut arena = Vec::new();
        let group = (0..n)
            .map(|v| {
                let first = graph.sw_base[v] as usize;
                pack(&positions[first..first + lens[v] as usize], &mut arena)
            })
            .collect();
        NextHopTable { dist, group, arena }
    }

    /// Hops from a switch (by number) to the class.
    pub(super) fn dist(&self, switch: u32) -> u16 {
        self.dist[switch as usize]
    }

    /// Number of next hops of a switch: 0 if it is attached to the class or cannot reach it.
    pub(super) fn n_next(&self, switch: u32) -> u32 {
        match self.group[switch as usize] {
            g if g & LISTED != 0 => self.arena[(g & !LISTED) as usize],
            g => g >> 16,
        }
    }

    /// The `i`-th next hop of a switch as a position in its arcs.
    pub(super) fn next(&self, switch: u32, i: u32) -> u32 {
        match self.group[switch as usize] {
            g if g & LISTED != 0 => self.arena[((g & !LISTED) + 1 + i) as usize],
            g => (g & 0xffff) + i,
        }
    }

    /// Bytes that this table holds.
    pub(super) fn bytes(&self) -> usize {
        self.dist.capacity() * 2 + self.group.capacity() * 4 + self.arena.capacity() * 4
    }
}

/// Packs a run as `len << 16 | first`, and anything else as a list in the arena.
fn pack(list: &[u32], arena: &mut Vec<u32>) -> u32 {
    let Some(&first) = list.first() else { return 0 };
    let is_run = list.iter().enumerate().all(|(i, &p)| p == first + i as u32);
    if is_run && first <= 0xffff && list.len() < 0x8000 {
        return (list.len() as u32) << 16 | first;
    }
    let list_start = arena.len();
    arena.push(list.len() as u32);
    arena.extend_from_slice(list);
    list_start as u32 | LISTED
}
