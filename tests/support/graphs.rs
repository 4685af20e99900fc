//! Task graphs that people write: collectives, pipelines, barriers, transfers on shared servers, many small messages.
//!
//! Eight hosts on two switches; every congestion control, with windows, pauses and losses, messages fresh or not.

use hyperfold_llm::workload::Flow;
use hyperfold_llm::workload::program::Dim;
use hyperfold_llm::workload::tasks::{QueuePair, TaskGraph, Work};
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{Link, Network, Node, NodeKind, SwitchNames};
use hyperfold_network::transport::{Cc, RttWindow, Transport};

use super::Case;
use super::random::shortest_paths;
use super::tasks::{TaskCase, queue_pair};
use super::transports::transport;

const HOSTS: u32 = 8;
const GBPS: u64 = 1_000_000_000;
const US: u64 = 1_000_000;

/// Every graph under every congestion control and variant, by name.
pub fn all() -> Vec<(String, TaskCase)> {
    let graphs: [Named<fn() -> TaskGraph>; 7] = [
        ("ring all-reduce", ring_all_reduce),
        ("all-to-all", all_to_all),
        ("pipeline", pipeline),
        ("barriers", barriers),
        ("transfers", transfers),
        ("small messages", small_messages),
        ("back to back", back_to_back),
    ];
    let mut all = Vec::new();
    for (name, graph) in graphs {
        for cc in [Cc::None, Cc::Dcqcn, Cc::Hpcc, Cc::Timely, Cc::Dctcp] {
            for (variant, change) in VARIANTS {
                for fresh_qp in [false, true] {
                    let mut transport = transport(cc);
                    change(&mut transport);
                    let full_name = format!("{name}, {cc:?}, {variant}, fresh {fresh_qp}");
                    all.push((full_name, task_case(incast(), graph(), transport, fresh_qp)));
                }
            }
        }
    }
    all
}

type Named<T> = (&'static str, T);

const VARIANTS: [Named<fn(&mut Transport)>; 4] = [
    ("plain", |_| {}),
    ("windows the other way", |t| {
        t.window = !t.window;
        t.var_window = t.window;
        t.rate_bound = false;
        t.ack_interval = 3_000;
        t.dcqcn_clamp = true;
        t.cnp_interval_ps = 4 * US;
        t.mi_thresh = 5;
        t.fast_react = false;
    }),
    ("pauses", |t| {
        t.buffer_bytes = 220_000;
        t.pfc_alpha_shift = 3;
        t.clock_ps = 1000;
        t.ecn_per_100g.pmax_q32 = 1 << 28;
    }),
    ("losses", |t| {
        t.pfc = false;
        t.buffer_bytes = 150_000;
        t.ack_high_prio = true;
        t.ecn_per_100g.pmax_q32 = 1 << 28;
    }),
];

/// A graph that has the network to itself, without congestion control. Hosts 4 to 7 are on one switch, 40 Gb/s and 1 us away.
pub fn quiet(graph: TaskGraph) -> TaskCase {
    task_case(Vec::new(), graph, transport(Cc::None), false)
}

/// Plain flows into host 0.
fn incast() -> Vec<Flow> {
    let flow = |(id, &src): (usize, &u32)| {
        let (bytes, start_ps) = (30_000 + 7_001 * id as u64, 5 * US * (id as u64 / 3));
        Flow { bytes, start_ps, ..queue_pair(id as u32, src, 0) }
    };
    [1, 2, 4, 5, 6].iter().enumerate().map(flow).collect()
}

/// A graph on the network of [`HOSTS`] hosts, beside plain flows.
fn task_case(mut flows: Vec<Flow>, graph: TaskGraph, transport: Transport, fresh_qp: bool) -> TaskCase {
    let network = network();
    let first_qp = flows.len();
    for qp in &graph.qps {
        flows.push(queue_pair(flows.len() as u32, qp.src, qp.dst));
    }
    let paths = flows
        .iter()
        .map(|f| FlowPaths {
            data: shortest_paths(&network, f.src_rank, f.dst_rank),
            ack: shortest_paths(&network, f.dst_rank, f.src_rank),
        })
        .collect();
    let rtt = vec![RttWindow { rtt_ps: 6_500_000, window_bytes: 20_000 }; flows.len()];
    let case = Case { network, flows, paths, transport, rtt, changes: Vec::new() };
    TaskCase { case, graph, first_qp, release_ps: US, fresh_qp }
}

/// Hosts 0 to 3 on one switch, 4 to 7 on another; two trunks of other rates between them.
fn network() -> Network {
    let side = HOSTS / 2;
    let rate_bps = |h| if h < side { 25 * GBPS } else { 40 * GBPS };
    let mut links: Vec<Link> =
        (0..HOSTS).map(|h| Link { a: h, b: HOSTS + h / side, rate_bps: rate_bps(h), delay_ps: US }).collect();
    links.push(Link { a: HOSTS, b: HOSTS + 1, rate_bps: 40 * GBPS, delay_ps: US + 500_000 });
    links.push(Link { a: HOSTS, b: HOSTS + 1, rate_bps: 100 * GBPS, delay_ps: US });
    let nodes = (0..HOSTS + 2)
        .map(|id| match id < HOSTS {
            true => Node { kind: NodeKind::Host, id, server: id },
            false => Node { kind: NodeKind::Switch, id, server: u32::MAX },
        })
        .collect();
    Network {
        nodes,
        links,
        ranks: (0..HOSTS).collect(),
        nvlink: None,
        switch_names: SwitchNames::ById,
        ..Network::default()
    }
}

/// Queue pairs by their ends, made when first asked for.
struct Maker {
    graph: TaskGraph,
}

impl Maker {
    fn new() -> Self {
        Maker { graph: TaskGraph::default() }
    }

    /// A message of `bytes` from `src` to `dst`, posted `delay_ps` after it could be.
    fn send(&mut self, src: u32, dst: u32, bytes: u64, delay_ps: u64) -> u32 {
        let like = QueuePair { src, dst, lane: 0, dim: Dim::Other };
        let known = self.graph.qps.iter().position(|qp| *qp == like);
        let qp = known.unwrap_or_else(|| {
            self.graph.qps.push(like);
            self.graph.qps.len() - 1
        });
        self.graph.task(src, delay_ps, Work::Message { qp: qp as u32, bytes })
    }

    fn compute(&mut self, rank: u32, delay_ps: u64) -> u32 {
        self.graph.task(rank, delay_ps, Work::Delay)
    }
}

/// Two chunks' rings, in turn on the same queue pairs.
fn ring_all_reduce() -> TaskGraph {
    let mut m = Maker::new();
    for bytes in [4_000, 9_001] {
        let mut before: Vec<Option<u32>> = vec![None; HOSTS as usize];
        for _ in 0..2 * (HOSTS - 1) {
            let sent: Vec<u32> = (0..HOSTS).map(|h| m.send(h, (h + 1) % HOSTS, bytes, 0)).collect();
            for h in 0..HOSTS as usize {
                if let Some(from_left) = before[h] {
                    m.graph.after_arrival(from_left, sent[h]);
                }
                before[(h + 1) % HOSTS as usize] = Some(sent[h]);
            }
        }
    }
    m.graph
}

/// Everyone to everyone, twice: the second round starts on a host once it has the first and was told that its own is there.
fn all_to_all() -> TaskGraph {
    let mut m = Maker::new();
    let mut joined: Vec<u32> = (0..HOSTS).map(|h| m.compute(h, US * (h as u64 / 2))).collect();
    for bytes in [3_000, 2_500] {
        let mut next = Vec::new();
        let mut sent = Vec::new();
        for src in 0..HOSTS {
            for k in 1..HOSTS {
                let dst = (src + k) % HOSTS;
                let message = m.send(src, dst, bytes + k as u64, 0);
                m.graph.after(joined[src as usize], message);
                sent.push((src, dst, message));
            }
        }
        for h in 0..HOSTS {
            let join = m.graph.join(h);
            for &(src, dst, message) in &sent {
                if dst == h {
                    m.graph.after_arrival(message, join);
                }
                if src == h {
                    m.graph.after(message, join);
                }
            }
            next.push(join);
        }
        joined = next;
    }
    m.graph
}

/// Eight micro-batches through four stages and back; a stage computes one thing at a time.
fn pipeline() -> TaskGraph {
    const STAGES: u32 = 4;
    let mut m = Maker::new();
    let mut busy: Vec<Option<u32>> = vec![None; STAGES as usize];
    let mut last_forward = Vec::new();
    for _ in 0..8 {
        let mut input = None;
        for stage in 0..STAGES {
            let compute = m.compute(2 * stage, 3 * US);
            input = stage_step(
                &mut m,
                &mut busy[stage as usize],
                compute,
                input,
                (stage + 1 < STAGES).then_some((2 * stage, 2 * stage + 2)),
            );
        }
        last_forward.push(busy[STAGES as usize - 1]);
    }
    for forward in last_forward {
        let mut input = None;
        for stage in (0..STAGES).rev() {
            let compute = m.compute(2 * stage, 6 * US);
            if let (true, Some(forward)) = (stage + 1 == STAGES, forward) {
                m.graph.after(forward, compute);
            }
            input = stage_step(
                &mut m,
                &mut busy[stage as usize],
                compute,
                input,
                (stage > 0).then(|| (2 * stage, 2 * stage - 2)),
            );
        }
    }
    m.graph
}

/// `compute` follows the stage's last and the arrival of its input; then its output is sent on.
fn stage_step(
    m: &mut Maker,
    busy: &mut Option<u32>,
    compute: u32,
    input: Option<u32>,
    to: Option<(u32, u32)>,
) -> Option<u32> {
    if let Some(before) = busy.replace(compute) {
        m.graph.after(before, compute);
    }
    if let Some(input) = input {
        m.graph.after_arrival(input, compute);
    }
    to.map(|(src, dst)| {
        let message = m.send(src, dst, 12_000, 0);
        m.graph.after(compute, message);
        message
    })
}

/// Three rounds: everyone computes, all meet, everyone sends.
fn barriers() -> TaskGraph {
    let mut m = Maker::new();
    let mut before: Vec<Option<u32>> = vec![None; HOSTS as usize];
    for round in 0..3u64 {
        let gate = m.graph.gate(None, 0, [1, US, 7 * US / 3][round as usize]);
        for h in 0..HOSTS {
            let compute = m.compute(h, US * (1 + (3 * h as u64 + round) % 4));
            if let Some(got) = before[h as usize] {
                m.graph.after_arrival(got, compute);
            }
            m.graph.into_gate(compute, gate);
        }
        for h in 0..HOSTS {
            let message = m.send(h, (h + 3) % HOSTS, 10_000, if h % 2 == 0 { 0 } else { 500_000 });
            m.graph.release(gate, message);
            before[(h as usize + 3) % HOSTS as usize] = Some(message);
        }
    }
    m.graph
}

/// Transfers between neighbours that two servers carry one after another, between messages.
fn transfers() -> TaskGraph {
    let mut m = Maker::new();
    m.graph.servers = 2;
    let mut before: Vec<Option<u32>> = vec![None; HOSTS as usize];
    for round in 0..4u64 {
        for h in 0..HOSTS {
            let gate = m.graph.gate(Some(h % 2), [2 * US, 0, 1_234_567][h as usize % 3], US);
            let ready = m.compute(h, if round == 0 { US * (h as u64 / 4) } else { 0 });
            if let Some(got) = before[h as usize] {
                m.graph.after_arrival(got, ready);
            }
            m.graph.into_gate(ready, gate);
            let neighbour = h ^ 1;
            let there = m.compute(neighbour, 0);
            m.graph.release(gate, there);
            // Waits for a gate and for a task besides.
            let message = m.send(neighbour, (neighbour + 5) % HOSTS, 5_000, 0);
            m.graph.after(there, message);
            m.graph.release(gate, message);
            before[((neighbour + 5) % HOSTS) as usize] = Some(message);
        }
    }
    m.graph
}

/// Hundreds of messages of 1 to 100 bytes: a burst posted at once, and chains in which each waits for the one before to be acknowledged.
fn small_messages() -> TaskGraph {
    let mut m = Maker::new();
    let start = m.compute(0, 2 * US);
    for i in 0..120 {
        let message = m.send(0, 1 + i % 7, 1 + (37 * i as u64) % 100, 0);
        m.graph.after(start, message);
    }
    for h in 1..4 {
        let mut before = None;
        for i in 0..20 {
            let message = m.send(h, h + 4, 1 + i, if i % 5 == 4 { 700_000 } else { 0 });
            if let Some(before) = before.replace(message) {
                m.graph.after(before, message);
            }
        }
    }
    m.graph
}

/// Messages of one queue pair after another, ready in another order than theirs; some after the queue pair was idle.
fn back_to_back() -> TaskGraph {
    let mut m = Maker::new();
    for (src, dst) in [(1, 5), (2, 5), (5, 1)] {
        let mut last = 0;
        for (i, bytes) in [1, 999, 1_000, 1_001, 60_000, 3, 25_000].into_iter().enumerate() {
            last = m.send(src, dst, bytes, US * (7 - i as u64) / 2);
        }
        for bytes in [40_000, 1, 5_000] {
            let message = m.send(src, dst, bytes, 30 * US);
            m.graph.after(last, message);
            last = message;
        }
    }
    m.graph
}
