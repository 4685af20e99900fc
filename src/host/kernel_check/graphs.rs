//! Task graphs of the stored experiments: rings, all-to-alls, meetings of all ranks, transfers through gates.
//!
//! Layer: host. No graph has a cycle.

use hyperfold_columns::NEVER;
use hyperfold_llm::workload::program::Dim;
use hyperfold_llm::workload::tasks::{QueuePair, TaskGraph, Work};

use super::dumbbell::{HOSTS, SmallCase};
use crate::tables::build_tables::GraphCase;

const US: u64 = 1_000_000;
/// Time from an end on one NIC to what waits for it on another NIC of the host, ps.
const RELEASE_PS: u64 = 300_000;

/// A task graph beside the flows of a case.
#[derive(Clone, Debug)]
pub(super) struct SmallGraph {
    graph: TaskGraph,
    first_qp: usize,
    fresh_qp: bool,
}

impl SmallGraph {
    /// Adds the queue pairs of `graph` to `case`. `fresh_qp`: every message starts with fresh congestion control.
    pub(super) fn added_to(case: &mut SmallCase, graph: TaskGraph, fresh_qp: bool) -> SmallGraph {
        let first_qp = case.flows.len();
        graph.qps.iter().for_each(|pair| case.add_flow(pair.src, pair.dst, 0, NEVER));
        SmallGraph { graph, first_qp, fresh_qp }
    }

    /// The graph as tables are built from it.
    pub(super) fn for_tables(&self) -> GraphCase<'_> {
        GraphCase { graph: &self.graph, first_qp: self.first_qp, release_ps: RELEASE_PS, fresh_qp: self.fresh_qp }
    }
}

fn pair(g: &mut TaskGraph, src: u32, dst: u32) -> u32 {
    g.qps.push(QueuePair { src, dst, lane: 0, dim: Dim::Other });
    g.qps.len() as u32 - 1
}

fn message(g: &mut TaskGraph, qp: u32, delay_ps: u64, bytes: u64) -> u32 {
    g.task(g.qps[qp as usize].src, delay_ps, Work::Message { qp, bytes })
}

/// Every rank passes on to the next what came from the one before, four times.
pub(super) fn ring(bytes: u64) -> TaskGraph {
    let mut g = TaskGraph::default();
    let qps: Vec<u32> = (0..HOSTS).map(|r| pair(&mut g, r, (r + 1) % HOSTS)).collect();
    let mut before: Vec<u32> = Vec::new();
    for round in 0..4 {
        let mut now = Vec::new();
        for r in 0..HOSTS {
            let post = message(&mut g, qps[r as usize], u64::from(r % 3) * US, bytes + round);
            if !before.is_empty() {
                g.after_arrival(before[((r + HOSTS - 1) % HOSTS) as usize], post);
                if r % 2 == 0 {
                    g.after(before[r as usize], post);
                }
            }
            now.push(post);
        }
        before = now;
    }
    g
}

/// Two rounds in which every rank sends to every other. Nobody sends before all of a round has reached it.
pub(super) fn all_to_all(bytes: u64) -> TaskGraph {
    let mut g = TaskGraph::default();
    let mut qps = Vec::new();
    for r in 0..HOSTS {
        qps.push((1..HOSTS).map(|k| (pair(&mut g, r, (r + k) % HOSTS), (r + k) % HOSTS)).collect::<Vec<_>>());
    }
    let mut begin: Vec<u32> = (0..HOSTS).map(|r| g.task(r, US, Work::Delay)).collect();
    for _ in 0..2 {
        let end: Vec<u32> = (0..HOSTS).map(|r| g.task(r, US, Work::Delay)).collect();
        for r in 0..HOSTS as usize {
            for &(qp, to) in &qps[r] {
                let post = message(&mut g, qp, 0, bytes);
                g.after(begin[r], post);
                g.after_arrival(post, end[to as usize]);
            }
        }
        begin = end;
    }
    g
}

/// Work of several lengths and a meeting of all, then a message to a neighbour that must have arrived before the next work; three times.
pub(super) fn meetings(bytes: u64) -> TaskGraph {
    let mut g = TaskGraph::default();
    let neighbour = |r: u32| (r + 1 + r % (HOSTS - 1)) % HOSTS;
    let qps: Vec<u32> = (0..HOSTS).map(|r| pair(&mut g, r, neighbour(r))).collect();
    let length = |r: u32| u64::from(r * 37 % 5) * US + u64::from(r) * 1000;
    let mut work: Vec<u32> = (0..HOSTS).map(|r| g.task(r, length(r), Work::Delay)).collect();
    for round in 0..3 {
        let gate = g.gate(None, 0, 400_000);
        let next: Vec<u32> = (0..HOSTS).map(|r| g.task(r, length(r + round), Work::Delay)).collect();
        for r in 0..HOSTS {
            g.into_gate(work[r as usize], gate);
            let post = message(&mut g, qps[r as usize], length(r + 1), bytes + u64::from(r));
            g.release(gate, post);
            g.after_arrival(post, next[neighbour(r) as usize]);
            g.release(gate, next[r as usize]);
        }
        work = next;
    }
    g
}

/// Transfers that use no packets, one after another from each rank, between messages.
pub(super) fn transfers(bytes: u64) -> TaskGraph {
    let mut g = TaskGraph { servers: HOSTS, ..TaskGraph::default() };
    let qps: Vec<u32> = (0..HOSTS).map(|r| pair(&mut g, r, (r + HOSTS - 1) % HOSTS)).collect();
    let mut last: Vec<u32> = (0..HOSTS).map(|r| g.task(r, u64::from(r % 4) * US, Work::Delay)).collect();
    for round in 1..4 {
        for r in 0..HOSTS {
            let to = (r + round) % HOSTS;
            let arrived = g.join(to);
            for serial_ps in [0, 500_000] {
                let gate = g.gate(Some(r), serial_ps, if r % 2 == 0 { 400_000 } else { US });
                g.into_gate(last[r as usize], gate);
                let joined = g.join(to);
                g.release(gate, joined);
                g.after(joined, arrived);
            }
            let post = message(&mut g, qps[to as usize], 0, bytes + u64::from(r));
            g.after(arrived, post);
            last[to as usize] = post;
        }
    }
    g
}
