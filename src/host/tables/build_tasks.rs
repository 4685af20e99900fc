//! The rows of a task graph: owners, edges, gates, and the order of messages on queue pairs.
//!
//! Layer: host. An edge between NICs becomes a gate of its own, as only events on one NIC happen at the same instant.

use bytemuck::Zeroable;

use hyperfold_base::budget;
use hyperfold_columns::{EDGE_SIGNAL, FlowIdx, Gate, NEVER, NONE, NicIdx, OwnedTables, Signal, Task, TaskIdx, task};
use hyperfold_llm::workload::tasks::{EdgeMoment, Target, TaskGraph, Work};

use crate::setup::error::BuildError;
use crate::tables::packet_case::GraphCase;

/// Returns the shortest latency of any gate, ps. No step may be longer.
pub(crate) fn min_latency(case: &GraphCase) -> u64 {
    case.graph.gates.iter().map(|g| g.latency_ps).min().unwrap_or(u64::MAX).min(case.release_ps).max(1)
}

/// An edge between two tasks of the same owner.
struct Wire {
    from: TaskIdx,
    got: bool,
    to: TaskIdx,
}

/// Fills the rows of tasks, edges, signals, gates and servers. `qp_rows`: row of each queue pair; `owners`: NIC of each rank.
pub(crate) fn tasks(
    t: &mut OwnedTables,
    case: &GraphCase,
    qp_rows: &[FlowIdx],
    owners: &[NicIdx],
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
    let n_edges = graph.edges.len() as u64;
    budget::announce(
        "edges between tasks",
        n_edges.saturating_mul((size_of::<Wire>() + size_of::<(u32, bool, u32)>()) as u64),
    );
    let mut local: Vec<Wire> = Vec::with_capacity(graph.edges.len());
    // (task, got, gate) and (gate, task).
    let mut signals: Vec<(TaskIdx, bool, u32)> = Vec::with_capacity(graph.edges.len());
    let mut releases: Vec<(u32, TaskIdx)> = graph.releases.iter().map(|&(gate, to)| (gate, TaskIdx(to))).collect();
    for e in &graph.edges {
        let (from, got) = (TaskIdx(e.from), e.when == EdgeMoment::Got);
        let owner = if got { t.flow_rx[t.tasks[from].flow].nic } else { t.tasks[from].owner };
        match e.to {
            Target::Task(to) if t.tasks[TaskIdx(to)].owner == owner => local.push(Wire { from, got, to: TaskIdx(to) }),
            Target::Task(to) => {
                let gate = t.gates.len() as u32;
                t.gates.push(Gate {
                    exp: exp_id,
                    next: NONE,
                    server: NONE,
                    latency: case.release_ps.max(1),
                    ..Gate::zeroed()
                });
                signals.push((from, got, gate));
                releases.push((gate, TaskIdx(to)));
            }
            Target::Gate(gate) => signals.push((from, got, gate)),
        }
    }
    for w in &local {
        t.tasks[w.to].waits += 1;
    }
    for &(_, task) in &releases {
        t.tasks[task].waits += 1;
    }
    // A task that a gate releases may wait for nothing else: one that does gets a helper task before it.
    for release in &mut releases {
        let task = release.1;
        if t.tasks[task].waits > 1 {
            let helper = TaskIdx::new(t.tasks.len());
            let owner = t.tasks[task].owner;
            t.tasks.push(Task { exp: exp_id, owner, waits: 1, ..empty() });
            local.push(Wire { from: helper, got: false, to: task });
            release.1 = helper;
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
    Task {
        next: TaskIdx::NONE,
        flow: FlowIdx::NONE,
        follow: TaskIdx::NONE,
        at: NEVER,
        done: NEVER,
        got: NEVER,
        ..Task::zeroed()
    }
}

fn rows(t: &mut OwnedTables, graph: &TaskGraph, qp_rows: &[FlowIdx], owners: &[NicIdx], exp_id: u32) {
    // A task that a gate releases may need a helper task before it.
    budget::announce_rows::<Task>("tasks", (graph.tasks.len() + graph.releases.len()) as u64);
    t.tasks.reserve(graph.tasks.len() + graph.releases.len());
    for spec in &graph.tasks {
        let mut row = Task { exp: exp_id, owner: owners[spec.rank as usize], delay: spec.delay_ps, ..empty() };
        if let Work::Message { qp, bytes } = spec.work {
            row.flags = task::MESSAGE;
            row.flow = qp_rows[qp as usize];
            row.owner = t.flow_tx[row.flow].nic;
            row.bytes = bytes;
            row.root = t.flow_tx[row.flow].flow_id + 1;
        }
        t.tasks.push(row);
    }
}

/// Chains the messages of each queue pair in the order of tasks.
fn messages(t: &mut OwnedTables, graph: &TaskGraph, qp_rows: &[FlowIdx]) {
    let mut last = vec![TaskIdx::NONE; graph.qps.len()];
    for (i, spec) in graph.tasks.iter().enumerate() {
        let Work::Message { qp, bytes } = spec.work else { continue };
        let i = TaskIdx::new(i);
        let previous = std::mem::replace(&mut last[qp as usize], i);
        if previous.is_none() {
            let row = qp_rows[qp as usize];
            let tx = &mut t.flow_tx[row];
            (tx.msg_post, tx.msg_send, tx.msg_ack) = (i, i, i);
            (tx.send_end, tx.ack_end) = (bytes, bytes);
            (t.flow_rx[row].msg, t.flow_rx[row].msg_end) = (i, bytes);
        } else {
            t.tasks[previous].follow = i;
        }
    }
}

/// Lays edges out by their source: for each task first the edges from its end, then those from its arrival; then the edges from gates.
fn edges(t: &mut OwnedTables, local: &[Wire], signals: &[(TaskIdx, bool, u32)], releases: &[(u32, TaskIdx)]) {
    for w in local {
        let row = &mut t.tasks[w.from];
        *if w.got { &mut row.got_n } else { &mut row.done_n } += 1;
    }
    for &(from, got, gate) in signals {
        let row = &mut t.tasks[from];
        *if got { &mut row.got_n } else { &mut row.done_n } += 1;
        t.gates[gate as usize].waits += 1;
    }
    for &(gate, _) in releases {
        t.gates[gate as usize].n += 1;
    }
    let mut next_edge = 0u32;
    for row in &mut t.tasks {
        row.done_first = next_edge;
        row.got_first = next_edge + row.done_n;
        next_edge += row.done_n + row.got_n;
    }
    for gate in &mut t.gates {
        gate.first = next_edge;
        next_edge += gate.n;
    }
    t.edges = vec![NONE; next_edge as usize];
    let mut filled = vec![(0u32, 0u32); t.tasks.len()];
    let mut place = |t: &mut OwnedTables, from: TaskIdx, got: bool, edge: u32| {
        let row = &t.tasks[from];
        let (first, n) = if got {
            (row.got_first, &mut filled[from.usize()].1)
        } else {
            (row.done_first, &mut filled[from.usize()].0)
        };
        t.edges[(first + *n) as usize] = edge;
        *n += 1;
    };
    for w in local {
        place(t, w.from, w.got, w.to.0);
    }
    t.signals.reserve_exact(signals.len());
    for &(from, got, gate) in signals {
        let s = t.signals.len() as u32;
        t.signals.push(Signal { gate, next: NONE, at: 0 });
        place(t, from, got, s | EDGE_SIGNAL);
    }
    let mut filled_of_gate = vec![0u32; t.gates.len()];
    for &(gate, task) in releases {
        let n = &mut filled_of_gate[gate as usize];
        t.edges[(t.gates[gate as usize].first + *n) as usize] = task.0;
        *n += 1;
    }
}

/// Puts tasks that wait for nothing in flight at time 0.
fn first_due(t: &mut OwnedTables) {
    let mut free: Vec<TaskIdx> = TaskIdx::all(t.tasks.len() as u32).filter(|&i| t.tasks[i].waits == 0).collect();
    free.sort_by_key(|&i| {
        let row = &t.tasks[i];
        (row.owner, row.delay, row.root, i)
    });
    let mut last: Option<TaskIdx> = None;
    for &i in &free {
        let row = &mut t.tasks[i];
        row.at = row.delay;
        let (owner, at_ps) = (row.owner, row.at);
        match last {
            Some(previous) if t.tasks[previous].owner == owner => t.tasks[previous].next = i,
            _ => {
                t.nics[owner].task_head = i;
                t.nics[owner].next_task = at_ps;
            }
        }
        last = Some(i);
    }
}
