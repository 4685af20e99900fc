//! Prepares an experiment: from its configuration to a case that can run, within a memory budget.
//!
//! Layer: host. Builds tables; simulates nothing.

use std::sync::Arc;

use crate::cost::Bill;
use crate::setup::links::names::link_names;
use hyperfold_base::budget::{self, OverBudget, Unfinished};
use hyperfold_base::isolation::isolated;
use hyperfold_columns::{cc, mode, status};
use hyperfold_config::spec::{Config, Impairment, KeyId, Steady, TopologyKind};
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::Network;

use crate::estimates::worked_out::RanksWithTasks;
use crate::outcomes::flow_info::{FlowCarrier, FlowInfo, IdleNetwork, messages, nvlink_ps};
use crate::outcomes::series_outcome;
use crate::programs::job::Job;
use crate::setup::error::PrepareError;
use crate::setup::host_memory::{ENTITY_BYTES, world_bytes};
use crate::setup::links::sampled_links::sampled_ends;
use crate::setup::memory_refusal::MemoryRefusal;
use crate::setup::own_routing::named_routing_policy;
use crate::setup::pauses::pauses_in_reach;
use crate::setup::route::{Routed, routed, routed_with};
use crate::tables::build_tables::{Built, build_sharing};
use crate::tables::job_rows::{self, Crossing, JobRows, LinkShares};
use crate::tables::packet_case::{BuildOptions, GraphCase, PacketCase};

/// Approximate bytes of a link's name on the heap.
const NAME_BYTES: usize = 64;

/// Approximate bytes of a flow or message in an outcome, and of its form for writing.
pub const OUTCOME_BYTES: u64 = 96;

/// Memory that grows while packets are simulated: 1 / `GROWTH_OF` of what an experiment holds, and half of `NODE_GROWTH_HALVES` times the rows of its nodes.
/// Measured on permutations of 16,384 hosts on fat trees and on several planes, with and without congestion control.
const GROWTH_OF: u64 = 5;
const NODE_GROWTH_HALVES: u64 = 5;
/// The part that grows with folding is 1 / `FOLDED_GROWTH_OF` of what the experiment holds, besides the memo. Measured on an all-to-all of 512 ranks.
const FOLDED_GROWTH_OF: u64 = 2;

/// RTT samples kept per flow if rtt.csv is asked for.
const RTT_SAMPLES: u32 = 256;

/// An experiment with this many packet-hops is long: several seconds of a thread. Our choice.
pub const LONG_PACKET_HOPS: u64 = 100_000_000;

/// An experiment ready for the engine.
pub struct Prepared {
    /// Its tables, and what their rows stand for.
    pub built: Built,
    /// Its flows and messages, as results name them.
    pub flows: Vec<FlowInfo>,
    /// The network, from which links are named, as in `host3->leaf0`; empty if no link will be named.
    pub network: Network,
    /// The program behind the flows, if there is one; with several jobs, all programs joined.
    pub job: Option<Arc<Job>>,
    /// Rows of each of several jobs; else empty.
    pub jobs: Vec<JobRows>,
    /// Links that several jobs share, if the configuration asks for them.
    pub shared_links: Vec<LinkShares>,
    /// Packet-hops if every packet is carried once: an estimate of the simulation's length.
    pub packet_hops: u64,
    /// Costs and power of the cluster.
    pub bill: Bill,
    /// Notes for the user about the inputs.
    pub notes: Vec<String>,
}

/// The parts of an experiment's memory, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySize {
    /// What it holds in a batch, as [`Prepared::host_bytes`] says.
    pub held: u64,
    /// What the world keeps besides rows, a part of `held`.
    pub world: u64,
    /// Its rows and what the world keeps for them, a part of `held`.
    pub rows: u64,
    /// Rows of its largest table. They exist twice while they move into the world.
    pub twice: u64,
    /// What grows while it is simulated.
    pub growing: u64,
    /// Its NICs, ports and switches, a part of `held`.
    pub nodes: u64,
    /// Its queue pairs and their paths, a part of `held`.
    pub flows: u64,
}

impl Prepared {
    /// Approximate host memory while it moves into the world or is simulated, and its results are written, bytes. Samples over time come on top.
    pub fn peak_bytes(&self) -> u64 {
        let size = self.memory_size();
        let grown = size.held.saturating_add(size.growing.max(size.twice));
        let outcomes = self.flows.len() as u64 * OUTCOME_BYTES;
        grown.saturating_add(outcomes).saturating_add(series_outcome::expected_bytes(&self.built.tables))
    }

    /// Whether switches may pause their neighbours (PFC), as far as paths and windows say.
    pub fn may_pause(&self) -> bool {
        pauses_in_reach(&self.built.tables)
    }

    /// Returns the parts of its memory, from which a forecast adds up a batch.
    pub fn memory_size(&self) -> MemorySize {
        let tables = &self.built.tables;
        let tasks = size_of_val(&*tables.tasks) as u64;
        let queue_pairs = (size_of_val(&*tables.flow_tx) + size_of_val(&*tables.flow_rx)) as u64;
        let [nics, ports, switches] =
            [size_of_val(&*tables.nics), size_of_val(&*tables.ports), size_of_val(&*tables.switches)].map(|b| b as u64);
        let n_nodes = (tables.nics.len() + tables.ports.len() + tables.switches.len()) as u64;
        let nodes = nics + ports + switches + n_nodes * ENTITY_BYTES as u64;
        let held = self.host_bytes();
        let growing = match hyperfold_flow::is_flow_level_of(tables) {
            true => 0,
            false if self.job.is_some() && tables.exps[0].modes & mode::FOLD != 0 => held / FOLDED_GROWTH_OF,
            false => held / GROWTH_OF + nodes * NODE_GROWTH_HALVES / 2,
        };
        MemorySize {
            held,
            world: world_bytes(tables),
            rows: self.row_bytes(),
            twice: tasks.max(queue_pairs).max(ports),
            growing,
            nodes,
            flows: queue_pairs
                + tables.flow_tx.len() as u64 * ENTITY_BYTES as u64
                + size_of_val(&*tables.paths) as u64
                + hyperfold_flow::expected_bytes(tables),
        }
    }

    /// Whether simulating it takes seconds, if nothing repeats.
    pub fn is_long(&self) -> bool {
        self.built.tables.exps[0].modes & mode::FLOW == 0 && self.packet_hops >= LONG_PACKET_HOPS
    }

    /// Like [`Self::host_bytes`], plus a cached job that no other experiment uses yet. Such a job stays as long as this experiment does, and most sweeps of
    /// layouts share none.
    pub(crate) fn batch_bytes(&self) -> u64 {
        let with_cache =
            |job: &Arc<Job>| if job.shared.is_some() && Arc::strong_count(job) == 2 { job.bytes() } else { 0 };
        self.host_bytes() + self.job.as_ref().map_or(0, with_cache)
    }

    /// Returns the number of the job's key and its bytes, if other experiments may have the same job.
    pub fn shared_job(&self) -> Option<(u64, u64)> {
        let job = self.job.as_ref().filter(|job| Arc::strong_count(job) > 1)?;
        Some((job.shared.as_ref()?.key.number(), job.bytes()))
    }

    /// Bytes of its rows in the world, with what the world keeps for each row.
    pub fn row_bytes(&self) -> u64 {
        let t = &self.built.tables;
        let flows = size_of_val(&*t.flow_tx) + size_of_val(&*t.flow_rx) + size_of_val(&*t.tasks);
        let nodes = size_of_val(&*t.nics) + size_of_val(&*t.ports) + size_of_val(&*t.switches);
        (flows + nodes) as u64 + world_bytes(t)
    }

    /// Approximate host memory in a batch, bytes: its tables, what the world keeps for each row, and what is needed to read results. Excludes growth during
    /// simulation, as few experiments of a batch are simulated at a time.
    pub fn host_bytes(&self) -> u64 {
        let tables = &self.built.tables;
        let flow_level = hyperfold_flow::expected_bytes(tables);
        // A job that several experiments share counts for none of them.
        let own = |job: &Arc<Job>| if Arc::strong_count(job) == 1 { job.bytes() } else { 0 };
        let parts: u64 = self.jobs.iter().filter_map(|rows| rows.job.program.as_ref()).map(own).sum();
        let job = self.job.as_ref().map_or(0, own) + parts;
        let names = self.built.end_arcs.len() * NAME_BYTES;
        tables.bytes()
            + flow_level
            + world_bytes(tables)
            + job
            + (self.flows.len() * size_of::<FlowInfo>() + names) as u64
    }
}

/// Prepares one experiment.
pub fn prepare(config: &Config, exp_id: u32) -> Result<Prepared, PrepareError> {
    tabled(routed(config)?, exp_id)
}

/// Prepares one experiment with tasks for its ranks, or for representatives of equal ranks, even if it need not be simulated.
///
/// # Errors
/// Fails as [`prepare`] does.
pub fn prepare_tasks(config: &Config, exp_id: u32) -> Result<Prepared, PrepareError> {
    tabled(routed_with(config, RanksWithTasks::Representatives)?, exp_id)
}

/// Prepares one experiment with tasks for every rank, even if one could represent others.
///
/// # Errors
/// Fails as [`prepare`] does.
pub fn prepare_every_rank(config: &Config, exp_id: u32) -> Result<Prepared, PrepareError> {
    tabled(routed_with(config, RanksWithTasks::Every)?, exp_id)
}

/// Prepares one experiment within `allowance` bytes of memory, or within its own limit if that is lower. A panic becomes its failure.
///
/// # Errors
/// Fails as [`prepare`] does; [`PrepareError::Memory`], [`PrepareError::Defect`].
pub fn prepare_within(config: &Config, exp_id: u32, allowance: u64) -> Result<Prepared, PrepareError> {
    let prepared = guarded(config, allowance, || prepare(config, exp_id))?;
    can_run(config, &prepared)?;
    Ok(prepared)
}

/// Checks that there is memory to simulate a prepared experiment.
///
/// # Errors
/// [`PrepareError::Memory`].
pub(crate) fn can_run(config: &Config, prepared: &Prepared) -> Result<(), PrepareError> {
    let allowance = config.limits.memory_bytes.unwrap_or(u64::MAX).min(budget::total());
    let wanted = prepared.peak_bytes();
    if wanted > allowance {
        let excess = OverBudget { wanted, allowance, what: "tables and results" };
        return Err(PrepareError::Memory(MemoryRefusal::of(config, &excess)));
    }
    Ok(())
}

/// Runs one step of preparing an experiment within `allowance` bytes of memory, or within its own limit if that is lower. A panic becomes its failure.
pub(crate) fn guarded<T>(
    config: &Config,
    allowance: u64,
    work: impl FnOnce() -> Result<T, PrepareError>,
) -> Result<T, PrepareError> {
    let allowance = config.limits.memory_bytes.map_or(allowance, |limit_bytes| limit_bytes.min(allowance));
    let ended = isolated(|| budget::within(allowance, work)).map_err(PrepareError::Defect)?;
    match ended {
        Ok((made, _)) => made,
        Err(Unfinished::OverBudget(excess)) => Err(PrepareError::Memory(MemoryRefusal::of(config, &excess))),
        Err(Unfinished::Interrupted) => Err(PrepareError::Interrupted),
    }
}

/// Says what of an experiment folding does not know, so that every packet is simulated; `None`: nothing. [`Exp::may_fold`](hyperfold_columns::Exp::may_fold)
/// says the same of its tables.
pub fn unknown_to_folding(config: &Config) -> Option<&'static str> {
    let v = &config.values;
    let circuits_change = config.topology.changes_circuits();
    let fails = config.topology.changes_network() && !circuits_change;
    let impaired =
        config.topology.impairments.iter().any(|text| !text.is_lasting() || matches!(text.what, Impairment::Loss(_)));
    let is_adaptive = || named_routing_policy(config).is_some_and(|policy| policy.is_adaptive());
    [
        (config.output.rtt, "output.rtt samples its round trips"),
        (
            config.output.series.is_some() && config.steady().is_none(),
            "output.series samples it over time, and nothing steady is skipped (fidelity.fast_forward)",
        ),
        (fails, "links fail or come back while it runs (topology.outages)"),
        (circuits_change, "circuits change while it runs (topology.circuits)"),
        (impaired, "links lose packets, or have another rate for some time (topology.outages)"),
        (
            v.is(KeyId::LossRecovery, "selective"),
            "its receivers take packets in any order (transport.loss_recovery = \"selective\")",
        ),
        (
            v.is(KeyId::LossRecovery, "uec"),
            "its receivers are those of Ultra Ethernet (transport.loss_recovery = \"uec\")",
        ),
        (v.bool(KeyId::PortQueue), "its ports have queues of their own (transport.port_queue)"),
        (!config.classes.is_empty(), "it has several traffic classes (transport.classes)"),
        (is_adaptive(), "its switches choose the paths of packets (routing.policy)"),
        (
            v.bool(KeyId::Ecn) && v.int(KeyId::EcnAverageWeight) > 0,
            "its switches mark by averages of queues (transport.ecn_average_weight)",
        ),
        (config.drops_early(), "its switches drop packets by WRED (transport.wred_drops)"),
        (
            v.bool(KeyId::Pfc) && !v.is(KeyId::PfcWatchdog, "off"),
            "its switches watch how long they are paused (transport.pfc_watchdog)",
        ),
    ]
    .into_iter()
    .find_map(|(holds, why)| holds.then_some(why))
}

/// Enables folding: repeated episodes are looked up (with `memo` also remembered), and steady ones skipped.
pub fn fold(built: &mut Built, memo: bool, steady: Option<Steady>) {
    let e = &mut built.tables.exps[0];
    e.modes |= mode::FOLD | if memo { mode::MEMO } else { 0 };
    if let Some(steady) = steady {
        // Other algorithms have no mean rate that a window of samples shows: TIMELY has no fixed point, and without control nothing bounds queues.
        let carries = steady.rates && matches!(e.cc, cc::HPCC | cc::DCQCN | cc::DCTCP);
        let rates = if carries { mode::RATES } else { 0 };
        e.modes |= mode::STEADY | (steady.metric << mode::METRIC_SHIFT) | rates | mode::MUST_GAIN;
        (e.theta_ppm, e.samples, e.interval_ns, e.audit_ppm) =
            (steady.theta_ppm, steady.samples, steady.interval_ns, steady.audit_ppm);
    }
}

/// Builds the tables of one experiment.
pub(crate) fn tabled(routed: Routed, exp_id: u32) -> Result<Prepared, PrepareError> {
    let Routed {
        config,
        network,
        flows,
        job,
        placed,
        first_qp_id,
        transport,
        packet_flows,
        paths,
        packet_of,
        rtt,
        changes,
        bill,
        notes,
    } = routed;
    let config = &*config;
    // Flows of traffic come before queue pairs, and all queue pairs cross the network.
    let n_plain = flows.iter().filter(|f| f.id < first_qp_id).count();
    let first_qp = packet_of[..n_plain].iter().flatten().count();
    let options = BuildOptions {
        exp_id,
        flow_level: config.is_flow_level(),
        links: config.output.links,
        rtt_cap: if config.output.rtt && !config.is_flow_level() { RTT_SAMPLES } else { 0 },
        rtt_means: config.output.rtt_means && !config.is_flow_level(),
        series: config.output.series,
        step_divisor: 1,
        time_limit_ps: config.limits.sim_ps.unwrap_or(u64::MAX),
    };
    // An edge between two NICs of a host is as quick as the quickest link.
    let release_ps = network.links.iter().filter(|l| network.is_packet_link(l)).map(|l| l.delay_ps).min().unwrap_or(1);
    let graph = job.as_ref().map(|j| GraphCase { graph: &j.graph, first_qp, release_ps, fresh_qp: config.fresh_qp() });
    let case = PacketCase {
        network: &network,
        flows: &packet_flows,
        paths: &paths,
        rtt: &rtt,
        transport: &transport,
        graph,
        changes: &changes,
        options,
    };
    budget::doing("tables");
    let mut built = build_sharing(&case, job.as_ref().and_then(|j| Some(&j.shared.as_ref()?.rows)))?;
    if config.output.series.is_some_and(|series| series.links) {
        built.tables.series.sampled_ends = sampled_ends(config, &link_names(&network, &built.end_arcs))?;
    }
    if let Some(memo) = config.folding() {
        fold(&mut built, memo, config.steady().filter(|_| job.is_some()));
    }
    let worked_out = job.as_ref().is_some_and(|job| job.worked_out.is_some());
    if worked_out {
        built.tables.exps[0].status = status::DONE;
    }
    let from_file = matches!(config.topology.kind, TopologyKind::File { .. }) && job.is_none();
    let name = |rank: u32| if from_file { network.nodes[network.ranks[rank as usize] as usize].id } else { rank };
    let idle = IdleNetwork::new(&network, &transport, &changes);
    let plain = flows[..n_plain].iter().zip(&packet_of).map(|(f, packet)| FlowInfo {
        id: f.id,
        src: name(f.src_rank),
        dst: name(f.dst_rank),
        bytes: f.bytes,
        start_ps: f.start_ps,
        ideal_ps: match packet {
            Some(i) => idle.flow_ps(f.bytes, &paths[*i]),
            None => nvlink_ps(f.bytes, &network),
        },
        carried: packet.map_or(FlowCarrier::Inside, |i| FlowCarrier::Alone(built.flow_rows[i])),
    });
    let mut infos: Vec<FlowInfo> = plain.collect();
    let qp_paths = &paths[first_qp..];
    if let Some(job) = &job {
        infos.extend(messages(job, qp_paths, &idle));
    }
    let hops = |bytes: u64, p: &FlowPaths| {
        bytes.div_ceil(transport.payload as u64) * (p.data[0].len() + p.ack[0].len()) as u64
    };
    let message_hops = job.iter().flat_map(|job| job.graph.messages());
    let message_hops: u64 = message_hops.map(|(_, qp, bytes)| hops(bytes, &qp_paths[qp as usize])).sum();
    let flow_hops: u64 = packet_flows[..first_qp].iter().zip(&paths).map(|(f, p)| hops(f.bytes, p)).sum();
    let packet_hops = message_hops + flow_hops;
    let crossing = Crossing {
        plain: &|flow| packet_of[flow].map(|i| &paths[i]),
        n_plain,
        qps: qp_paths,
        graph: job.as_ref().map(|job| &job.graph),
        hops: &hops,
        end_arcs: &built.end_arcs,
    };
    let (jobs, shared_links) = job_rows::of_jobs(placed, &mut infos, &crossing, config.output.shared_links);
    // Experiments that are computed without simulation wait in batches of hundreds, and name no links.
    let network = if worked_out && built.end_arcs.is_empty() { Network::default() } else { network };
    Ok(Prepared { built, flows: infos, network, job, jobs, shared_links, packet_hops, bill, notes })
}
