//! Programs and task graphs of several jobs as those of one.
//!
//! Layer: batch. Renumbers; decides nothing. Ranks of what is joined are the network's GPUs.

use std::ops::Range;
use std::sync::Arc;

use super::job::Job;
use crate::workload::program::{Group, OpKind, Program, Rank, Workload};
use crate::workload::tasks::{
    Edge, GraphTask, JoinedCollective, JoinedQueuePairs, OpTasks, QueuePair, Target, TaskGraph, Work,
};

/// A job, the GPUs of its ranks, and when it starts.
pub(super) struct JobPart {
    pub job: Arc<Job>,
    pub gpus: Vec<u32>,
    pub start_ps: u64,
}

/// Jobs as one.
pub(super) struct Joined {
    pub job: Job,
    /// Tasks of each part.
    pub tasks: Vec<Range<u32>>,
}

/// Joins the jobs of a network of `gpus` GPUs. Parts lie one behind the other, in their order; what makes them start late follows.
pub(super) fn join(parts: &[JobPart], gpus: u32) -> Joined {
    let mut graph = TaskGraph { ops: vec![Vec::new(); gpus as usize], ..TaskGraph::default() };
    let mut workload = Workload { programs: vec![Program::default()], ..Workload::default() };
    workload.ranks = vec![Rank { program: 0, groups: Vec::new() }; gpus as usize];
    let mut tasks = Vec::with_capacity(parts.len());
    for part in parts {
        tasks.push(add_graph(&mut graph, part));
        add_workload(&mut workload, part);
    }
    for (part, tasks) in parts.iter().zip(&tasks).filter(|(part, _)| part.start_ps > 0) {
        start_late(&mut graph, tasks.clone(), part.start_ps);
    }
    let job = Job {
        workload,
        graph,
        warmup: 0,
        collective: None,
        longest: None,
        peak_bytes: None,
        serving: None,
        worked_out: None,
        heeds_payload: false,
        shared: None,
    };
    Joined { job, tasks }
}

fn add_graph(to: &mut TaskGraph, part: &JobPart) -> Range<u32> {
    let from = &part.job.graph;
    let first_qp = to.qps.len() as u32;
    let at = |rank: u32| part.gpus[rank as usize];
    to.qps.extend(from.qps.iter().map(|q| QueuePair { src: at(q.src), dst: at(q.dst), lane: q.lane }));
    let tasks = add_tasks(to, from, &part.gpus, first_qp);
    let task = tasks.start;
    let moved = |own: u32| if own == u32::MAX { own } else { task + own };
    for (rank, ops) in (0u32..).zip(&from.ops) {
        let place = |o: &OpTasks| OpTasks { begin: moved(o.begin), go: moved(o.go), end: moved(o.end) };
        to.ops[at(rank) as usize] = ops.iter().map(place).collect();
    }
    if !from.stands_for.is_empty() {
        if to.stands_for.is_empty() {
            to.stands_for = (0..to.ops.len() as u32).collect();
        }
        for (rank, &by) in (0u32..).zip(&from.stands_for) {
            to.stands_for[at(rank) as usize] = at(by);
        }
    }
    tasks
}

/// Adds what a graph's ranks do, with what connects it, and returns its tasks. `ranks`: what its ranks are called there; `first_qp`: its queue pairs are there, from
/// this one on. Which tasks are whose operations is left out.
pub fn add_tasks(to: &mut TaskGraph, from: &TaskGraph, ranks: &[u32], first_qp: u32) -> Range<u32> {
    if !from.weights.is_empty() || !to.weights.is_empty() {
        to.weights.resize(to.qps.len(), 1);
        let own = first_qp as usize..first_qp as usize + from.weights.len();
        to.weights[own].copy_from_slice(&from.weights);
    }
    let (qp, task, gate, server) = (first_qp, to.tasks.len() as u32, to.gates.len() as u32, to.servers);
    to.tasks.extend(from.tasks.iter().map(|t| {
        let work = match t.work {
            Work::Message { qp: own, bytes } => Work::Message { qp: qp + own, bytes },
            Work::Delay => Work::Delay,
        };
        GraphTask { rank: ranks[t.rank as usize], work, ..*t }
    }));
    to.edges.extend(from.edges.iter().map(|e| {
        let target = match e.to {
            Target::Task(own) => Target::Task(task + own),
            Target::Gate(own) => Target::Gate(gate + own),
        };
        Edge { from: task + e.from, to: target, ..*e }
    }));
    to.gates.extend(from.gates.iter().map(|g| {
        let mut g = *g;
        g.server = g.server.map(|own| server + own);
        g
    }));
    to.joined.extend(from.joined.iter().map(|j| JoinedQueuePairs { first: qp + j.first, ..*j }));
    to.one_flow.extend(from.one_flow.iter().map(|r| {
        let moved = |own: &u32| if *own == u32::MAX { *own } else { qp + own };
        let edges = r.edges.iter().map(|ring| ring.iter().map(moved).collect()).collect();
        JoinedCollective { task: task + r.task, edges: Arc::new(edges), ..r.clone() }
    }));
    to.releases.extend(from.releases.iter().map(|&(own, of)| (gate + own, task + of)));
    to.servers += from.servers;
    task..to.tasks.len() as u32
}

fn add_workload(to: &mut Workload, part: &JobPart) {
    let from = &part.job.workload;
    let (first_program, first_group, first_share) =
        (to.programs.len() as u32, to.groups.len() as u32, to.shares.len() as u32);
    for program in &from.programs {
        let mut program = program.clone();
        for op in &mut program.ops {
            op.name = to.name(&from.names[op.name]);
            if let OpKind::Collective { shares: Some(shares), .. } = &mut op.kind {
                *shares += first_share;
            }
        }
        to.programs.push(program);
    }
    let at = |rank: &u32| part.gpus[*rank as usize];
    to.groups.extend(from.groups.iter().map(|g| Group { members: g.members.iter().map(at).collect(), dim: g.dim }));
    to.shares.extend(from.shares.iter().cloned());
    for (rank, gpu) in from.ranks.iter().zip(&part.gpus) {
        to.ranks[*gpu as usize] = Rank {
            program: first_program + rank.program,
            groups: rank.groups.iter().map(|group| first_group + group).collect(),
        };
    }
}

/// Lets what waits for nothing wait for a task of its rank that ends at `start_ps`.
fn start_late(graph: &mut TaskGraph, tasks: Range<u32>, start_ps: u64) {
    let place = |task: u32| tasks.contains(&task).then(|| (task - tasks.start) as usize);
    let mut waits = vec![false; tasks.len()];
    let of_edges = graph.edges.iter().filter_map(|e| match e.to {
        Target::Task(to) => place(to),
        Target::Gate(_) => None,
    });
    let of_gates = graph.releases.iter().filter_map(|&(_, to)| place(to));
    of_edges.chain(of_gates).for_each(|at| waits[at] = true);
    let mut starts: Vec<Option<u32>> = vec![None; graph.ops.len()];
    for (task, _) in tasks.clone().zip(&waits).filter(|(_, waits)| !**waits) {
        let rank = graph.tasks[task as usize].rank;
        let start = match starts[rank as usize] {
            Some(start) => start,
            None => graph.task(rank, start_ps, Work::Delay),
        };
        starts[rank as usize] = Some(start);
        graph.after(start, task);
    }
}
