//! Iterations of a case: as a task graph, through the flow level or the packet engine.
//!
//! Layer: cluster/iterations. All jobs begin an iteration at time 0. Each computes, then sends in steps; the next step begins when the one before has arrived
//! everywhere. A job's time is the mean over the second half of the iterations in which all the others were running, too.

use std::sync::Arc;

use crate::batch::build::{BuildOptions, Built, GraphCase, PacketCase, build};
use crate::batch::job::Job;
use crate::batch::{QP_DPORT, RunOptions, add_tasks, prepare};
use crate::columns::{NEVER, OwnedTables, TaskIdx, status};
use crate::engine::fold::FoldEngine;
use crate::engine::{Engine, is_final};
use crate::flow;
use crate::routing::{FlowPaths, flow_rtt_window};
use crate::spec::mix;
use crate::transport::RttWindow;
use crate::units::PS_PER_S;
use crate::workload::random::RandomStream;
use crate::workload::tasks::{Edge, EdgeMoment, QueuePair, Target, TaskGraph, Work};
use crate::workload::{FIRST_SPORT, Flow};

use super::super::error::ClusterError;
use super::case::IterationCase;
use super::fabric::IterationFabric;
use super::traffic::{JobWork, RingWork};

/// Of a job that is faster than the slowest, so many times the iterations at most.
const MOST_TIMES: u64 = 64;
/// An audit simulates so many times the iterations.
const AUDIT_TIMES: u64 = 4;
/// Iterations are doubled so often at most, until jobs are steady (our choice).
const MOST_DOUBLINGS: u32 = 5;
/// Of a set, so many messages, or packets over links, are simulated for that at most: some tenths of a second. Sets that have more are of many jobs, or of long
/// iterations (our choice).
const MOST_MESSAGES: u64 = 50_000;
const MOST_HOPS: u64 = 2_000_000;
/// Tasks that count as a message (our choice): they have no rate to be solved for.
const TASKS_A_MESSAGE: u64 = 8;
/// Tasks of a program that are simulated for that at most, unless its `scheduler.iterations` alone are more (our choice): a GB of memory.
const MOST_TASKS: u64 = 1_000_000;
/// What a task takes in its graph and in the tables made of it (measured: 290 to 295 bytes of iterations of GPT-2 on 32 GPUs).
const BYTES_A_TASK: u64 = 320;
/// Attempts to have all jobs run to the end of the slowest.
const MOST_ATTEMPTS: u32 = 4;

/// Times of a case.
#[derive(Clone, Debug)]
pub(super) struct Simulated {
    pub ps: Vec<u64>,
    /// Of an audit.
    pub longer: Option<Vec<u64>>,
}

/// Times of a case; `audit_ppm` is the share of cases that are audited.
pub(super) fn simulated(
    fabric: &IterationFabric,
    case: &IterationCase,
    audit_ppm: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Simulated, ClusterError> {
    let keys = &fabric.keys;
    let mut count = u64::from(keys.count);
    let most = (count << MOST_DOUBLINGS) / 2;
    let most_work = if keys.as_packets { MOST_HOPS } else { MOST_MESSAGES };
    let mut halves = halves(fabric, case, count, stop)?;
    for _ in 0..MOST_DOUBLINGS {
        let is_settled = halves.differ_ppm() <= keys.within_ppm && halves.meet_everywhere(most);
        if is_settled || 2 * work(fabric, case, count) > most_work {
            break;
        }
        count *= 2;
        halves = self::halves(fabric, case, count, stop)?;
    }
    let longer = || self::halves(fabric, case, count * AUDIT_TIMES, stop);
    let longer = is_audited(fabric, case, audit_ppm).then(longer).transpose()?;
    Ok(Simulated { ps: halves.second, longer: longer.map(|halves| halves.second) })
}

/// Whether a case is one of the share that is audited: by its content.
fn is_audited(fabric: &IterationFabric, case: &IterationCase, audit_ppm: u64) -> bool {
    let lot = case.key.iter().fold(fabric.keys.seed, |hash, &word| mix(hash, word, 24));
    u64::from(RandomStream::new(lot, 0).below(1_000_000)) < audit_ppm
}

/// Bytes of the host's memory that a case takes while it is simulated, at most and about: its task graph, and the tables made of it.
pub(super) fn most_bytes(fabric: &IterationFabric, case: &IterationCase) -> u64 {
    let keys = &fabric.keys;
    let most_work = if keys.as_packets { MOST_HOPS } else { MOST_MESSAGES };
    let mut count = u64::from(keys.count);
    for _ in 0..MOST_DOUBLINGS {
        if 2 * work(fabric, case, count) > most_work {
            break;
        }
        count *= 2;
    }
    if is_audited(fabric, case, keys.audit_ppm) {
        count *= AUDIT_TIMES;
    }
    let edges = |job: u32| case.edges.iter().filter(|(of, _)| *of == job).count() as u64;
    let of_job = |(job, (work, count)): (u32, (&JobWork, u64))| match work {
        JobWork::Ring(ring) => count.saturating_mul(ring.steps).saturating_mul(edges(job) + 1),
        JobWork::Program(program) => (count + 1).saturating_mul(program.tasks),
    };
    let tasks = (0..).zip(case.works.iter().zip(counts(case, count))).map(of_job).fold(0, u64::saturating_add);
    tasks.saturating_mul(BYTES_A_TASK)
}

/// Mean times of an iteration of each job, ps, in both halves of the time in which all jobs run.
struct Halves {
    first: Vec<u64>,
    second: Vec<u64>,
    /// Length of the second half.
    window_ps: u64,
}

impl Halves {
    /// By how much the halves of a job differ, millionths; of the job where that is most.
    fn differ_ppm(&self) -> u64 {
        let of = |(&a, &b): (&u64, &u64)| (u128::from(a.abs_diff(b)) * 1_000_000 / u128::from(b.max(1))) as u64;
        self.first.iter().zip(&self.second).map(of).max().unwrap_or(0)
    }

    /// Whether two jobs whose iterations take differently long have met in all their phases: in every iteration of the slower one they are shifted by what its time is
    /// off a multiple of the other's. Those that would need more than `most` iterations are taken to keep their places.
    fn meet_everywhere(&self, most: u64) -> bool {
        let pairs = self.second.iter().enumerate().flat_map(|(k, &a)| self.second[..k].iter().map(move |&b| (a, b)));
        pairs.map(|(a, b)| (a.min(b).max(1), a.max(b).max(1))).all(|(fast, slow)| {
            let over = slow % fast;
            let shift = over.min(fast - over);
            // Iterations of the slower one until they are where they were.
            let needed = fast.div_ceil(shift.max(1));
            needed > most || u128::from(needed) * u128::from(slow) <= u128::from(self.window_ps)
        })
    }

    /// Of a job whose iterations end at these times. The one that crosses the middle counts for the second half, as all do where there is one alone.
    fn of(ends: &[u64]) -> (u64, u64) {
        let last = ends.len() - 1;
        let middle = ends[0] + (ends[last] - ends[0]) / 2;
        let before = ends.partition_point(|&end| end <= middle).clamp(1, last) - 1;
        let mean = |from: usize, to: usize| (ends[to] - ends[from]) / (to - from).max(1) as u64;
        let second = mean(before, last);
        (if before == 0 { second } else { mean(0, before) }, second)
    }
}

/// Times of a case where the slowest job has `count` iterations. All begin at once, and it takes them some time to find their places beside each other: the second
/// half stands for what follows.
///
/// # Errors
/// It was stopped, or tables cannot be built, or packets come to no end.
fn halves(
    fabric: &IterationFabric,
    case: &IterationCase,
    count: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Halves, ClusterError> {
    let mut counts = counts(case, count);
    for attempt in 1.. {
        let ends = ends(fabric, case, &counts, stop)?;
        // From then on somebody has no iteration left.
        let until = ends.iter().filter_map(|of| of.last()).copied().min().unwrap_or(0);
        let needed = ends.iter().filter_map(|of| of.get(count as usize)).copied().max().unwrap_or(0);
        if needed <= until || attempt == MOST_ATTEMPTS {
            let done = |of: &Vec<u64>| of.partition_point(|&end| end <= until).max(2);
            let (first, second) = ends.iter().map(|of| Halves::of(&of[..done(of)])).unzip();
            let begin = ends.iter().filter_map(|of| of.first()).copied().min().unwrap_or(0);
            return Ok(Halves { first, second, window_ps: until.saturating_sub(begin) / 2 });
        }
        for (job, (own, of)) in counts.iter_mut().zip(&ends).enumerate() {
            let end = of[*own as usize];
            if end < needed {
                *own = (*own * needed).div_ceil(end.max(1)).min(most_count(case, job, count)) + 1;
            }
        }
    }
    unreachable!("the last attempt returns")
}

/// Iterations of each job that are simulated first, where the slowest has `count`.
pub(super) fn counts(case: &IterationCase, count: u64) -> Vec<u64> {
    let least: Vec<u64> = (0..).zip(&case.works).map(|(job, _)| least_time(case, job)).collect();
    let slowest = least.iter().copied().max().unwrap_or(1);
    let own = |(job, &own): (usize, &u64)| (count * slowest.div_ceil(own)).min(most_count(case, job, count));
    least.iter().enumerate().map(own).collect()
}

/// Most iterations of a job, where the slowest has `count`.
fn most_count(case: &IterationCase, job: usize, count: u64) -> u64 {
    let most = MOST_TIMES * count;
    match &case.works[job] {
        JobWork::Ring(_) => most,
        JobWork::Program(program) => most.min(MOST_TASKS / program.tasks.max(1)).max(count),
    }
}

/// Messages of all jobs, where the slowest has `count` iterations; with packets, packets over links.
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
        // All its messages are counted below.
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

/// What an iteration of a job takes at least, ps.
pub(super) fn least_time(case: &IterationCase, job: u32) -> u64 {
    let work = match &case.works[job as usize] {
        JobWork::Ring(work) => work,
        // How much of its messages it hides behind computation is not known before.
        JobWork::Program(program) => return program.compute_ps.max(1),
    };
    let rates = case.edges.iter().filter(|(of, _)| *of == job).flat_map(|(_, paths)| paths.data.iter().flatten());
    let slowest = rates.map(|&arc| case.net.arc_link(arc).rate_bps).min().unwrap_or(1);
    let bits = u128::from(work.bytes) * u128::from(work.steps) * 8 * u128::from(PS_PER_S);
    (work.compute_ps + (bits / u128::from(slowest)) as u64).max(1)
}

/// When each job's iterations begin to send (after its first computation, then once an iteration), or when a program's end; one more than iterations, ps.
fn ends(
    fabric: &IterationFabric,
    case: &IterationCase,
    counts: &[u64],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Vec<u64>>, ClusterError> {
    let programs = case.works.iter().any(JobWork::is_program);
    let of_case = case.net.links.iter().map(|l| l.delay_ps).min().unwrap_or(1);
    // Ranks of a program tell each other as they do where it is a job alone.
    let least_delay = if programs { fabric.least_delay_ps } else { of_case };
    let as_packets = fabric.keys.as_packets;
    let (graph, marks) = graph(fabric, case, counts, if as_packets { least_delay } else { 1 })?;
    let mut built = tables(fabric, case, &graph, least_delay)?;
    drop(graph);
    if as_packets {
        packets(fabric, &mut built, stop)?;
    } else if !flow::run_to_end(&mut built.tables.view(), &|| stop()) {
        return Err(ClusterError::Interrupted);
    }
    let t = &built.tables;
    if t.exps[0].status != status::DONE {
        return Err(ClusterError::Iterations { status: t.exps[0].status });
    }
    let at = |task: u32| t.tasks[TaskIdx(task)].done;
    Ok(marks.iter().map(|of| of.ends(&at)).collect())
}

/// Where a job's iterations are in a graph.
enum Marks {
    /// Ends of computations.
    Tasks(Vec<u32>),
    /// Of a program whose tasks are there from one on.
    Program { job: Arc<Job>, first: u32 },
}

impl Marks {
    /// `at`: when a task ended.
    fn ends(&self, at: &dyn Fn(u32) -> u64) -> Vec<u64> {
        let (job, first) = match self {
            Marks::Tasks(tasks) => return tasks.iter().map(|&task| at(task)).collect(),
            Marks::Program { job, first } => (job, *first),
        };
        let mut ends: Vec<u64> = Vec::new();
        for (ops, rank) in job.graph.ops.iter().zip(&job.workload.ranks).filter(|(ops, _)| !ops.is_empty()) {
            let mut begin = 0;
            let iterations = &job.workload.programs[rank.program as usize].iteration_ends;
            ends.resize(ends.len().max(iterations.len()), 0);
            for (end, &until) in ends.iter_mut().zip(iterations) {
                let own = &ops[(begin as usize).min(ops.len())..(until as usize).min(ops.len())];
                *end = own.iter().map(|op| at(first + op.end)).fold(*end, u64::max);
                begin = until;
            }
        }
        // An iteration in which nothing ends later than in the one before ends with it.
        for i in 1..ends.len() {
            ends[i] = ends[i].max(ends[i - 1]);
        }
        ends
    }
}

/// The graph, and where iterations are in it, one more of each job than it is to have.
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
        graph.qps.push(QueuePair { src: rank_of(src), dst: rank_of(dst), lane: 0 });
    }
    let mut marks = Vec::new();
    for (job, (work, &count)) in (0..).zip(case.works.iter().zip(counts)) {
        let mut own = (0u32..).zip(&case.edges).filter(|(_, (of, _))| *of == job).map(|(qp, _)| qp);
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

/// Iterations of a ring over the queue pairs `own`; the ends of its computations, one more than iterations.
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
        priority: 0,
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
        options: BuildOptions { flow_level: !fabric.keys.as_packets, ..BuildOptions::default() },
    })?;
    if let Some(memo) = fabric.folding.filter(|_| fabric.keys.as_packets) {
        prepare::fold(&mut built, memo, fabric.steady);
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
