//! From a configuration to a case that can run: network, flows, paths, transport, tables.
//!
//! Layer: batch. Reads the files an experiment names; simulates nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use crate::budget::{self, OverBudget, Unfinished};
use crate::collective::Env;
use crate::columns::{FlowIdx, NEVER, TaskIdx, mode};
use crate::cost::{self, Bill};
use crate::isolation::isolated;
use crate::routing::{
    self, FlowPaths, PayloadClock, RouteFile, Router, flow_rtt_window, global_rtt_window, is_intra_server,
};
use crate::spec::{self, CdfChoice, Config, Pattern, PolicyChoice, TopologyKind, WorkloadSection};
use crate::topology::{
    self, ArcIdx, Clos, Fabric, FatTree, Link, Network, Node, NodeKind, NvLink, RailOnly, RailOptimized,
    TopologyFormat, text,
};
use crate::transport::{RttWindow, Transport};
use crate::units::{PS_PER_S, tx_ps};
use crate::workload::tasks::QueuePair;
use crate::workload::{self, AllToAll, Cdf, FIRST_SPORT, Flow, Incast, Permutation, Poisson, Ring};

use super::build::{Built, build_sharing};
use super::error::{JobError, PrepareError};
use super::host_memory::world_bytes;
use super::job::{self, Job, RanksWithTasks};
use super::job_cache;
use super::packet_case::{BuildOptions, GraphCase, PacketCase};
use super::servers::{self, Described};
use super::training::{self as setup, TrainingSetup};

/// RoCE's port, as flow files of the reference have it; only ECMP's hash sees it.
const QP_DPORT: u16 = 100;
/// A link's name on the heap, about.
const NAME_BYTES: usize = 64;
/// Sizes of messages remembered for each queue pair: looked through one by one.
const SIZES_KNOWN: usize = 8;
/// RTT samples kept a flow where rtt.csv is asked for.
const RTT_SAMPLES: u32 = 256;

/// A flow as results name it.
#[derive(Clone, Debug)]
pub struct FlowInfo {
    pub id: u32,
    /// The file's host ids, or GPU ranks.
    pub src: u32,
    pub dst: u32,
    pub bytes: u64,
    pub start_ps: u64,
    /// Completion time on an idle network.
    pub ideal_ps: u64,
    pub carried: FlowCarrier,
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowCarrier {
    /// It stays inside a server and takes `ideal_ps`.
    Inside,
    /// A queue pair of its own, by its row.
    Alone(FlowIdx),
    /// A message, by its task's row: its start is when it was posted.
    Message(TaskIdx),
}

/// An experiment ready for the engine.
pub struct Prepared {
    pub built: Built,
    pub flows: Vec<FlowInfo>,
    /// Names of links by link end, `host3->leaf0`.
    pub network: Network,
    /// The program behind the flows, if there is one.
    pub job: Option<Arc<Job>>,
    /// Packet-hops that carrying every packet once takes: what a plan can say of the time.
    pub packet_hops: u64,
    /// What the cluster costs and draws.
    pub bill: Bill,
    /// What the user should know about the inputs.
    pub notes: Vec<String>,
}

impl Prepared {
    /// About how many bytes of the host's memory it takes while it is simulated and its results are written: twice what it takes in a batch (measured:
    /// 19.6 GiB for 16.8 million flows between 4,096 hosts, of which tables are 9.9).
    pub fn peak_bytes(&self) -> u64 {
        2 * self.host_bytes()
    }

    /// Bytes of its rows in the world, with what the world keeps of each.
    pub fn row_bytes(&self) -> u64 {
        let t = &self.built.tables;
        let flows = size_of_val(&*t.flow_tx) + size_of_val(&*t.flow_rx) + size_of_val(&*t.tasks);
        let nodes = size_of_val(&*t.nics) + size_of_val(&*t.ports) + size_of_val(&*t.switches);
        (flows + nodes) as u64 + world_bytes(t)
    }

    /// About how many bytes of the host's memory it takes in a batch: its tables, what the world keeps of each row, what results are read off with. Not what it grows
    /// while it is simulated, which few of a batch are at a time.
    pub fn host_bytes(&self) -> u64 {
        let tables = &self.built.tables;
        // A job that several experiments share is nobody's.
        let job = self.job.as_ref().filter(|job| Arc::strong_count(job) == 1).map_or(0, |job| job.bytes());
        let names = self.built.end_arcs.len() * NAME_BYTES;
        tables.bytes() + world_bytes(tables) + job + (self.flows.len() * size_of::<FlowInfo>() + names) as u64
    }
}

/// Whether what an experiment trains fits its GPUs' memory; costs microseconds, and nothing for other workloads.
///
/// # Errors
/// [`PrepareError::Oom`] with peak and breakdown, or why the model, its layout or the GPU cannot be had.
pub fn fits(config: &Config) -> Result<(), PrepareError> {
    match &config.workload {
        WorkloadSection::Program(p) => match &p.source {
            spec::Source::Model(training) => TrainingSetup::new(config, training).map(drop),
            _ => Ok(()),
        },
        WorkloadSection::Traffic { pattern, ranks } => match ranks.or(config.cluster.gpus) {
            Some(ranks) => few_enough(pattern, u64::from(ranks)),
            // As many as the topology's file has.
            None => Ok(()),
        },
        WorkloadSection::Flows { .. } => Ok(()),
    }
}

/// Whether so many flows are supported and fit into memory, as far as that is known without making them.
fn few_enough(pattern: &Pattern, ranks: u64) -> Result<(), PrepareError> {
    let flows = match pattern {
        Pattern::Incast { fan_in: 0, receivers, .. } => ranks.saturating_sub(1).saturating_mul(u64::from(*receivers)),
        Pattern::Incast { fan_in, receivers, .. } => u64::from(*fan_in) * u64::from(*receivers),
        Pattern::AllToAll { .. } => ranks * ranks.saturating_sub(1),
        Pattern::Permutation { .. } | Pattern::Ring { .. } => ranks,
        Pattern::Poisson { .. } => 0,
    };
    if flows > u64::from(workload::MAX_FLOWS) {
        return Err(PrepareError::TooManyFlows { flows, ranks });
    }
    let (wanted, allowance) = (flows * workload::BYTES_A_FLOW, budget::total());
    if wanted > allowance {
        return Err(PrepareError::Memory(OverBudget { wanted, allowance, what: "flows" }));
    }
    Ok(())
}

/// An experiment's network, and everything that is sent over it with its paths.
pub(super) struct Routed<'c> {
    /// With what a description of its servers says.
    pub config: Cow<'c, Config>,
    pub network: Network,
    /// Flows, or a program's queue pairs; those that cross the network as packets have paths.
    pub flows: Vec<Flow>,
    pub job: Option<Arc<Job>>,
    pub transport: Transport,
    packet_flows: Vec<Flow>,
    pub paths: Vec<FlowPaths>,
    /// Index of each flow's paths.
    pub packet_of: Vec<Option<usize>>,
    pub rtt: Vec<RttWindow>,
    pub bill: Bill,
    pub notes: Vec<String>,
}

/// Reads, generates and routes; builds no tables.
pub(super) fn routed(config: &Config) -> Result<Routed<'_>, PrepareError> {
    routed_with(config, RanksWithTasks::Representatives)
}

fn routed_with(config: &Config, ranks: RanksWithTasks) -> Result<Routed<'_>, PrepareError> {
    fits(config)?;
    let mut notes = Vec::new();
    let described = servers::described(config)?;
    let applied = servers::applied(config, described.as_ref())?;
    let config = &*applied;
    let mut network = network(config, described.as_ref(), &mut notes)?;
    let bill = bill(config, &network)?;
    if config.cluster.nvlink_packets {
        nvlink_as_packets(&mut network);
    }
    let (flows, job) = match &config.workload {
        WorkloadSection::Program(program) => {
            let job = job_cache::job(config, program, &network, described.as_ref(), ranks, &mut notes)?;
            (queue_pairs(&job), Some(job))
        }
        _ => (flows(config, &network, &mut notes)?, None),
    };
    one_class(&flows)?;
    let mut transport = config.transport(first_host_rate(&network))?;
    let router = Router::new(&network);
    let routes = match &config.routing.policy {
        PolicyChoice::File { path } => Some(route_file(path, &network, &flows)?),
        _ => None,
    };
    let policy = match (&config.routing.policy, &routes) {
        (PolicyChoice::Spray { max_paths }, _) => {
            routing::Policy::Spray { seed: config.routing.seed, max_paths: *max_paths }
        }
        (_, Some(file)) => routing::Policy::File(file),
        _ => routing::Policy::Ecmp { seed: config.routing.seed },
    };
    let mut packet_flows: Vec<Flow> = Vec::with_capacity(flows.len());
    let mut paths: Vec<FlowPaths> = Vec::with_capacity(flows.len());
    let mut packet_of: Vec<Option<usize>> = Vec::with_capacity(flows.len());
    for flow in &flows {
        budget::check("paths of its flows");
        if is_intra_server(&network, flow) {
            packet_of.push(None);
        } else {
            paths.push(match inside_path(&network, flow) {
                Some(paths) => paths,
                // Queue pairs of a connection take the links of their NICs in turn.
                None => router.paths_from(flow, policy, job.as_ref().map(|j| j.graph.qps[flow.id as usize].lane))?,
            });
            packet_of.push(Some(packet_flows.len()));
            packet_flows.push(flow.clone());
        }
    }
    let packet = PayloadClock { payload: transport.payload, clock_ps: transport.clock_ps };
    let own: Vec<RttWindow> = paths.iter().map(|p| flow_rtt_window(&network, p, packet)).collect();
    retransmission_timeout(config, &mut transport, &own, &mut notes);
    let rtt = if transport.global_rtt && !packet_flows.is_empty() {
        vec![global_rtt_window(&router, packet); packet_flows.len()]
    } else {
        own.clone()
    };
    drop(router);
    Ok(Routed { config: applied, network, flows, job, transport, packet_flows, paths, packet_of, rtt, bill, notes })
}

/// Prepares one experiment within `allowance` bytes of memory, or fewer where its own limit says so. A panic is its failure.
///
/// # Errors
/// As [`prepare`]; [`PrepareError::Memory`], [`PrepareError::Defect`].
pub fn prepare_within(config: &Config, exp_id: u32, allowance: u64) -> Result<Prepared, PrepareError> {
    let prepared = guarded(config, allowance, || prepare(config, exp_id))?;
    can_run(config, &prepared)?;
    Ok(prepared)
}

/// Whether there is memory to simulate what was prepared.
///
/// # Errors
/// [`PrepareError::Memory`].
pub(super) fn can_run(config: &Config, prepared: &Prepared) -> Result<(), PrepareError> {
    let allowance = config.limits.memory_bytes.unwrap_or(u64::MAX).min(budget::total());
    let wanted = prepared.peak_bytes();
    if wanted > allowance {
        return Err(PrepareError::Memory(OverBudget {
            wanted,
            allowance,
            what: "tables, and what is written of them",
        }));
    }
    Ok(())
}

/// Runs one step of preparing an experiment within `allowance` bytes of memory, or fewer where its own limit says so. A panic is its failure.
pub(super) fn guarded<T>(
    config: &Config,
    allowance: u64,
    work: impl FnOnce() -> Result<T, PrepareError>,
) -> Result<T, PrepareError> {
    let allowance = config.limits.memory_bytes.map_or(allowance, |most| most.min(allowance));
    let ended = isolated(|| budget::within(allowance, work)).map_err(PrepareError::Defect)?;
    match ended {
        Ok((made, _)) => made,
        Err(Unfinished::OverBudget(over)) => Err(PrepareError::Memory(over)),
        Err(Unfinished::Interrupted) => Err(PrepareError::Interrupted),
    }
}

/// Prepares one experiment.
pub fn prepare(config: &Config, exp_id: u32) -> Result<Prepared, PrepareError> {
    tabled(routed(config)?, exp_id)
}

/// Prepares one experiment with tasks for every rank, also where one could stand for others.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_every_rank(config: &Config, exp_id: u32) -> Result<Prepared, PrepareError> {
    tabled(routed_with(config, RanksWithTasks::Every)?, exp_id)
}

/// Builds the tables of one experiment.
pub(super) fn tabled(routed: Routed, exp_id: u32) -> Result<Prepared, PrepareError> {
    let Routed { config, network, flows, job, transport, packet_flows, paths, packet_of, rtt, bill, notes } = routed;
    let config = &*config;
    let options = BuildOptions {
        exp_id,
        links: config.output.links,
        rtt_cap: if config.output.rtt { RTT_SAMPLES } else { 0 },
        step_divisor: 1,
        time_limit_ps: config.limits.sim_ps.unwrap_or(u64::MAX),
    };
    // An edge between two NICs of a host is as quick as the quickest link.
    let release_ps = network.links.iter().filter(|l| network.is_packet_link(l)).map(|l| l.delay_ps).min().unwrap_or(1);
    let graph =
        job.as_ref().map(|j| GraphCase { graph: &j.graph, first_qp: 0, release_ps, fresh_qp: config.fresh_qp() });
    let case = PacketCase {
        network: &network,
        flows: &packet_flows,
        paths: &paths,
        rtt: &rtt,
        transport: &transport,
        graph,
        options,
    };
    let mut built = build_sharing(&case, job.as_ref().and_then(|j| j.rows.as_ref()))?;
    if let Some(memo) = config.folding() {
        let e = &mut built.tables.exps[0];
        e.modes |= mode::FOLD | if memo { mode::MEMO } else { 0 };
        if let Some(steady) = config.steady().filter(|_| job.is_some()) {
            e.modes |= mode::STEADY | (steady.metric << mode::METRIC_SHIFT);
            (e.theta_ppm, e.samples, e.interval_ns, e.audit_ppm) =
                (steady.theta_ppm, steady.samples, steady.interval_ns, steady.audit_ppm);
        }
    }
    let from_file = matches!(config.topology.kind, TopologyKind::File { .. }) && job.is_none();
    let name = |rank: u32| if from_file { network.nodes[network.ranks[rank as usize] as usize].id } else { rank };
    let infos: Vec<FlowInfo> = match &job {
        Some(job) => messages(job, &network, &paths, &transport),
        None => flows
            .iter()
            .zip(&packet_of)
            .map(|(f, packet)| FlowInfo {
                id: f.id,
                src: name(f.src_rank),
                dst: name(f.dst_rank),
                bytes: f.bytes,
                start_ps: f.start_ps,
                ideal_ps: match packet {
                    Some(i) => ideal_ps(f.bytes, &network, &paths[*i], &transport),
                    None => nvlink_ps(f.bytes, &network),
                },
                carried: packet.map_or(FlowCarrier::Inside, |i| FlowCarrier::Alone(built.flow_rows[i])),
            })
            .collect(),
    };
    let hops = |bytes: u64, p: &FlowPaths| {
        bytes.div_ceil(transport.payload as u64) * (p.data[0].len() + p.ack[0].len()) as u64
    };
    let packet_hops = match &job {
        Some(job) => job.graph.messages().map(|(_, qp, bytes)| hops(bytes, &paths[qp as usize])).sum(),
        None => packet_flows.iter().zip(&paths).map(|(f, p)| hops(f.bytes, p)).sum(),
    };
    Ok(Prepared { built, flows: infos, network, job, packet_hops, bill, notes })
}

/// An experiment's network alone, what is known of its servers, and what its cluster costs.
pub(super) fn network_of(config: &Config) -> Result<(Network, Option<Described>, Bill), PrepareError> {
    let described = servers::described(config)?;
    let config = &*servers::applied(config, described.as_ref())?;
    let network = network(config, described.as_ref(), &mut Vec::new())?;
    let bill = bill(config, &network)?;
    Ok((network, described, bill))
}

fn bill(config: &Config, network: &Network) -> Result<Bill, PrepareError> {
    let generated = !matches!(config.topology.kind, TopologyKind::File { .. });
    let gpus = network.ranks.len() as u64;
    let gpu = setup::gpu(&config.cluster.gpu)?;
    Ok(cost::bill(&cost::parts(network, gpus, generated), &gpu.name, config.cluster.server, &config.cost)?)
}

/// Queue pairs as flows that have nothing to send by themselves.
fn queue_pairs(job: &Job) -> Vec<Flow> {
    let mut of_pair: HashMap<(u32, u32), u16> = HashMap::new();
    let flow = |(id, qp): (usize, &QueuePair)| {
        let nth = of_pair.entry((qp.src, qp.dst)).or_insert(0);
        let sport = FIRST_SPORT.wrapping_add(*nth);
        *nth = nth.wrapping_add(1);
        Flow {
            id: id as u32,
            src_rank: qp.src,
            dst_rank: qp.dst,
            bytes: 0,
            start_ps: NEVER,
            sport,
            dport: QP_DPORT,
            priority: 0,
        }
    };
    job.graph.qps.iter().enumerate().map(flow).collect()
}

/// What results name as flows: messages, in the order of tasks.
fn messages(job: &Job, net: &Network, paths: &[FlowPaths], transport: &Transport) -> Vec<FlowInfo> {
    // Of each queue pair the sizes that it carries, which are few, and what they take.
    let mut ideal: Vec<Vec<(u64, u64)>> = vec![Vec::new(); job.graph.qps.len()];
    let mut ideal_of = |qp: u32, bytes: u64| {
        let known = &mut ideal[qp as usize];
        if let Some(&(_, ps)) = known.iter().find(|k| k.0 == bytes) {
            return ps;
        }
        let ps = ideal_ps(bytes, net, &paths[qp as usize], transport);
        if known.len() < SIZES_KNOWN {
            known.push((bytes, ps));
        }
        ps
    };
    let info = |(id, (task, qp, bytes)): (usize, (u32, u32, u64))| {
        let ends = job.graph.qps[qp as usize];
        FlowInfo {
            id: id as u32,
            src: ends.src,
            dst: ends.dst,
            bytes,
            start_ps: 0,
            ideal_ps: ideal_of(qp, bytes),
            carried: FlowCarrier::Message(TaskIdx(task)),
        }
    };
    job.graph.messages().enumerate().map(info).collect()
}

/// Gives every server a switch of its own between its GPUs, at NVLink's rate and latency, and packets instead of times.
fn nvlink_as_packets(net: &mut Network) {
    let Some(nvlink) = net.nvlink.take() else { return };
    let mut next_id = net.nodes.iter().map(|n| n.id).max().map_or(0, |id| id + 1);
    let mut servers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (v, node) in net.nodes.iter().enumerate() {
        if node.kind == NodeKind::Host {
            servers.entry(node.server).or_default().push(v as u32);
        }
    }
    // NVSwitches of a file, which no packet crosses, stay beside them without effect.
    for (server, hosts) in servers.into_iter().filter(|(_, hosts)| hosts.len() > 1) {
        let switch = net.nodes.len() as u32;
        net.nodes.push(Node { kind: NodeKind::Switch, id: next_id, server });
        next_id += 1;
        let delay_ps = (nvlink.latency_ps / 2).max(1);
        net.links.extend(hosts.iter().map(|&a| Link { a, b: switch, rate_bps: nvlink.rate_bps, delay_ps }));
    }
}

/// The path over the server's own switch, where NVLink carries packets: two switches may join two GPUs equally well.
fn inside_path(net: &Network, flow: &Flow) -> Option<FlowPaths> {
    let (a, b) = (net.ranks[flow.src_rank as usize], net.ranks[flow.dst_rank as usize]);
    let server = net.nodes[a as usize].server;
    if a == b || net.nodes[b as usize].server != server {
        return None;
    }
    // Only a server's own switch bears its number.
    let link_of = |host: u32| {
        net.links.iter().rposition(|l| {
            l.a == host && net.nodes[l.b as usize].kind == NodeKind::Switch && net.nodes[l.b as usize].server == server
        })
    };
    let (up, down) = (2 * link_of(a)? as ArcIdx, 2 * link_of(b)? as ArcIdx);
    Some(FlowPaths { data: vec![vec![up, down ^ 1]], ack: vec![vec![down, up ^ 1]] })
}

/// Rate of the first host's first link that packets cross.
fn first_host_rate(net: &Network) -> u64 {
    let host = net.ranks.iter().copied().min().unwrap_or(0);
    net.links
        .iter()
        .filter(|l| net.is_packet_link(l))
        .find(|l| l.a == host || l.b == host)
        .map_or(100_000_000_000, |l| l.rate_bps)
}

/// Completion time on an idle network at line rate: all packets one behind the other over every link of the path, store and forward, until the last is
/// whole at the receiver, and its acknowledgement back. Whichever link makes the packets wait most decides. No flow is faster.
pub(super) fn ideal_ps(bytes: u64, net: &Network, paths: &FlowPaths, tr: &Transport) -> u64 {
    let packets = bytes.div_ceil(tr.payload as u64);
    let last = (bytes - (packets - 1) * tr.payload as u64) as u32 + tr.data_overhead;
    let full = tr.payload + tr.data_overhead;
    let first = if packets > 1 { full } else { last };
    let over = |arc: ArcIdx, wire: u32| tx_ps(wire, net.arc_link(arc).rate_bps, tr.clock_ps);
    let delay = |arc: ArcIdx| net.arc_link(arc).delay_ps;
    let path = &paths.data[0];
    let data = (0..path.len()).map(|slowest| {
        let before: u64 = path[..=slowest].iter().map(|&a| over(a, first) + delay(a)).sum();
        let behind = match packets {
            1 => 0,
            n => (n - 2) * over(path[slowest], full) + over(path[slowest], last),
        };
        let after: u64 = path[slowest + 1..].iter().map(|&a| over(a, last) + delay(a)).sum();
        before + behind + after
    });
    let back: u64 = paths.ack[0].iter().map(|&a| over(a, tr.ack_bytes) + delay(a)).sum();
    data.max().unwrap_or(0) + back
}

/// The retransmission timeout: what `transport.rto_us` says, or if it says nothing at least four base round trips, so that a long network does not time out by itself.
fn retransmission_timeout(config: &Config, transport: &mut Transport, own: &[RttWindow], notes: &mut Vec<String>) {
    let longest = own.iter().map(|w| w.rtt_ps).max().unwrap_or(0);
    if config.default_rto() {
        transport.rto_ps = transport.rto_ps.max(4 * longest);
    } else if transport.rto_ps <= longest {
        notes.push(format!(
            "transport.rto_us = {} is not above the longest base round trip, {} us: flows will send everything again and may give up; use at least {} us, or 0 to have it chosen",
            transport.rto_ps / 1_000_000,
            longest.div_ceil(1_000_000),
            (2 * longest).div_ceil(1_000_000)
        ));
    }
}

/// Completion time inside a server: out, across and the acknowledgement back.
pub(super) fn nvlink_ps(bytes: u64, net: &Network) -> u64 {
    let Some(NvLink { rate_bps, latency_ps }) = net.nvlink else { return 0 };
    2 * latency_ps + (bytes as u128 * 8 * PS_PER_S as u128 / rate_bps.max(1) as u128) as u64
}

fn network(config: &Config, described: Option<&Described>, notes: &mut Vec<String>) -> Result<Network, PrepareError> {
    let (c, t) = (&config.cluster, &config.topology);
    let over = t.oversubscription_milli;
    if let TopologyKind::File { path, format } = &t.kind {
        let format = match format {
            spec::TopologyFormatChoice::Ns3 => TopologyFormat::Ns3,
            spec::TopologyFormatChoice::SimAi => TopologyFormat::Simai,
            spec::TopologyFormatChoice::Htsim => TopologyFormat::Htsim,
        };
        let file = topology::read_topology(path, format)?;
        if file.left_out > 0 {
            notes.push(format!("{}: {} lines after the announced ones were left out", path.display(), file.left_out));
        }
        let found = file.network.ranks.len() as u32;
        if let Some(asked) = c.gpus.filter(|&n| n != found) {
            return Err(PrepareError::Gpus { asked, found });
        }
        return Ok(file.network);
    }
    let gpus = match (c.gpus, &config.workload) {
        (Some(gpus), _) => gpus,
        (None, WorkloadSection::Program(program)) => whole_servers(job::ranks_needed(program), c.gpus_per_server),
        (None, _) => c.gpus_per_server,
    };
    let fabric = Fabric {
        gpus,
        gpus_per_server: c.gpus_per_server,
        nics_per_server: c.nics_per_server,
        nic_ports: c.nic_ports,
        link_bps: t.link_bps,
        uplink_bps: t.uplink_bps,
        link_delay_ps: t.link_delay_ps,
        switch_latency_ps: t.switch_latency_ps,
        nvlink: (c.nvlink_bps > 0).then_some(NvLink { rate_bps: c.nvlink_bps, latency_ps: c.nvlink_latency_ps }),
    };
    let servers = gpus.div_ceil(c.gpus_per_server.max(1));
    let mut network = match t.kind {
        TopologyKind::FatTree { k } => FatTree { k }.build(&fabric)?,
        TopologyKind::Clos { tiers, hosts_per_leaf, spines, pods, cores } => {
            Clos { tiers, hosts_per_leaf, spines, pods, cores, oversubscription: over }.build(&fabric)?
        }
        TopologyKind::RailOptimized { rails, spines, .. } => {
            RailOptimized { rails, pods: t.pods(servers), spines, oversubscription: over }.build(&fabric)?
        }
        TopologyKind::RailOnly { rails } => RailOnly { rails }.build(&fabric)?,
        TopologyKind::File { .. } => unreachable!("files were read above"),
    };
    let hca = match &config.workload {
        WorkloadSection::Program(p) => Env::parse(&p.communication.nccl).map_err(JobError::Nccl)?.hca,
        _ => None,
    };
    servers::place_ranks(&mut network, config, described, hca.as_ref())?;
    Ok(network)
}

/// GPUs of as many servers as so many ranks need, at least one server.
fn whole_servers(ranks: Option<u32>, per_server: u32) -> u32 {
    let per_server = per_server.max(1);
    ranks.unwrap_or(per_server).div_ceil(per_server).max(1).saturating_mul(per_server)
}

fn flows(config: &Config, net: &Network, notes: &mut Vec<String>) -> Result<Vec<Flow>, PrepareError> {
    let (pattern, ranks) = match &config.workload {
        WorkloadSection::Flows { path, start_unit } => {
            let unit = start_unit.map(|u| match u {
                spec::StartUnitChoice::Ns => workload::StartUnit::Ns,
                spec::StartUnitChoice::S => workload::StartUnit::S,
            });
            let file = workload::read_flows(path, net, unit)?;
            if file.left_out > 0 {
                notes.push(format!(
                    "{}: {} flows after the announced ones were left out",
                    path.display(),
                    file.left_out
                ));
            }
            return Ok(file.flows);
        }
        WorkloadSection::Program(_) => unreachable!("programs have queue pairs, not flows"),
        WorkloadSection::Traffic { pattern, ranks } => (pattern, ranks.unwrap_or(net.ranks.len() as u32)),
    };
    let seed = config.traffic_seed();
    Ok(match pattern {
        Pattern::Incast { fan_in, receivers, bytes } => {
            Incast { fan_in: *fan_in, receivers: *receivers, bytes: *bytes, seed }.flows(ranks)?
        }
        Pattern::Permutation { bytes } => Permutation { bytes: *bytes, seed }.flows(ranks)?,
        Pattern::Ring { stride, bytes } => Ring { stride: *stride, bytes: *bytes }.flows(ranks)?,
        Pattern::AllToAll { bytes } => AllToAll { bytes: *bytes }.flows(ranks)?,
        Pattern::Poisson { load_ppm, cdf, duration_ps } => {
            let cdf = match cdf {
                CdfChoice::BuiltIn(name) => {
                    Cdf::named(name).expect("the key table offers only distributions that exist")
                }
                CdfChoice::File(path) => Cdf::read(path)?,
            };
            Poisson {
                load: *load_ppm as f64 / 1e6,
                link_bps: config.topology.link_bps,
                duration_ps: *duration_ps,
                cdf,
                seed,
            }
            .flows(ranks)?
        }
    })
}

fn route_file(path: &Path, net: &Network, flows: &[Flow]) -> Result<RouteFile, PrepareError> {
    let shown = path.display().to_string();
    Ok(RouteFile::parse(&shown, &text::load_text(path)?, net, flows)?)
}

/// One traffic class: all priorities agree.
fn one_class(flows: &[Flow]) -> Result<(), PrepareError> {
    let Some(first) = flows.first() else { return Ok(()) };
    match flows.iter().find(|f| f.priority != first.priority) {
        Some(other) => {
            Err(PrepareError::Priorities { a: first.id, pa: first.priority, b: other.id, pb: other.priority })
        }
        None => Ok(()),
    }
}
