//! Estimates the times of a task graph message by message. Each message takes every link of its path once, for as long as its bytes need there, behind the
//! messages that were posted before it.
//!
//! Layer: host. Between a formula and packets: it knows the schedule, the routes and which links are shared. But links serve one message after the other
//! instead of sharing, and nothing is marked, paced, paused or lost. Computation, gates and servers behave as in the engine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytemuck::Zeroable;

use hyperfold_base::units::{PS_PER_S, tx_ps};
use hyperfold_columns::{NEVER, Task, task};
use hyperfold_llm::workload::tasks::{EdgeMoment, Target, TaskGraph, Work};
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{ArcIdx, Network};
use hyperfold_network::transport::Transport;

use crate::outcomes::flow_info::nvlink_ps;
use crate::setup::route::Routed;

/// An event, in the order in which simultaneous events are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MessageStep {
    /// A task's delay is over.
    Due(u32),
    /// A message has arrived.
    Got(u32),
    /// The last acknowledgement of a message is back.
    Acked(u32),
    /// A gate's last signal was given.
    Fired(u32),
}

/// Returns when each task of a graph was posted, arrived and ended, as rows in which only these fields are set; `NEVER` if a task waits for ever.
pub(crate) fn estimate_messages(r: &Routed, graph: &TaskGraph) -> Vec<Task> {
    let mut w = MessageEstimate::new(r, graph);
    for i in 0..graph.tasks.len() as u32 {
        if w.waits[i as usize] == 0 {
            w.ready(i);
        }
    }
    while let Some(Reverse((now_ps, event))) = w.events.pop() {
        match event {
            MessageStep::Due(i) => w.due(i, now_ps),
            MessageStep::Got(i) => {
                w.rows[i as usize].got = now_ps;
                w.follow(i, EdgeMoment::Got, now_ps);
            }
            MessageStep::Acked(i) => w.ended(i, now_ps),
            MessageStep::Fired(g) => w.serve(g, now_ps),
        }
    }
    w.rows
}

struct MessageEstimate<'a> {
    r: &'a Routed<'a>,
    graph: &'a TaskGraph,
    rows: Vec<Task>,
    events: BinaryHeap<Reverse<(u64, MessageStep)>>,
    /// Missing dependencies of each task.
    waits: Vec<u32>,
    met: Vec<u64>,
    gate_waits: Vec<u32>,
    gate_met: Vec<u64>,
    /// Edges of each task, in a list sorted by task: edges of task `k` are `first_edge[k]..first_edge[k + 1]`. Releases of each gate likewise.
    edges: Vec<u32>,
    first_edge: Vec<u32>,
    releases: Vec<u32>,
    first_release: Vec<u32>,
    /// Messages of each queue pair in order.
    queues: Vec<Vec<u32>>,
    posted: Vec<usize>,
    is_due: Vec<bool>,
    /// Time from which each arc is free, ps.
    free: Vec<u64>,
    servers: Vec<u64>,
    /// Time that an edge between two NICs takes, ps.
    release_ps: u64,
}

/// Groups the positions of items by their keys, of which there are `n`. Returns the list and `first`: the items of key `k` are at `first[k]..first[k + 1]`.
fn grouped(n: usize, keys: impl Iterator<Item = u32> + Clone) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; n + 1];
    keys.clone().for_each(|k| first[k as usize + 1] += 1);
    for k in 0..n {
        first[k + 1] += first[k];
    }
    let mut next = first.clone();
    let mut order = vec![0u32; first[n] as usize];
    for (i, k) in keys.enumerate() {
        order[next[k as usize] as usize] = i as u32;
        next[k as usize] += 1;
    }
    (order, first)
}

/// Time in ps from the beginning of a transmission over arc number `m` of `path` until its packet of `wire` bytes can be handled at the far end, without the
/// delay.
fn on_wire_ps(net: &Network, tr: &Transport, path: &[ArcIdx], m: usize, wire: u32) -> u64 {
    let rate = net.arc_rate(path[m]);
    let cuts_through = tr.cut_through_bytes > 0 && path.get(m + 1).is_some_and(|&next| net.arc_rate(next) <= rate);
    tx_ps(if cuts_through { wire.min(tr.cut_through_bytes) } else { wire }, rate, tr.clock_ps)
}

impl<'a> MessageEstimate<'a> {
    fn new(r: &'a Routed<'a>, graph: &'a TaskGraph) -> MessageEstimate<'a> {
        let n = graph.tasks.len();
        let (edges, first_edge) = grouped(n, graph.edges.iter().map(|e| e.from));
        let (releases, first_release) = grouped(graph.gates.len(), graph.releases.iter().map(|r| r.0));
        let mut waits = vec![0u32; n];
        let mut gate_waits = vec![0u32; graph.gates.len()];
        for e in &graph.edges {
            match e.to {
                Target::Task(task) => waits[task as usize] += 1,
                Target::Gate(gate) => gate_waits[gate as usize] += 1,
            }
        }
        graph.releases.iter().for_each(|&(_, task)| waits[task as usize] += 1);
        let mut queues = vec![Vec::new(); graph.qps.len()];
        graph.messages().for_each(|(i, qp, _)| queues[qp as usize].push(i));
        let row = |t: &hyperfold_llm::workload::tasks::GraphTask| Task {
            flags: if matches!(t.work, Work::Message { .. }) { task::MESSAGE } else { 0 },
            delay: t.delay_ps,
            at: NEVER,
            done: NEVER,
            got: NEVER,
            ..Task::zeroed()
        };
        let links = r.network.links.iter().filter(|l| r.network.is_packet_link(l));
        MessageEstimate {
            r,
            graph,
            rows: graph.tasks.iter().map(row).collect(),
            events: BinaryHeap::new(),
            waits,
            met: vec![0; n],
            gate_waits,
            gate_met: vec![0; graph.gates.len()],
            edges,
            first_edge,
            releases,
            first_release,
            posted: vec![0; queues.len()],
            queues,
            is_due: vec![false; n],
            free: vec![0; 2 * r.network.links.len()],
            servers: vec![0; graph.servers as usize],
            release_ps: links.map(|l| l.delay_ps).min().unwrap_or(1),
        }
    }

    fn schedule(&mut self, at_ps: u64, event: MessageStep) {
        self.events.push(Reverse((at_ps, event)));
    }

    /// Schedules a task that waits for nothing any more.
    fn ready(&mut self, i: u32) {
        let due_ps = self.met[i as usize] + self.graph.tasks[i as usize].delay_ps;
        self.schedule(due_ps, MessageStep::Due(i));
    }

    fn due(&mut self, i: u32, now_ps: u64) {
        let Work::Message { qp, .. } = self.graph.tasks[i as usize].work else {
            self.rows[i as usize].at = now_ps;
            return self.ended(i, now_ps);
        };
        self.is_due[i as usize] = true;
        // A queue pair sends in order, whichever message is due first.
        while let Some(&next) =
            self.queues[qp as usize].get(self.posted[qp as usize]).filter(|&&m| self.is_due[m as usize])
        {
            self.posted[qp as usize] += 1;
            self.post(next, now_ps);
        }
    }

    fn post(&mut self, i: u32, now_ps: u64) {
        let Work::Message { qp, bytes } = self.graph.tasks[i as usize].work else { return };
        self.rows[i as usize].at = now_ps;
        let (r, paths) = (self.r, self.r.packet_of[qp as usize].map(|p| &self.r.paths[p]));
        let (got, acked) = match paths {
            None => (now_ps + nvlink_ps(bytes, &r.network), now_ps + nvlink_ps(bytes, &r.network)),
            Some(paths) => self.travel(paths, bytes, now_ps),
        };
        self.schedule(got, MessageStep::Got(i));
        self.schedule(acked, MessageStep::Acked(i));
    }

    /// Returns when a message that is posted now has arrived whole, and when it is acknowledged, ps. Sprayed messages are spread evenly over their paths.
    fn travel(&mut self, paths: &FlowPaths, bytes: u64, now_ps: u64) -> (u64, u64) {
        let (net, tr) = (&self.r.network, &self.r.transport);
        let share = bytes.div_ceil(paths.data.len() as u64);
        let packet = share.min(u64::from(tr.payload)) as u32 + tr.data_overhead;
        let wire = share + share.div_ceil(u64::from(tr.payload.max(1))) * u64::from(tr.data_overhead);
        let mut last = now_ps;
        for path in &paths.data {
            let (mut head, mut tail) = (now_ps, now_ps);
            for (m, &arc) in path.iter().enumerate() {
                let (rate, delay_ps) = (net.arc_rate(arc), net.arc_link(arc).delay_ps);
                let one = tx_ps(packet, rate, tr.clock_ps);
                let all = (u128::from(wire) * 8 * u128::from(PS_PER_S) / u128::from(rate)) as u64;
                let start = head.max(self.free[arc as usize]);
                let end = (start + all).max(tail + one);
                self.free[arc as usize] = end;
                // What a switch that cuts through waits for.
                let on_wire = on_wire_ps(net, tr, path, m, packet);
                (head, tail) = (start + on_wire + delay_ps, end - (one - on_wire) + delay_ps);
            }
            last = last.max(tail);
        }
        let way_back = paths.ack[0].iter().enumerate();
        let back: u64 = way_back
            .map(|(m, &arc)| on_wire_ps(net, tr, &paths.ack[0], m, tr.ack_bytes) + net.arc_link(arc).delay_ps)
            .sum();
        (last, last + back)
    }

    fn ended(&mut self, i: u32, now_ps: u64) {
        self.rows[i as usize].done = now_ps;
        self.follow(i, EdgeMoment::Done, now_ps);
    }

    /// Returns the host on which a moment of a task happens.
    fn host(&self, i: u32, when: EdgeMoment) -> u32 {
        let t = &self.graph.tasks[i as usize];
        let rank = match (t.work, when) {
            (Work::Message { qp, .. }, EdgeMoment::Got) => self.graph.qps[qp as usize].dst,
            (Work::Message { qp, .. }, EdgeMoment::Done) => self.graph.qps[qp as usize].src,
            (Work::Delay, _) => t.rank,
        };
        self.r.network.host_of(rank).expect("tasks belong to ranks of the network")
    }

    fn follow(&mut self, i: u32, when: EdgeMoment, now_ps: u64) {
        for k in self.first_edge[i as usize]..self.first_edge[i as usize + 1] {
            let e = self.graph.edges[self.edges[k as usize] as usize];
            if e.when != when {
                continue;
            }
            match e.to {
                Target::Task(next_task) => {
                    let far = self.host(i, when) != self.host(next_task, EdgeMoment::Done);
                    self.meet(next_task, now_ps + if far { self.release_ps } else { 0 });
                }
                Target::Gate(g) => {
                    self.gate_met[g as usize] = self.gate_met[g as usize].max(now_ps);
                    self.gate_waits[g as usize] -= 1;
                    if self.gate_waits[g as usize] == 0 {
                        self.schedule(self.gate_met[g as usize], MessageStep::Fired(g));
                    }
                }
            }
        }
    }

    fn meet(&mut self, i: u32, at_ps: u64) {
        self.met[i as usize] = self.met[i as usize].max(at_ps);
        self.waits[i as usize] -= 1;
        if self.waits[i as usize] == 0 {
            self.ready(i);
        }
    }

    fn serve(&mut self, g: u32, now_ps: u64) {
        let gate = self.graph.gates[g as usize];
        let mut end = now_ps;
        if let Some(server) = gate.server {
            end = end.max(self.servers[server as usize]) + gate.serial_ps;
            self.servers[server as usize] = end;
        }
        for k in self.first_release[g as usize]..self.first_release[g as usize + 1] {
            let task = self.graph.releases[self.releases[k as usize] as usize].1;
            self.meet(task, end + gate.latency_ps);
        }
    }
}
