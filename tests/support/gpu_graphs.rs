//! Small task graphs on random networks: rings, all-to-alls, barriers, transfers through gates, and graphs drawn at random, none with a cycle.
//!
//! Seeded like [`super::random`], whose networks, transports and (beside some graphs) flows they use.

use hyperfold_columns::{NEVER, OwnedTables, SHARED_FLOWS_LEFT, task};
use hyperfold_host::tables::build_tables::{BuildOptions, Built, GraphCase, PacketCase, build};
use hyperfold_llm::workload::Flow;
use hyperfold_llm::workload::program::Dim;
use hyperfold_llm::workload::tasks::{Edge, EdgeMoment, QueuePair, Target, TaskGraph, Work};
use hyperfold_network::transport::Cc;

use super::random::{self, CHANGES, CONTROLS, MOVING, Rng, SELECTIVE, SLOW, SWIFT, WATCHED};
use super::random_changes;
use super::{Case, engine};

const US: u64 = 1_000_000;

/// A case with a task graph: the flows from `first_qp` on are its queue pairs.
#[derive(Clone, Debug)]
pub struct Graph {
    pub case: Case,
    pub graph: TaskGraph,
    pub first_qp: usize,
    pub release_ps: u64,
    pub fresh_qp: bool,
    pub name: String,
}

/// Draws a task graph of one shape over so many hosts.
type Shape = fn(&mut Rng, u32) -> TaskGraph;

/// The shapes, each of which comes with every congestion control over 25 consecutive seeds.
const SHAPES: [(&str, Shape); 5] =
    [("ring", ring), ("all-to-all", all_to_all), ("barriers", barriers), ("gated transfers", gated), ("drawn", drawn)];

/// The case of `seed`. Those below [`SWIFT`] were drawn before Swift came, and tests are about some of them.
pub fn case(seed: u64) -> Graph {
    if seed >= SELECTIVE {
        return case_of(seed, CONTROLS[(seed % 6) as usize], (seed / 6) as usize);
    }
    if seed >= SWIFT {
        return case_of(seed, Cc::Swift, seed as usize);
    }
    let cc = [Cc::None, Cc::Dcqcn, Cc::Hpcc, Cc::Timely, Cc::Dctcp][(seed % 5) as usize];
    case_of(seed, cc, (seed / 5) as usize)
}

/// The case of `seed` with this congestion control, and the shape of this number modulo their count.
pub fn case_of(seed: u64, cc: Cc, shape: usize) -> Graph {
    let (shape, make) = SHAPES[shape % SHAPES.len()];
    let mut rng = Rng::new(seed ^ 0x7a5c_0000);
    let mut case = random::case_of(seed, cc);
    // What a NIC does at once is also what flows and tasks do at once.
    let first_qp = if rng.chance(30) { case.flows.len().min(8) } else { 0 };
    case.flows.truncate(first_qp);
    let mut graph = make(&mut rng, case.network.ranks.len() as u32);
    if rng.chance(25) {
        lossy(&mut case, &mut graph);
    }
    for (q, pair) in graph.qps.iter().enumerate() {
        case.flows.push(Flow {
            id: (first_qp + q) as u32,
            src_rank: pair.src,
            dst_rank: pair.dst,
            bytes: 0,
            start_ps: NEVER,
            sport: 20_000 + pair.lane as u16,
            dport: 100,
            class: (q % case.transport.classes.len().max(1)) as u8,
        });
    }
    case.paths = random::paths(&mut rng, &case.network, &case.flows);
    case.rtt = random::rtt(&case.network, &case.paths, &case.transport);
    // Changes of its flows alone are none of the graph.
    case.changes.clear();
    if (CHANGES..SLOW).contains(&seed) {
        random_changes::break_links(&mut rng, &mut case);
    }
    if (MOVING..WATCHED).contains(&seed) {
        random_changes::break_ports(&mut rng, &mut case, first_qp);
    }
    let release_ps = rng.pick(&[300_000, US, 5 * US]);
    let fresh_qp = rng.chance(50);
    let name = format!("{shape}, seed {seed}, {cc:?}, {}", if fresh_qp { "fresh" } else { "persistent" });
    Graph { case, graph, first_qp, release_ps, fresh_qp, name }
}

/// The case of `seed` over switches that cut through.
pub fn cut_through(seed: u64) -> Graph {
    let mut g = case(seed);
    let transport = &mut g.case.transport;
    transport.cut_through_bytes =
        [64, 14, 64, 200][(seed % 4) as usize].min(transport.payload + transport.data_overhead);
    g.case.rtt = random::rtt(&g.case.network, &g.case.paths, &g.case.transport);
    g.name += ", cut-through";
    g
}

/// Larger messages through the least buffers, without PFC.
fn lossy(case: &mut Case, graph: &mut TaskGraph) {
    for task in &mut graph.tasks {
        if let Work::Message { bytes, .. } = &mut task.work {
            *bytes *= 20;
        }
    }
    let tr = &mut case.transport;
    tr.pfc = false;
    tr.rto_retries = 7;
    let largest = (tr.payload + tr.data_overhead).max(tr.ack_bytes);
    tr.classes.iter_mut().for_each(|class| class.lossless = false);
    tr.buffer_bytes = random::reserved(&case.network, largest, tr.classes.len().max(1), 0) + 5_000;
}

/// Its tables.
pub fn tables(g: &Graph, options: BuildOptions) -> Built {
    build(&PacketCase {
        network: &g.case.network,
        flows: &g.case.flows,
        paths: &g.case.paths,
        rtt: &g.case.rtt,
        transport: &g.case.transport,
        graph: Some(GraphCase {
            graph: &g.graph,
            first_qp: g.first_qp,
            release_ps: g.release_ps,
            fresh_qp: g.fresh_qp,
        }),
        changes: &g.case.changes,
        options,
    })
    .unwrap_or_else(|e| panic!("{}: {e}", g.name))
}

/// Panics unless everything has ended, messages after they had arrived.
pub fn complete(name: &str, t: &OwnedTables) {
    assert_eq!(t.shared[SHARED_FLOWS_LEFT as usize], 0, "{name}: flows and tasks left");
    for (i, row) in t.tasks.iter().enumerate() {
        assert!(row.waits == 0 && row.at <= row.done && row.done != NEVER, "{name}: task {i}: {row:?}");
        let message = row.flags & task::MESSAGE != 0;
        assert!(
            if message { row.at < row.got && row.got < row.done } else { row.got == NEVER },
            "{name}: task {i}: {row:?}"
        );
    }
    assert!(t.gates.iter().all(|g| g.waits == 0), "{name}: a gate waits");
    assert!(engine::packet_hops(t) > 0 || t.flow_tx.is_empty(), "{name}: nothing was sent");
}

fn pair(g: &mut TaskGraph, src: u32, dst: u32, lane: u32) -> u32 {
    g.qps.push(QueuePair { src, dst, lane, dim: Dim::Other });
    g.qps.len() as u32 - 1
}

fn message(g: &mut TaskGraph, qp: u32, delay_ps: u64, bytes: u64) -> u32 {
    g.task(g.qps[qp as usize].src, delay_ps, Work::Message { qp, bytes })
}

/// None twice as often as any other; ties abound.
fn delay(rng: &mut Rng) -> u64 {
    let any = rng.range(1, 9 * US / 1000) * 1000;
    rng.pick(&[0, 0, US, 3 * US, any])
}

/// Every rank passes on to the next what came from the one before, after some work; blocks of equal or of drawn sizes.
fn ring(rng: &mut Rng, n: u32) -> TaskGraph {
    let mut g = TaskGraph::default();
    let qps: Vec<u32> = (0..n).map(|r| pair(&mut g, r, (r + 1) % n, 0)).collect();
    let equal = rng.chance(50).then(|| rng.range(1, 20_000));
    let work = delay(rng);
    let mut before: Vec<u32> = Vec::new();
    for _ in 0..rng.range(2, 5) {
        let mut now = Vec::new();
        for r in 0..n {
            let bytes = equal.unwrap_or_else(|| rng.range(1, 20_000));
            let post = message(&mut g, qps[r as usize], work, bytes);
            if !before.is_empty() {
                g.after_arrival(before[((r + n - 1) % n) as usize], post);
                if rng.chance(50) {
                    g.after(before[r as usize], post);
                }
            }
            now.push(post);
        }
        before = now;
    }
    g
}

/// Rounds in which every rank sends to every other; nobody sends before all of a round has reached it.
fn all_to_all(rng: &mut Rng, n: u32) -> TaskGraph {
    let mut g = TaskGraph::default();
    let bytes = rng.range(1, 12_000);
    let work = delay(rng);
    let mut qps = Vec::new();
    for r in 0..n {
        qps.push((1..n).map(|k| (pair(&mut g, r, (r + k) % n, 0), (r + k) % n)).collect::<Vec<_>>());
    }
    let mut begin: Vec<u32> = (0..n).map(|r| g.task(r, work, Work::Delay)).collect();
    for _ in 0..2 {
        let end: Vec<u32> = (0..n).map(|r| g.task(r, work, Work::Delay)).collect();
        for r in 0..n as usize {
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

/// Work of drawn length, a meeting of all, then a message to a neighbour that must have arrived before the next work.
fn barriers(rng: &mut Rng, n: u32) -> TaskGraph {
    let mut g = TaskGraph::default();
    let qps: Vec<u32> = (0..n).map(|r| pair(&mut g, r, (r + 1 + r % (n - 1)) % n, 0)).collect();
    let latency = rng.pick(&[400_000, US]);
    let mut work: Vec<u32> = (0..n).map(|r| g.task(r, delay(rng), Work::Delay)).collect();
    for _ in 0..rng.range(1, 3) {
        let gate = g.gate(None, 0, latency);
        let next: Vec<u32> = (0..n).map(|r| g.task(r, delay(rng), Work::Delay)).collect();
        for r in 0..n {
            g.into_gate(work[r as usize], gate);
            let post = message(&mut g, qps[r as usize], delay(rng), rng.range(1, 15_000));
            g.release(gate, post);
            let to = g.qps[qps[r as usize] as usize].dst;
            g.after_arrival(post, next[to as usize]);
            // The work waits for the gate and for messages.
            g.release(gate, next[r as usize]);
        }
        work = next;
    }
    g
}

/// Transfers that are no packets', one after another from each rank, between messages.
fn gated(rng: &mut Rng, n: u32) -> TaskGraph {
    let mut g = TaskGraph { servers: n, ..TaskGraph::default() };
    let qps: Vec<u32> = (0..n).map(|r| pair(&mut g, r, (r + n - 1) % n, 0)).collect();
    let mut at: Vec<u32> = (0..n).map(|r| g.task(r, delay(rng), Work::Delay)).collect();
    for _ in 0..rng.range(1, 3) {
        for r in 0..n {
            let to = (r + rng.range(1, u64::from(n) - 1) as u32) % n;
            let arrived = g.join(to);
            for _ in 0..rng.range(1, 3) {
                let gate = g.gate(Some(r), rng.pick(&[0, 500_000, 2 * US]), rng.pick(&[400_000, US]));
                g.into_gate(at[r as usize], gate);
                let part = g.join(to);
                g.release(gate, part);
                g.after(part, arrived);
            }
            let post = message(&mut g, qps[to as usize], 0, rng.range(1, 9_000));
            g.after(arrived, post);
            at[to as usize] = post;
        }
    }
    g
}

/// Every task waits for some before it; a gate for some before its place, and releases some after it: everything goes one way.
fn drawn(rng: &mut Rng, n: u32) -> TaskGraph {
    let mut g = TaskGraph { servers: 2, ..TaskGraph::default() };
    for _ in 0..rng.range(2, 2 * u64::from(n)) {
        let src = rng.range(0, u64::from(n) - 1) as u32;
        let dst = (src + rng.range(1, u64::from(n) - 1) as u32) % n;
        let lane = g.qps.len() as u32;
        pair(&mut g, src, dst, lane);
    }
    let one_rank = rng.chance(30).then(|| rng.range(0, u64::from(n) - 1) as u32);
    let n_tasks = rng.range(10, 120) as u32;
    for i in 0..n_tasks {
        let delay_ps = delay(rng);
        if rng.chance(40) {
            let qp = rng.range(0, g.qps.len() as u64 - 1) as u32;
            let most = rng.pick(&[1, 1_000, 25_000]);
            message(&mut g, qp, delay_ps, rng.range(1, most));
        } else {
            let rank = one_rank.unwrap_or_else(|| rng.range(0, u64::from(n) - 1) as u32);
            g.task(rank, delay_ps, Work::Delay);
        }
        for _ in 0..rng.range(0, 3).min(u64::from(i)) {
            g.edges.push(Edge { to: Target::Task(i), ..edge_before(rng, &g, i) });
        }
    }
    for _ in 0..rng.range(0, 6) {
        let place = rng.range(1, u64::from(n_tasks) - 1) as u32;
        let server = rng.chance(50).then(|| rng.range(0, 1) as u32);
        let gate = g.gate(server, rng.pick(&[0, 700_000, 4 * US]), rng.pick(&[500_000, 2 * US]));
        for _ in 0..rng.range(1, 4) {
            let edge = Edge { to: Target::Gate(gate), ..edge_before(rng, &g, place) };
            g.edges.push(edge);
        }
        for _ in 0..rng.range(1, 3) {
            g.release(gate, rng.range(u64::from(place), u64::from(n_tasks) - 1) as u32);
        }
    }
    g
}

/// An edge from some task before `place`; where it goes is left to the caller.
fn edge_before(rng: &mut Rng, g: &TaskGraph, place: u32) -> Edge {
    let from = rng.range(0, u64::from(place) - 1) as u32;
    let message = matches!(g.tasks[from as usize].work, Work::Message { .. });
    Edge {
        from,
        when: if message && rng.chance(50) { EdgeMoment::Got } else { EdgeMoment::Done },
        to: Target::Task(place),
    }
}
