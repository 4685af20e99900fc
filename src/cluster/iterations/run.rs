//! Simulates iterations of a case, as a task graph, with the flow level or the packet engine.
//!
//! Layer: cluster/iterations. All jobs begin an iteration at time 0. Each job computes, then sends in steps; a step begins when the step before has arrived
//! everywhere. A job's time is the mean over the second half of the iterations in which all the other jobs still ran.

use std::sync::Arc;

use hyperfold_base::units::PS_PER_S;
use hyperfold_columns::{NEVER, OwnedTables, TaskIdx, status};
use hyperfold_config::spec::mix;
use hyperfold_engine::{Engine, is_final};
use hyperfold_fold::FoldEngine;
use hyperfold_host::programs::job::Job;
use hyperfold_host::tables::build_tables::{BuildOptions, Built, GraphCase, PacketCase, build};
use hyperfold_host::{QP_DPORT, RunOptions, add_tasks};
use hyperfold_llm::workload::program::Dim;
use hyperfold_llm::workload::random::RandomStream;
use hyperfold_llm::workload::tasks::{Edge, EdgeMoment, QueuePair, Target, TaskGraph, Work};
use hyperfold_llm::workload::{FIRST_SPORT, Flow};
use hyperfold_network::routing::{FlowPaths, flow_rtt_window};
use hyperfold_network::transport::RttWindow;

use super::super::error::ClusterError;
use super::case::IterationCase;
use super::fabric::IterationFabric;
use super::traffic::{JobWork, RingWork};

/// Limit of a fast job's iterations, as a multiple of the iterations of the slowest job.
const MAX_TIMES: u64 = 64;
/// An audit simulates this many times the iterations.
const AUDIT_TIMES: u64 = 4;
/// How often the number of iterations is doubled at most until jobs are steady (our choice).
const MAX_DOUBLINGS: u32 = 5;
/// Messages (with packets: packets over links) of a set that doubling may reach at most: some tenths of a second. Sets above that have many jobs or long
/// iterations (our choice).
const MAX_MESSAGES: u64 = 50_000;
const MAX_HOPS: u64 = 2_000_000;
/// Tasks that count as much as one message (our choice). Tasks need no solving for rates.
const TASKS_A_MESSAGE: u64 = 8;
/// Tasks of a program up to which iterations are added (our choice): about 1 GB of memory. `scheduler.iterations` alone may exceed it.
const MAX_TASKS: u64 = 1_000_000;
/// Memory of a task in its graph and in the tables made of it, in bytes (measured: 290 to 295 bytes for iterations of GPT-2 on 32 GPUs).
const BYTES_A_TASK: u64 = 320;
/// Attempts to keep all jobs running until the slowest job ends.
const MAX_ATTEMPTS: u32 = 4;

/// Iteration times of the jobs of a case, in ps.
#[derive(Clone, Debug)]
pub(super) struct Simulated {
    pub ps: Vec<u64>,
    /// Times that an audit found with more iterations.
    pub longer: Option<Vec<u64>>,
}

/// Simulates a case and returns its iteration times. `audit_ppm` is the share of cases that are audited, in millionths.
pub(super) fn simulated(
    fabric: &IterationFabric,
    case: &IterationCase,
    audit_ppm: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Simulated, ClusterError> {
    let keys = &fabric.keys;
    let mut count = u64::from(keys.count);
    let max_iterations = (count << MAX_DOUBLINGS) / 2;
    let max_work = if keys.as_packets { MAX_HOPS } else { MAX_MESSAGES };
    let mut halves = halves(fabric, case, count, stop)?;
    for _ in 0..MAX_DOUBLINGS {
        let is_settled = halves.differ_ppm() <= keys.within_ppm && halves.meet_everywhere(max_iterations);
        if is_settled || 2 * work(fabric, case, count) > max_work {
            break;
        }
        count *= 2;
        halves = self::halves(fabric, case, count, stop)?;
    }
    let longer = || self::halves(fabric, case, count * AUDIT_TIMES, stop);
    let longer = is_audited(fabric, case, audit_ppm).then(longer).transpose()?;
    Ok(Simulated { ps: halves.second, longer: longer.map(|halves| halves.second) })
}

/// Whether a case is audited. It is drawn from the content of the case.
fn is_audited(fabric: &IterationFabric, case: &IterationCase, audit_ppm: u64) -> bool {
    let lot = case.key.iter().fold(fabric.keys.seed, |hash, &word| mix(hash, word, 24));
    u64::from(RandomStream::new(lot, 0).below(1_000_000)) < audit_ppm
}

/// Estimate of the host memory that a case needs at most while it is simulated: its task graph and the tables made of it, in bytes.
pub(super) fn max_bytes(fabric: &IterationFabric, case: &IterationCase) -> u64 {
    let keys = &fabric.keys;
    let max_work = if keys.as_packets { MAX_HOPS } else { MAX_MESSAGES };
    let mut count = u64::from(keys.count);
    for _ in 0..MAX_DOUBLINGS {
        if 2 * work(fabric, case, count) > max_work {
            break;
        }
        count *= 2;
    }
    if is_audited(fabric, case, keys.audit_ppm) {
        count *= AUDIT_TIMES;
    }
    let edges = |job: u32| case.edges.iter().filter(|(owner, _)| *owner == job).count() as u64;
    let of_job = |(job, (work, count)): (u32, (&JobWork, u64))| match work {
        JobWork::Ring(ring) => count.saturating_mul(ring.steps).saturating_mul(edges(job) + 1),
        JobWork::Program(program) => (count + 1).saturating_mul(program.tasks),
    };
    let tasks = (0..).zip(case.works.iter().zip(counts(case, count))).map(of_job).fold(0, u64::saturating_add);
    tasks.saturating_mul(BYTES_A_TASK)
}

/// Mean iteration times of each job, in ps, in the first and the second half of the time in which all jobs run.
struct Halves {
    first: Vec<u64>,
    second: Vec<u64>,
    /// Length of the second half, in ps.
    half_ps: u64,
}

impl Halves {
    /// Largest difference between the halves of a job, over all jobs, in millionths.
    fn differ_ppm(&self) -> u64 {
        let differ = |(&a, &b): (&u64, &u64)| (u128::from(a.abs_diff(b)) * 1_000_000 / u128::from(b.max(1))) as u64;
        self.first.iter().zip(&self.second).map(differ).max().unwrap_or(0)
    }

    /// Whether any two jobs with different iteration times have met in all their phases. In every iteration of the slower job, the two shift against each other
    /// by the distance of its time from a multiple of the other's time. Two jobs that would need more than `max_iterations` iterations are taken to keep their
    /// phases.
    fn meet_everywhere(&self, max_iterations: u64) -> bool {
        let pairs = self.second.iter().enumerate().flat_map(|(k, &a)| self.second[..k].iter().map(move |&b| (a, b)));
        pairs.map(|(a, b)| (a.min(b).max(1), a.max(b).max(1))).all(|(fast, slow)| {
            let remainder = slow % fast;
            let shift = remainder.min(fast - remainder);
            // Iterations of the slower job until both are in the same phases again.
            let needed = fast.div_ceil(shift.max(1));
            needed > max_iterations || u128::from(needed) * u128::from(slow) <= u128::from(self.half_ps)
        })
    }

    /// Mean iteration times in both halves of a job whose iterations end at these times. The iteration that crosses the middle counts for the second half. If
    /// there is only one iteration, it counts for both.
    fn of(ends: &[u64]) -> (u64, u64) {
        let last = ends.len() - 1;
        let middle = ends[0] + (ends[last] - ends[0]) / 2;
        let before = ends.partition_point(|&end| end <= middle).clamp(1, last) - 1;
        let mean = |begin: usize, end: usize| (ends[end] - ends[begin]) / (end - begin).max(1) as u64;
        let second = mean(before, last);
        (if before == 0 { second } else { mean(0, before) }, second)
    }
}

/// Iteration times of a case in which the slowest job has `count` iterations. All jobs begin at once and need some time to find their phases beside each
/// other, so the second half stands for what follows.
///
/// # Errors
/// It was stopped, tables cannot be built, or packets come to no end.
fn halves(
    fabric: &IterationFabric,
    case: &IterationCase,
    count: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Halves, ClusterError> {
    let mut counts = counts(case, count);
    for attempt in 1.. {
        let ends = ends(fabric, case, &counts, stop)?;
        // At this time a first job has no iteration left.
        let all_run_until_ps = ends.iter().filter_map(|job_ends| job_ends.last()).copied().min().unwrap_or(0);
        let needed = ends.iter().filter_map(|job_ends| job_ends.get(count as usize)).copied().max().unwrap_or(0);
        if needed <= all_run_until_ps || attempt == MAX_ATTEMPTS {
            let done = |job_ends: &Vec<u64>| job_ends.partition_point(|&end| end <= all_run_until_ps).max(2);
            let (first, second) = ends.iter().map(|job_ends| Halves::of(&job_ends[..done(job_ends)])).unzip();
            let begin = ends.iter().filter_map(|job_ends| job_ends.first()).copied().min().unwrap_or(0);
            return Ok(Halves { first, second, half_ps: all_run_until_ps.saturating_sub(begin) / 2 });
        }
        for (job, (own, job_ends)) in counts.iter_mut().zip(&ends).enumerate() {
            let end = job_ends[*own as usize];
            if end < needed {
                *own = (*own * needed).div_ceil(end.max(1)).min(max_count(case, job, count)) + 1;
            }
        }
    }
    unreachable!("the last attempt returns")
}

/// Number of iterations of each job in the first attempt, if the slowest job has `count`.
pub(super) fn counts(case: &IterationCase, count: u64) -> Vec<u64> {
    let min_times: Vec<u64> = (0..).zip(&case.works).map(|(job, _)| min_time(case, job)).collect();
    let slowest = min_times.iter().copied().max().unwrap_or(1);
    let own = |(job, &own): (usize, &u64)| (count * slowest.div_ceil(own)).min(max_count(case, job, count));
    min_times.iter().enumerate().map(own).collect()
}

/// Largest number of iterations of a job, if the slowest job has `count`.
fn max_count(case: &IterationCase, job: usize, count: u64) -> u64 {
    let max_count = MAX_TIMES * count;
    match &case.works[job] {
        JobWork::Ring(_) => max_count,
        JobWork::Program(program) => max_count.min(MAX_TASKS / program.tasks.max(1)).max(count),
    }
}

/// Work of simulating a case in which the slowest job has `count` iterations: messages of all jobs, or packets over links if packets are simulated.
pub(super) fn work(fabric: &IterationFabric, case: &IterationCase, count: u64) -> u64 {
    let payload = u64::from(fabric.transport.payload.max(1));
    let as_packets = fabric.keys.as_packets;
    let counts = counts(case, count);
    let hops = |paths: &FlowPaths| (paths.data[0].len() + paths.ack[0].len()) as u64;
    let of_edge = |(job, paths): &(u32, FlowPaths)| match &case.works[*job as usize] {
        JobWork::Ring(ring) => {
            let one = if as_packets { ring.bytes.div_ceil(payload) * hops(paths) } else { 1 };
            counts[*job as usize].saturating_mul(ring.steps).saturating_mul(one)
        }
        // Messages of a program are counted below.
        JobWork::Program(_) => 0,
    };
    let of_job = |(work, &count): (&JobWork, &u64)| match work {
        JobWork::Ring(_) => 0,
        JobWork::Program(program) => {
            let tasks = program.tasks / TASKS_A_MESSAGE;
            count.saturating_mul(tasks + if as_packets { program.packet_hops } else { program.messages })
        }
    };
    let all = case.edges.iter().map(of_edge).chain(case.works.iter().zip(&counts).map(of_job));
    all.fold(1, u64::saturating_add)
}

/// Lower bound of the time of an iteration of a job, in ps.
pub(super) fn min_time(case: &IterationCase, job: u32) -> u64 {
    let work = match &case.works[job as usize] {
        JobWork::Ring(work) => work,
        // Which of its messages are hidden behind computation is not known before it is simulated.
        JobWork::Program(program) => return program.compute_ps.max(1),
    };
    let rates = case.edges.iter().filter(|(owner, _)| *owner == job).flat_map(|(_, paths)| paths.data.iter().flatten());
    let slowest = rates.map(|&arc| case.net.arc_link(arc).rate_bps).min().unwrap_or(1);
    let bits = u128::from(work.bytes) * u128::from(work.steps) * 8 * u128::from(PS_PER_S);
    (work.compute_ps + (bits / u128::from(slowest)) as u64).max(1)
}

/// For each job, the times in ps at which its iterations begin to send (after its first computation, then once an iteration). For a program, the times at
/// which iterations end. Each list has one more entry than there are iterations.
fn ends(
    fabric: &IterationFabric,
    case: &IterationCase,
    counts: &[u64],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Vec<u64>>, ClusterError> {
    let programs = case.works.iter().any(JobWork::is_program);
    let of_case = case.net.links.iter().map(|l| l.delay_ps).min().unwrap_or(1);
    // Ranks of a program notify each other with the same delay as in a job that is simulated alone.
    let min_delay = if programs { fabric.min_delay_ps } else { of_case };
    let as_packets = fabric.keys.as_packets;
    let (graph, marks) = graph(fabric, case, counts, if as_packets { min_delay } else { 1 })?;
    let mut built = tables(fabric, case, &graph, min_delay)?;
    drop(graph);
    if as_packets {
        packets(fabric, &mut built, stop)?;
    } else if !hyperfold_flow::run_to_end(&mut built.tables.view(), &|| stop()) {
        return Err(ClusterError::Interrupted);
    }
    let t = &built.tables;
    if t.exps[0].status != status::DONE {
        return Err(ClusterError::Iterations { status: t.exps[0].status });
    }
    let done_ps = |task: u32| t.tasks[TaskIdx(task)].done;
    Ok(marks.iter().map(|mark| mark.ends(&done_ps)).collect())
}

/// Tasks of a graph with which a job's iterations end.
enum Marks {
    /// Tasks whose ends are the ends of computations.
    Tasks(Vec<u32>),
    /// A program whose tasks begin at `first`.
    Program { job: Arc<Job>, first: u32 },
}

impl Marks {
    /// Times in ps at which the iterations end. `done_ps` gives the time at which a task ended.
    fn ends(&self, done_ps: &dyn Fn(u32) -> u64) -> Vec<u64> {
        let (job, first) = match self {
            Marks::Tasks(tasks) => return tasks.iter().map(|&task| done_ps(task)).collect(),
            Marks::Program { job, first } => (job, *first),
        };
        let mut ends: Vec<u64> = Vec::new();
        for (ops, rank) in job.graph.ops.iter().zip(&job.workload.ranks).filter(|(ops, _)| !ops.is_empty()) {
            let mut begin = 0;
            let iterations = &job.workload.programs[rank.program as usize].iteration_ends;
            ends.resize(ends.len().max(iterations.len()), 0);
            for (end, &end_op) in ends.iter_mut().zip(iterations) {
                let own = &ops[(begin as usize).min(ops.len())..(end_op as usize).min(ops.len())];
                *end = own.iter().map(|op| done_ps(first + op.end)).fold(*end, u64::max);
                begin = end_op;
            }
        }
        // An iteration in which nothing ends later than in the one before ends together with it.
        for i in 1..ends.len() {
            ends[i] = ends[i].max(ends[i - 1]);
        }
        ends
    }
}

/// The task graph of a case, and the marks of each job's iterations. The graph has one more iteration of each job than `counts`.
fn graph(
    fabric: &IterationFabric,
    case: &IterationCase,
    counts: &[u64],
    latency_ps: u64,
) -> Result<(TaskGraph, Vec<Marks>), ClusterError> {
    let mut graph = TaskGraph::default();
    let rank_of = |node: u32| case.net.ranks.partition_point(|&host| host < node) as u32;
    for (_, paths) in &case.edges {
        let ends = |path: &[u32]| (case.net.arc_from(path[0]), case.net.arc_to(path[path.len() - 1]));
        let (src, dst) = ends(&paths.data[0]);
        graph.qps.push(QueuePair { src: rank_of(src), dst: rank_of(dst), lane: 0, dim: Dim::Other });
    }
    let mut marks = Vec::new();
    for (job, (work, &count)) in (0..).zip(case.works.iter().zip(counts)) {
        let mut own = (0u32..).zip(&case.edges).filter(|(_, (owner, _))| *owner == job).map(|(qp, _)| qp);
        marks.push(match work {
            JobWork::Ring(ring) => {
                Marks::Tasks(add_ring(&mut graph, ring, &own.collect::<Vec<u32>>(), count, latency_ps))
            }
            JobWork::Program(program) => {
                let lowered = program.lowered(fabric, count + 1)?;
                let first_qp = own.next().unwrap_or(0);
                let (has, needs) = (own.count() + 1, lowered.graph.qps.len());
                if needs > 0 && has != needs {
                    return Err(ClusterError::QueuePairs { has, needs });
                }
                let tasks = add_tasks(&mut graph, &lowered.graph, &case.gpus[job as usize], first_qp);
                Marks::Program { job: lowered, first: tasks.start }
            }
        });
    }
    Ok((graph, marks))
}

/// Adds iterations of a ring over the queue pairs `own`. Returns the ends of its computations, one more than iterations.
fn add_ring(graph: &mut TaskGraph, work: &RingWork, own: &[u32], count: u64, latency_ps: u64) -> Vec<u32> {
    let home = own.first().map_or(0, |&qp| graph.qps[qp as usize].src);
    let mut computed = graph.task(home, work.compute_ps, Work::Delay);
    let mut of_job = vec![computed];
    for _ in 0..count {
        let mut before = vec![(computed, EdgeMoment::Done)];
        for _ in 0..work.steps {
            let gate = gate(graph, &before, latency_ps);
            before.clear();
            for &qp in own {
                let rank = graph.qps[qp as usize].src;
                let message = graph.task(rank, 0, Work::Message { qp, bytes: work.bytes });
                graph.release(gate, message);
                before.push((message, EdgeMoment::Got));
            }
        }
        let gate = gate(graph, &before, latency_ps);
        computed = graph.task(home, work.compute_ps, Work::Delay);
        graph.release(gate, computed);
        of_job.push(computed);
    }
    of_job
}

fn gate(graph: &mut TaskGraph, before: &[(u32, EdgeMoment)], latency_ps: u64) -> u32 {
    let gate = graph.gate(None, 0, latency_ps);
    graph.edges.extend(before.iter().map(|&(from, when)| Edge { from, when, to: Target::Gate(gate) }));
    gate
}

fn tables(
    fabric: &IterationFabric,
    case: &IterationCase,
    graph: &TaskGraph,
    release_ps: u64,
) -> Result<Built, ClusterError> {
    let flow = |(id, qp): (u32, &QueuePair)| Flow {
        id,
        src_rank: qp.src,
        dst_rank: qp.dst,
        bytes: 0,
        start_ps: NEVER,
        sport: FIRST_SPORT,
        dport: QP_DPORT,
        class: 0,
    };
    let flows: Vec<Flow> = (0..).zip(&graph.qps).map(flow).collect();
    let paths: Vec<_> = case.edges.iter().map(|(_, paths)| paths.clone()).collect();
    let own: Vec<RttWindow> = paths.iter().map(|p| flow_rtt_window(&case.net, p, fabric.packet())).collect();
    let mut transport = fabric.transport.clone();
    let longest = own.iter().map(|w| w.rtt_ps).max().unwrap_or(0);
    transport.rto_ps = transport.rto_ps.max(4 * longest);
    let largest = RttWindow { rtt_ps: longest, window_bytes: own.iter().map(|w| w.window_bytes).max().unwrap_or(1) };
    let rtt = if transport.global_rtt { vec![largest; own.len()] } else { own };
    let mut built = build(&PacketCase {
        network: &case.net,
        flows: &flows,
        paths: &paths,
        rtt: &rtt,
        transport: &transport,
        graph: Some(GraphCase { graph, first_qp: 0, release_ps, fresh_qp: fabric.fresh_qp }),
        changes: &[],
        options: BuildOptions { flow_level: !fabric.keys.as_packets, ..BuildOptions::default() },
    })?;
    if let Some(memo) = fabric.folding.filter(|_| fabric.keys.as_packets) {
        hyperfold_host::setup::prepare::fold(&mut built, memo, fabric.steady);
    }
    Ok(built)
}

fn packets(fabric: &IterationFabric, built: &mut Built, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), ClusterError> {
    let mut engine = if fabric.folding == Some(true) { FoldEngine::default() } else { FoldEngine::forgetful() };
    let limit = RunOptions::default().packet_limit;
    OwnedTables::with_views(std::slice::from_mut(&mut built.tables), |batch| {
        while !is_final(&batch[0]) {
            if stop() {
                return Err(ClusterError::Interrupted);
            }
            let slice = engine.advance(batch, limit, stop).map_err(|e| ClusterError::Packets(e.to_string()))?;
            if let Some((_, why)) = slice.failures.into_iter().next() {
                return Err(ClusterError::Packets(why));
            }
        }
        Ok(())
    })
}
