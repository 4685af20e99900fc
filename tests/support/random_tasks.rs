//! Random small task graphs on random networks: many ties, messages of one byte and of several windows, gates, servers, hosts with two NICs.
//!
//! Without cycles by construction: everything leads from a task to one of a larger number.

use hyperfold_llm::workload::program::Dim;
use hyperfold_llm::workload::tasks::{Edge, EdgeMoment, QueuePair, Target, TaskGraph, Work};
use hyperfold_network::topology::{ArcIdx, Link, Network, NodeKind};
use hyperfold_network::transport::{Cc, EcnThresholds};

use super::Case;
use super::random::{
    self, ADAPTIVE, CHANGES, CLASSES, CONTROLS, IMPAIRED, MOVING, Rng, SELECTIVE, SLOW, SWIFT, UEC, WATCHED,
};
use super::random_changes;
use super::random_classes::classes;
use super::tasks::{TaskCase, queue_pair};

/// The task graph of `seed`. Over consecutive seeds below [`SWIFT`] all congestion controls but Swift come in turn; from there to [`SELECTIVE`] all have it. From [`CHANGES`] on links fail; from [`SLOW`] on some are slow, and a few fail. From [`CLASSES`] on there are traffic classes; from
/// [`IMPAIRED`] on rates change and links lose packets; from [`MOVING`] on ports fail and move instead.
pub fn case(first_seed: u64) -> TaskCase {
    let cc = match first_seed {
        ..SWIFT => [Cc::None, Cc::Dcqcn, Cc::Hpcc, Cc::Timely, Cc::Dctcp][(first_seed % 5) as usize],
        SWIFT..SELECTIVE => Cc::Swift,
        _ => CONTROLS[(first_seed % 6) as usize],
    };
    let mut rng = Rng::new(first_seed ^ 0x7461_736b);
    // What else a case with impaired links, or with ports that move, has.
    let is_moving = (MOVING..WATCHED).contains(&first_seed);
    let is_impaired = first_seed >= IMPAIRED;
    let seed = if is_impaired { rng.pick(&[0, SELECTIVE, UEC, ADAPTIVE, CLASSES]) } else { first_seed };
    let clock_ps = rng.pick(&[1, 1000]);
    let mut network = match seed {
        ADAPTIVE..CLASSES => random::several_ways(&mut rng, clock_ps),
        _ => random::network(&mut rng, clock_ps),
    };
    if is_moving {
        random_changes::second_ports(&mut rng, &mut network, clock_ps);
    } else if rng.chance(25) {
        second_nics(&mut rng, &mut network);
    }
    if (SLOW..UEC).contains(&seed) || seed >= UEC && rng.chance(30) {
        network.slow_arcs = random_changes::slow_arcs(&mut rng, &network);
    }
    if rng.chance(25) {
        // Two ranks a host, in this order.
        network.ranks = network.ranks.iter().flat_map(|&host| [host, host]).collect();
    }
    let mut flows = if rng.chance(50) { Vec::new() } else { plain_flows(&mut rng, &network, clock_ps) };
    let first_qp = flows.len();
    let pairs = queue_pairs(&mut rng, &network);
    for qp in &pairs {
        flows.push(queue_pair(flows.len() as u32, qp.src, qp.dst));
    }
    let paths = match seed {
        ADAPTIVE..CLASSES => random::all_paths(&mut rng, &network, &flows),
        _ => random::paths(&mut rng, &network, &flows),
    };
    let mut transport = random::transport(&mut rng, &network, cc, clock_ps);
    if rng.chance(60) {
        // Messages are short: only low thresholds have something marked while a queue pair lives on.
        let kmin_bytes = rng.range(300, 4_000);
        let kmax_bytes = if cc == Cc::Dctcp || rng.chance(30) { kmin_bytes } else { kmin_bytes + rng.range(1, 20_000) };
        transport.ecn_per_100g = EcnThresholds { kmin_bytes, kmax_bytes, ..transport.ecn_per_100g };
        transport.ecn_by_rate.clear();
        transport.ecn = true;
    }
    if rng.chance(30) {
        let largest = (transport.payload + transport.data_overhead).max(transport.ack_bytes);
        transport.pfc = rng.chance(30);
        let least = if transport.pfc { 0 } else { 5_000 };
        transport.buffer_bytes =
            random::fixed_part(&network, largest, transport.pfc) + rng.pick(&[least, 10_000, 50_000]);
    }
    if seed >= CLASSES {
        classes(&mut rng, &network, &mut transport, &mut flows);
    }
    let some_in_any_order = (CHANGES..UEC).contains(&seed) || seed >= CLASSES;
    if (SELECTIVE..CHANGES).contains(&seed) || some_in_any_order && rng.chance(40) {
        random::any_order(&mut rng, &mut transport);
    }
    let mut rtt = random::rtt(&network, &paths, &transport);
    if (UEC..ADAPTIVE).contains(&seed) || (ADAPTIVE..CLASSES).contains(&seed) && rng.chance(30) {
        random::port_queues(&mut rng, &mut transport, &mut rtt);
    }
    if (ADAPTIVE..CLASSES).contains(&seed) {
        random::adaptive(&mut rng, &mut transport);
    }
    let mut case = Case { network, flows, paths, transport, rtt, changes: Vec::new() };
    let graph = Maker {
        first_qp,
        case: &case,
        rng: &mut rng,
        clock_ps,
        graph: TaskGraph { qps: pairs, ..TaskGraph::default() },
    }
    .make();
    let release_ps = rng.pick(&[200_000, 1_000_000, 333_333]);
    let fresh_qp = rng.chance(40);
    if is_moving {
        random_changes::break_ports(&mut rng, &mut case, first_qp);
    } else if (CHANGES..SLOW).contains(&seed) || seed >= SLOW && rng.chance(20) {
        random_changes::break_links(&mut rng, &mut case);
    }
    if is_impaired && !is_moving {
        random_changes::impair_links(&mut rng, &mut case);
    }
    TaskCase { case, graph, first_qp, release_ps, fresh_qp }
}

/// Gives some hosts a second link, to any switch.
fn second_nics(rng: &mut Rng, network: &mut Network) {
    let switches: Vec<u32> =
        (0..network.nodes.len() as u32).filter(|&v| network.nodes[v as usize].kind == NodeKind::Switch).collect();
    for &host in &network.ranks {
        if rng.chance(50) {
            let like = network.links[rng.range(0, network.links.len() as u64 - 1) as usize].clone();
            network.links.push(Link { a: host, b: rng.pick(&switches), ..like });
        }
    }
}

fn plain_flows(rng: &mut Rng, network: &Network, clock_ps: u64) -> Vec<hyperfold_llm::workload::Flow> {
    let mut flows = random::flows(rng, network.ranks.len() as u64, clock_ps);
    flows.retain(|f| network.ranks[f.src_rank as usize] != network.ranks[f.dst_rank as usize]);
    flows.truncate(12);
    for (id, flow) in flows.iter_mut().enumerate() {
        flow.id = id as u32;
    }
    flows
}

fn queue_pairs(rng: &mut Rng, network: &Network) -> Vec<QueuePair> {
    let ranks = network.ranks.len() as u64;
    let incast = rng.chance(40).then(|| rng.range(0, ranks - 1) as u32);
    let mut pairs = Vec::new();
    for lane in 0..rng.range(1, 12) as u32 {
        let dst = incast.unwrap_or_else(|| rng.range(0, ranks - 1) as u32);
        let src = loop {
            let src = rng.range(0, ranks - 1) as u32;
            if network.ranks[src as usize] != network.ranks[dst as usize] {
                break src;
            }
        };
        pairs.push(QueuePair { src, dst, lane, dim: Dim::Other });
    }
    pairs
}

struct Maker<'a> {
    case: &'a Case,
    first_qp: usize,
    rng: &'a mut Rng,
    clock_ps: u64,
    graph: TaskGraph,
}

impl Maker<'_> {
    fn make(mut self) -> TaskGraph {
        self.tasks();
        self.edges();
        self.gates();
        self.graph
    }

    fn tasks(&mut self) {
        let n = if self.rng.chance(20) { self.rng.range(1, 4) } else { self.rng.range(4, 70) };
        let ranks = self.case.network.ranks.len() as u64;
        let payload = self.case.transport.payload as u64;
        let messages = self.rng.pick(&[30, 60, 90]);
        // Two lengths that many tasks share.
        let usual = [self.time(20_000_000), self.time(2_000_000)];
        let largest = self.rng.pick(&[2_000, 20_000, 200_000, 400_000]);
        let heavy = self.rng.chance(25);
        // Few ranks make few NICs, on which more happens at once.
        let ranks = if self.rng.chance(40) { ranks.min(2) } else { ranks };
        for _ in 0..n {
            let delay_ps = match self.rng.range(0, 9) {
                0..=4 => 0,
                5..=7 => self.rng.pick(&usual),
                8 => self.rng.range(1, 1_000_000),
                _ => self.time(60_000_000),
            };
            if self.rng.chance(messages) {
                let qp = self.rng.range(0, self.graph.qps.len() as u64 - 1) as u32;
                let bytes = match self.rng.range(0, 9) {
                    0..=6 if heavy => self.rng.range(1, largest),
                    0 | 1 => 1,
                    2 => payload,
                    3 => payload + 1,
                    4 => payload * self.rng.range(1, 5),
                    5..=7 => self.rng.range(1, 5_000),
                    _ => self.rng.range(1, largest),
                };
                let rank = self.graph.qps[qp as usize].src;
                self.graph.task(rank, delay_ps, Work::Message { qp, bytes });
            } else {
                let rank = self.rng.range(0, ranks - 1) as u32;
                self.graph.task(rank, delay_ps, Work::Delay);
            }
        }
    }

    /// Up to `most`, in whole ticks of the clock.
    fn time(&mut self, most: u64) -> u64 {
        self.rng.range(1_000, most) / self.clock_ps * self.clock_ps
    }

    fn nic(&self, rank: u32) -> ArcIdx {
        let net = &self.case.network;
        let arcs = &net.out_arcs()[net.ranks[rank as usize] as usize];
        arcs[0]
    }

    /// NIC on which a moment of a task is known.
    fn at(&self, task: u32, when: EdgeMoment) -> ArcIdx {
        let task = &self.graph.tasks[task as usize];
        match task.work {
            Work::Delay => self.nic(task.rank),
            Work::Message { qp, .. } => {
                let paths = &self.case.paths[self.first_qp + qp as usize];
                if when == EdgeMoment::Got { paths.ack[0][0] } else { paths.data[0][0] }
            }
        }
    }

    fn moment(&mut self, below: u32) -> (u32, EdgeMoment) {
        let from = self.rng.range(0, below as u64 - 1) as u32;
        let message = matches!(self.graph.tasks[from as usize].work, Work::Message { .. });
        (from, if message && self.rng.chance(60) { EdgeMoment::Got } else { EdgeMoment::Done })
    }

    fn edges(&mut self) {
        let dense = self.rng.pick(&[1, 2, 4]);
        let across = self.rng.pick(&[0, 0, 10, 40]);
        for to in 1..self.graph.tasks.len() as u32 {
            for _ in 0..self.rng.range(0, dense) {
                let (mut from, mut when) = self.moment(to);
                let nic = self.at(to, EdgeMoment::Done);
                // Most of what waits waits for something on its own NIC.
                let mut tries = if self.rng.chance(across) { 0 } else { 12 };
                while tries > 0 && self.at(from, when) != nic {
                    (from, when) = self.moment(to);
                    tries -= 1;
                }
                if self.at(from, when) == nic || tries == 0 && across > 0 {
                    self.graph.edges.push(Edge { from, when, to: Target::Task(to) });
                }
            }
        }
        // The order of edges decides the order of posts.
        for i in (1..self.graph.edges.len()).rev() {
            let j = self.rng.range(0, i as u64) as usize;
            self.graph.edges.swap(i, j);
        }
    }

    fn gates(&mut self) {
        let n = self.graph.tasks.len() as u64;
        if n < 2 || self.rng.chance(40) {
            return;
        }
        self.graph.servers = self.rng.range(0, 2) as u32;
        let usual = [0, self.time(2_000_000), self.time(20_000_000)];
        let latencies = [1_000_000, 200_000, self.time(5_000_000)];
        let tiny = self.rng.chance(4);
        for _ in 0..self.rng.range(1, 10) {
            let server = (self.graph.servers > 0 && self.rng.chance(70))
                .then(|| self.rng.range(0, self.graph.servers as u64 - 1) as u32);
            let serial_ps = self.rng.pick(&usual);
            let latency_ps = if tiny { self.rng.range(1, 500) } else { self.rng.pick(&latencies) };
            let gate = self.graph.gate(server, serial_ps, latency_ps);
            let middle = self.rng.range(1, n - 1) as u32;
            for _ in 0..self.rng.range(1, 4) {
                let (from, when) = self.moment(middle);
                self.graph.edges.push(Edge { from, when, to: Target::Gate(gate) });
            }
            for _ in 0..self.rng.range(0, 4) {
                let task = self.rng.range(middle as u64, n - 1) as u32;
                self.graph.release(gate, task);
            }
        }
    }
}
