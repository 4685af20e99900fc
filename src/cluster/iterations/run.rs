//! Iterations of a case: as a task graph, through the flow level or the packet engine.
//!
//! Layer: cluster/iterations. All jobs begin an iteration at time 0. Each computes, then sends in steps; the next step begins when the one before has arrived
//! everywhere. A job's time is the mean over the second half of the iterations in which all the others were running, too.

use crate::batch::build::{BuildOptions, Built, GraphCase, PacketCase, build};
use crate::batch::{QP_DPORT, RunOptions, prepare};
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
    let lot = case.key.iter().fold(keys.seed, |hash, &word| mix(hash, word, 24));
    let is_audited = u64::from(RandomStream::new(lot, 0).below(1_000_000)) < audit_ppm;
    let longer = || self::halves(fabric, case, count * AUDIT_TIMES, stop);
    let longer = is_audited.then(longer).transpose()?;
    Ok(Simulated { ps: halves.second, longer: longer.map(|halves| halves.second) })
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
        for (own, of) in counts.iter_mut().zip(&ends) {
            let end = of[*own as usize];
            if end < needed {
                *own = (*own * needed).div_ceil(end.max(1)).min(MOST_TIMES * count) + 1;
            }
        }
    }
    unreachable!("the last attempt returns")
}

/// Iterations of each job that are simulated first, where the slowest has `count`.
pub(super) fn counts(case: &IterationCase, count: u64) -> Vec<u64> {
    let least: Vec<u64> = (0..).zip(&case.works).map(|(job, _)| least_time(case, job)).collect();
    let slowest = least.iter().copied().max().unwrap_or(1);
    least.iter().map(|&own| (count * slowest.div_ceil(own)).min(MOST_TIMES * count)).collect()
}

/// Messages of all jobs, where the slowest has `count` iterations; with packets, packets over links.
pub(super) fn work(fabric: &IterationFabric, case: &IterationCase, count: u64) -> u64 {
    let payload = u64::from(fabric.transport.payload.max(1));
    let counts = counts(case, count);
    let of_edge = |job: usize, hops: u64| {
        let one = if fabric.keys.as_packets { case.works[job].bytes.div_ceil(payload) * hops } else { 1 };
        counts[job].saturating_mul(case.works[job].steps).saturating_mul(one)
    };
    let hops = |paths: &FlowPaths| (paths.data[0].len() + paths.ack[0].len()) as u64;
    let all = case.edges.iter().map(|(job, paths)| of_edge(*job as usize, hops(paths)));
    all.fold(1, u64::saturating_add)
}

/// What an iteration of a job takes at least, ps.
pub(super) fn least_time(case: &IterationCase, job: u32) -> u64 {
    let rates = case.edges.iter().filter(|(of, _)| *of == job).flat_map(|(_, paths)| paths.data.iter().flatten());
    let slowest = rates.map(|&arc| case.net.arc_link(arc).rate_bps).min().unwrap_or(1);
    let work = &case.works[job as usize];
    let bits = u128::from(work.bytes) * u128::from(work.steps) * 8 * u128::from(PS_PER_S);
    (work.compute_ps + (bits / u128::from(slowest)) as u64).max(1)
}

/// When each job's iterations begin to send: after its first computation, then once an iteration, ps.
fn ends(
    fabric: &IterationFabric,
    case: &IterationCase,
    counts: &[u64],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Vec<u64>>, ClusterError> {
    let least_delay = case.net.links.iter().map(|l| l.delay_ps).min().unwrap_or(1);
    let as_packets = fabric.keys.as_packets;
    let (graph, marks) = graph(case, counts, if as_packets { least_delay } else { 1 });
    let mut built = tables(fabric, case, &graph, least_delay)?;
    if as_packets {
        packets(fabric, &mut built, stop)?;
    } else if !flow::run_to_end(&mut built.tables.view(), &|| stop()) {
        return Err(ClusterError::Interrupted);
    }
    let t = &built.tables;
    if t.exps[0].status != status::DONE {
        return Err(ClusterError::Iterations { status: t.exps[0].status });
    }
    let at = |task: &u32| t.tasks[TaskIdx(*task)].done;
    Ok(marks.iter().map(|of| of.iter().map(at).collect()).collect())
}

/// The graph, and of each job the ends of its computations, one more than iterations.
fn graph(case: &IterationCase, counts: &[u64], latency_ps: u64) -> (TaskGraph, Vec<Vec<u32>>) {
    let mut graph = TaskGraph::default();
    let rank_of = |node: u32| case.net.ranks.partition_point(|&host| host < node) as u32;
    for (_, paths) in &case.edges {
        let ends = |path: &[u32]| (case.net.arc_from(path[0]), case.net.arc_to(path[path.len() - 1]));
        let (src, dst) = ends(&paths.data[0]);
        graph.qps.push(QueuePair { src: rank_of(src), dst: rank_of(dst), lane: 0 });
    }
    let mut marks = Vec::new();
    for (job, (work, &count)) in (0..).zip(case.works.iter().zip(counts)) {
        let own: Vec<u32> = (0..).zip(&case.edges).filter(|(_, (of, _))| *of == job).map(|(qp, _)| qp).collect();
        let home = own.first().map_or(0, |&qp| graph.qps[qp as usize].src);
        let mut computed = graph.task(home, work.compute_ps, Work::Delay);
        let mut of_job = vec![computed];
        for _ in 0..count {
            let mut before = vec![(computed, EdgeMoment::Done)];
            for _ in 0..work.steps {
                let gate = gate(&mut graph, &before, latency_ps);
                before.clear();
                for &qp in &own {
                    let rank = graph.qps[qp as usize].src;
                    let message = graph.task(rank, 0, Work::Message { qp, bytes: work.bytes });
                    graph.release(gate, message);
                    before.push((message, EdgeMoment::Got));
                }
            }
            let gate = gate(&mut graph, &before, latency_ps);
            computed = graph.task(home, work.compute_ps, Work::Delay);
            graph.release(gate, computed);
            of_job.push(computed);
        }
        marks.push(of_job);
    }
    (graph, marks)
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
