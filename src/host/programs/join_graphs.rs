//! Joins the programs and task graphs of several jobs into one.
//!
//! Layer: host. Renumbers; decides nothing. Ranks of the result are the network's GPUs.

use std::ops::Range;
use std::sync::Arc;

use crate::programs::job::Job;
use hyperfold_llm::workload::program::{Group, OpKind, Program, Rank, Workload};
use hyperfold_llm::workload::tasks::{
    Edge, GraphTask, JoinedCollective, JoinedQueuePairs, OpTasks, QueuePair, Target, TaskGraph, Work,
};
use hyperfold_network::topology::Reducer;

/// A job, the GPUs of its ranks and the joined ranks of its reducers behind them, and its start time.
pub(crate) struct JobPart {
    pub job: Arc<Job>,
    pub gpus: Vec<u32>,
    pub start_ps: u64,
}

/// Several jobs joined into one.
pub(crate) struct Joined {
    pub job: Job,
    /// Range of tasks of each part.
    pub tasks: Vec<Range<u32>>,
}

/// Joins the jobs of a network of `gpus` GPUs; `reducers` are those of all of them. The tasks of parts lie one behind the other, in the order of parts; the tasks that delay their starts follow.
pub(crate) fn join(parts: &[JobPart], gpus: u32, reducers: Vec<Reducer>) -> Joined {
    let mut graph = TaskGraph { ops: vec![Vec::new(); gpus as usize], reducers, ..TaskGraph::default() };
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
        depends_on_payload: false,
        shared: None,
    };
    Joined { job, tasks }
}

fn add_graph(joined: &mut TaskGraph, part: &JobPart) -> Range<u32> {
    let own_graph = &part.job.graph;
    let first_qp = joined.qps.len() as u32;
    let gpu_of = |rank: u32| part.gpus[rank as usize];
    joined.qps.extend(own_graph.qps.iter().map(|q| QueuePair { src: gpu_of(q.src), dst: gpu_of(q.dst), ..*q }));
    let tasks = add_tasks(joined, own_graph, &part.gpus, first_qp);
    let task = tasks.start;
    let renumbered = |own: u32| if own == u32::MAX { own } else { task + own };
    for (rank, ops) in (0u32..).zip(&own_graph.ops) {
        let place = |o: &OpTasks| OpTasks { begin: renumbered(o.begin), go: renumbered(o.go), end: renumbered(o.end) };
        joined.ops[gpu_of(rank) as usize] = ops.iter().map(place).collect();
    }
    if !own_graph.stands_for.is_empty() {
        if joined.stands_for.is_empty() {
            joined.stands_for = (0..joined.ops.len() as u32).collect();
        }
        for (rank, &representative) in (0u32..).zip(&own_graph.stands_for) {
            joined.stands_for[gpu_of(rank) as usize] = gpu_of(representative);
        }
    }
    tasks
}

/// Adds the tasks of `part` to `graph`, with edges and gates, and returns the range of the added tasks. `ranks` holds for each rank of `part` its rank in
/// `graph`. `first_qp` is the index in `graph` of the first queue pair of `part`; `graph` has these queue pairs already. It is not recorded which tasks
/// belong to whose operations.
pub fn add_tasks(graph: &mut TaskGraph, part: &TaskGraph, ranks: &[u32], first_qp: u32) -> Range<u32> {
    if !part.weights.is_empty() || !graph.weights.is_empty() {
        graph.weights.resize(graph.qps.len(), 1);
        let own = first_qp as usize..first_qp as usize + part.weights.len();
        graph.weights[own].copy_from_slice(&part.weights);
    }
    let (qp, task, gate, server) = (first_qp, graph.tasks.len() as u32, graph.gates.len() as u32, graph.servers);
    graph.tasks.extend(part.tasks.iter().map(|t| {
        let work = match t.work {
            Work::Message { qp: own, bytes } => Work::Message { qp: qp + own, bytes },
            Work::Delay => Work::Delay,
        };
        GraphTask { rank: ranks[t.rank as usize], work, ..*t }
    }));
    graph.edges.extend(part.edges.iter().map(|e| {
        let target = match e.to {
            Target::Task(own) => Target::Task(task + own),
            Target::Gate(own) => Target::Gate(gate + own),
        };
        Edge { from: task + e.from, to: target, ..*e }
    }));
    graph.gates.extend(part.gates.iter().map(|g| {
        let mut g = *g;
        g.server = g.server.map(|own| server + own);
        g
    }));
    graph.joined.extend(part.joined.iter().map(|j| JoinedQueuePairs { first: qp + j.first, ..*j }));
    graph.one_flow.extend(part.one_flow.iter().map(|r| {
        let moved = |own: &u32| if *own == u32::MAX { *own } else { qp + own };
        let edges = r.edges.iter().map(|ring| ring.iter().map(moved).collect()).collect();
        JoinedCollective { task: task + r.task, edges: Arc::new(edges), ..r.clone() }
    }));
    graph.releases.extend(part.releases.iter().map(|&(own_gate, own_task)| (gate + own_gate, task + own_task)));
    graph.servers += part.servers;
    task..graph.tasks.len() as u32
}

fn add_workload(joined: &mut Workload, part: &JobPart) {
    let own_workload = &part.job.workload;
    let (first_program, first_group, first_share) =
        (joined.programs.len() as u32, joined.groups.len() as u32, joined.shares.len() as u32);
    for program in &own_workload.programs {
        let mut program = program.clone();
        for op in &mut program.ops {
            op.name = joined.name(&own_workload.names[op.name]);
            if let OpKind::Collective { shares: Some(shares), .. } = &mut op.kind {
                *shares += first_share;
            }
        }
        joined.programs.push(program);
    }
    let gpu_of = |rank: &u32| part.gpus[*rank as usize];
    joined.groups.extend(
        own_workload.groups.iter().map(|g| Group { members: g.members.iter().map(gpu_of).collect(), dim: g.dim }),
    );
    joined.shares.extend(own_workload.shares.iter().cloned());
    for (rank, gpu) in own_workload.ranks.iter().zip(&part.gpus) {
        joined.ranks[*gpu as usize] = Rank {
            program: first_program + rank.program,
            groups: rank.groups.iter().map(|group| first_group + group).collect(),
        };
    }
}

/// Delays the tasks that wait for nothing: each then waits for a task of its rank that ends at `start_ps`.
fn start_late(graph: &mut TaskGraph, tasks: Range<u32>, start_ps: u64) {
    let place = |task: u32| tasks.contains(&task).then(|| (task - tasks.start) as usize);
    let mut waits = vec![false; tasks.len()];
    let edge_targets = graph.edges.iter().filter_map(|e| match e.to {
        Target::Task(task) => place(task),
        Target::Gate(_) => None,
    });
    let gate_targets = graph.releases.iter().filter_map(|&(_, task)| place(task));
    edge_targets.chain(gate_targets).for_each(|position| waits[position] = true);
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
