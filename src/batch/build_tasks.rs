//! A task graph as rows: owners, edges, gates, the order of messages on queue pairs.
//!
//! Layer: batch. Edges between NICs become gates of their own, as only what happens on one NIC happens at once.

use bytemuck::Zeroable;

use crate::columns::{EDGE_SIGNAL, Gate, NEVER, NONE, OwnedTables, Signal, Task, task};
use crate::workload::tasks::{Target, TaskGraph, When, Work};

use super::error::BuildError;
use super::packet_case::GraphCase;

/// The shortest time in which a gate passes anything on: no step may be longer.
pub fn least_latency(case: &GraphCase) -> u64 {
    case.graph.gates.iter().map(|g| g.latency_ps).min().unwrap_or(u64::MAX).min(case.release_ps).max(1)
}

/// An edge with its ends' owners known.
struct Wire {
    /// Row of the task or, shifted by the number of tasks, gate it leaves.
    from: u32,
    got: bool,
    to: u32,
}

/// Fills the rows of tasks, edges, signals, gates and servers. `qp_rows`: row of each queue pair; `owners`: NIC of each rank.
pub fn tasks(
    t: &mut OwnedTables,
    case: &GraphCase,
    qp_rows: &[u32],
    owners: &[u32],
    exp_id: u32,
) -> Result<(), BuildError> {
    let graph = case.graph;
    rows(t, graph, qp_rows, owners, exp_id);
    messages(t, graph, qp_rows);
    t.gates.reserve(graph.gates.len());
    for g in &graph.gates {
        t.gates.push(Gate {
            exp: exp_id,
            next: NONE,
            server: g.server.unwrap_or(NONE),
            serial: g.serial_ps,
            latency: g.latency_ps,
            ..Gate::zeroed()
        });
    }
    t.servers = vec![0; graph.servers as usize];
    let mut local: Vec<Wire> = Vec::with_capacity(graph.edges.len());
    // (task, got, gate) and (gate, task).
    let mut signals: Vec<(u32, bool, u32)> = Vec::with_capacity(graph.edges.len());
    let mut releases: Vec<(u32, u32)> = graph.releases.clone();
    for e in &graph.edges {
        let got = e.when == When::Got;
        let at =
            if got { t.flow_rx[t.tasks[e.from as usize].flow as usize].nic } else { t.tasks[e.from as usize].owner };
        match e.to {
            Target::Task(to) if t.tasks[to as usize].owner == at => local.push(Wire { from: e.from, got, to }),
            Target::Task(to) => {
                let gate = t.gates.len() as u32;
                t.gates.push(Gate {
                    exp: exp_id,
                    next: NONE,
                    server: NONE,
                    latency: case.release_ps.max(1),
                    ..Gate::zeroed()
                });
                signals.push((e.from, got, gate));
                releases.push((gate, to));
            }
            Target::Gate(gate) => signals.push((e.from, got, gate)),
        }
    }
    for w in &local {
        t.tasks[w.to as usize].waits += 1;
    }
    for &(_, to) in &releases {
        t.tasks[to as usize].waits += 1;
    }
    // What a gate releases may wait for nothing else: a task that does gets one before it that does not.
    for release in &mut releases {
        let to = release.1;
        if t.tasks[to as usize].waits > 1 {
            let before = t.tasks.len() as u32;
            let owner = t.tasks[to as usize].owner;
            t.tasks.push(Task { exp: exp_id, owner, waits: 1, ..empty() });
            local.push(Wire { from: before, got: false, to });
            release.1 = before;
        }
    }
    if t.tasks.len() >= EDGE_SIGNAL as usize || local.len() + signals.len() + releases.len() >= EDGE_SIGNAL as usize {
        return Err(BuildError::TooLarge { what: "tasks or edges", n: t.tasks.len() as u64 });
    }
    edges(t, &local, &signals, &releases);
    first_due(t);
    Ok(())
}

fn empty() -> Task {
    Task { next: NONE, flow: NONE, follow: NONE, at: NEVER, done: NEVER, got: NEVER, ..Task::zeroed() }
}

fn rows(t: &mut OwnedTables, graph: &TaskGraph, qp_rows: &[u32], owners: &[u32], exp_id: u32) {
    // What gates release may get another one before it.
    t.tasks.reserve(graph.tasks.len() + graph.releases.len());
    for spec in &graph.tasks {
        let mut row = Task { exp: exp_id, owner: owners[spec.rank as usize], delay: spec.delay_ps, ..empty() };
        if let Work::Message { qp, bytes } = spec.work {
            row.flags = task::MESSAGE;
            row.flow = qp_rows[qp as usize];
            row.owner = t.flow_tx[row.flow as usize].nic;
            row.bytes = bytes;
            row.root = t.flow_tx[row.flow as usize].flow_id + 1;
        }
        t.tasks.push(row);
    }
}

/// Chains the messages of every queue pair, in the order of tasks.
fn messages(t: &mut OwnedTables, graph: &TaskGraph, qp_rows: &[u32]) {
    let mut last = vec![NONE; graph.qps.len()];
    for (i, spec) in graph.tasks.iter().enumerate() {
        let Work::Message { qp, bytes } = spec.work else { continue };
        let i = i as u32;
        let before = std::mem::replace(&mut last[qp as usize], i);
        if before == NONE {
            let row = qp_rows[qp as usize] as usize;
            let tx = &mut t.flow_tx[row];
            (tx.msg_post, tx.msg_send, tx.msg_ack) = (i, i, i);
            (tx.send_end, tx.ack_end) = (bytes, bytes);
            (t.flow_rx[row].msg, t.flow_rx[row].msg_end) = (i, bytes);
        } else {
            t.tasks[before as usize].follow = i;
        }
    }
}

/// Lays edges out by what they leave: of each task first those of its end, then those of its arrival; then those of gates.
fn edges(t: &mut OwnedTables, local: &[Wire], signals: &[(u32, bool, u32)], releases: &[(u32, u32)]) {
    for w in local {
        let row = &mut t.tasks[w.from as usize];
        *if w.got { &mut row.got_n } else { &mut row.done_n } += 1;
    }
    for &(from, got, gate) in signals {
        let row = &mut t.tasks[from as usize];
        *if got { &mut row.got_n } else { &mut row.done_n } += 1;
        t.gates[gate as usize].waits += 1;
    }
    for &(gate, _) in releases {
        t.gates[gate as usize].n += 1;
    }
    let mut at = 0u32;
    for row in &mut t.tasks {
        row.done_first = at;
        row.got_first = at + row.done_n;
        at += row.done_n + row.got_n;
    }
    for gate in &mut t.gates {
        gate.first = at;
        at += gate.n;
    }
    t.edges = vec![NONE; at as usize];
    let mut filled = vec![(0u32, 0u32); t.tasks.len()];
    let mut place = |t: &mut OwnedTables, from: u32, got: bool, edge: u32| {
        let row = &t.tasks[from as usize];
        let (first, n) = if got {
            (row.got_first, &mut filled[from as usize].1)
        } else {
            (row.done_first, &mut filled[from as usize].0)
        };
        t.edges[(first + *n) as usize] = edge;
        *n += 1;
    };
    for w in local {
        place(t, w.from, w.got, w.to);
    }
    t.signals.reserve_exact(signals.len());
    for &(from, got, gate) in signals {
        let s = t.signals.len() as u32;
        t.signals.push(Signal { gate, next: NONE, at: 0 });
        place(t, from, got, s | EDGE_SIGNAL);
    }
    let mut of_gate = vec![0u32; t.gates.len()];
    for &(gate, to) in releases {
        let n = &mut of_gate[gate as usize];
        t.edges[(t.gates[gate as usize].first + *n) as usize] = to;
        *n += 1;
    }
}

/// What waits for nothing is under way from time 0.
fn first_due(t: &mut OwnedTables) {
    let mut free: Vec<u32> = (0..t.tasks.len() as u32).filter(|&i| t.tasks[i as usize].waits == 0).collect();
    free.sort_by_key(|&i| {
        let row = &t.tasks[i as usize];
        (row.owner, row.delay, row.root, i)
    });
    let mut last: Option<u32> = None;
    for &i in &free {
        let row = &mut t.tasks[i as usize];
        row.at = row.delay;
        let (owner, at) = (row.owner, row.at);
        match last {
            Some(before) if t.tasks[before as usize].owner == owner => t.tasks[before as usize].next = i,
            _ => {
                t.nics[owner as usize].task_head = i;
                t.nics[owner as usize].next_task = at;
            }
        }
        last = Some(i);
    }
}
