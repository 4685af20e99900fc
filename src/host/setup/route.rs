//! Routes an experiment: from its configuration to a network and everything that is sent over it, each flow with its paths.
//!
//! Layer: host. Reads the files that an experiment names; builds no tables.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::cost::Bill;
use hyperfold_base::budget;
use hyperfold_config::spec::{self, Config, Conflict, KeyId, PolicyChoice, WorkloadSection};
use hyperfold_llm::workload::Flow;
use hyperfold_network::changes::{TimedChange, begin_where_moved, crosses, failed_before};
use hyperfold_network::routing::{
    FlowPaths, PayloadClock, RouteFile, Router, RoutingPolicy, flow_rtt_window, global_rtt_window, is_intra_server,
};
use hyperfold_network::topology::{ArcIdx, Network, text};
use hyperfold_network::transport::{Cc, LARGEST_CREDIT, LossRecovery, PortWeights, RttWindow, Transport, psn_range};

use crate::estimates::worked_out::{RanksWithTasks, WorkedOut};
use crate::programs::job::Job;
use crate::programs::job_cache;
use crate::programs::jobs::{self, JoinedJobs, PlacedJob};
use crate::programs::serving;
use crate::programs::traffic::{check_classes, few_enough, flows, queue_pairs};
use crate::programs::training::TrainingSetup;
use crate::setup::error::PrepareError;
use crate::setup::inside_servers;
use crate::setup::links::impairments::{Impairments, impairment_notes, impairments};
use crate::setup::links::outages::{CrossingFlows, network_changes, outages};
use crate::setup::network::{bill, network, nvlink_as_packets};
use crate::setup::own_routing::named_routing_policy;
use crate::setup::pauses;
use crate::setup::servers;
use crate::setup::switches::{chips, marking};

/// Whether an experiment is computed while it is prepared, and not simulated: its one program communicates by closed form only.
pub fn is_worked_out(config: &Config) -> bool {
    let WorkloadSection::Program(program) = &config.workload else { return false };
    let serves = matches!(program.source, spec::Source::Inference(_));
    RanksWithTasks::Unsimulated.of(program) == RanksWithTasks::Unsimulated && !serves
}

/// Checks that the model of an experiment fits its GPUs' memory. Returns a warning if the memory is exceeded slightly. Takes microseconds, and nothing for
/// other workloads.
///
/// # Errors
/// [`PrepareError::Oom`] with peak and breakdown, or why the model, its layout or the GPU is not available.
pub fn fits(config: &Config) -> Result<Option<String>, PrepareError> {
    match &config.workload {
        WorkloadSection::Program(p) => match &p.source {
            spec::Source::Model(training) => TrainingSetup::new(config, training).map(|setup| setup.tight),
            spec::Source::Inference(asked) => serving::setup(config, p, asked).map(|_| None),
            _ => Ok(None),
        },
        WorkloadSection::Traffic { pattern, ranks } => match ranks.or(config.cluster.gpus) {
            Some(ranks) => few_enough(pattern, u64::from(ranks)).map(|()| None),
            // The number of ranks is in the topology's file.
            None => Ok(None),
        },
        WorkloadSection::Flows { .. } | WorkloadSection::Cluster(_) => Ok(None),
        WorkloadSection::Jobs => {
            let mut tight = Vec::new();
            for job in config.jobs.iter().flat_map(|jobs| &jobs.jobs) {
                let job_warning = fits(&config.of_job(job)).map_err(|e| e.of_job(&job.name))?;
                tight.extend(job_warning.map(|warning| format!("job {}: {warning}", job.name)));
            }
            Ok((!tight.is_empty()).then(|| tight.join("; ")))
        }
    }
}

/// An experiment's network, and everything that is sent over it with its paths.
pub(crate) struct Routed<'c> {
    /// Configuration, with the keys that the description of its servers sets.
    pub config: Cow<'c, Config>,
    pub network: Network,
    /// All flows, or a program's queue pairs, inside servers too.
    pub flows: Vec<Flow>,
    pub job: Option<Arc<Job>>,
    /// The jobs, if there are several.
    pub placed: Vec<PlacedJob>,
    /// Id of the first flow that is a queue pair.
    pub first_qp_id: u32,
    pub transport: Transport,
    pub packet_flows: Vec<Flow>,
    pub paths: Vec<FlowPaths>,
    /// For each flow, its index in `packet_flows` and `paths`; `None`: it stays inside a server.
    pub packet_of: Vec<Option<usize>>,
    pub rtt: Vec<RttWindow>,
    /// Links that fail, and the paths after that.
    pub changes: Vec<TimedChange>,
    pub bill: Bill,
    pub notes: Vec<String>,
}

/// Reads, generates and routes what is to be simulated; builds no tables.
pub(crate) fn routed(config: &Config) -> Result<Routed<'_>, PrepareError> {
    routed_with(config, RanksWithTasks::Unsimulated)
}

pub(crate) fn routed_with(config: &Config, ranks: RanksWithTasks) -> Result<Routed<'_>, PrepareError> {
    fits(config)?;
    let mut notes = Vec::new();
    let described = servers::described(config)?;
    let mut applied = servers::applied(config, described.as_ref())?;
    budget::doing("the network");
    let mut network = network(&applied, described.as_ref(), &mut notes)?;
    if applied.cluster.nvlink_packets && network.nvlink.is_none() {
        applied.to_mut().cluster.nvlink_packets = false;
        notes.push(
            "cluster.nvlink = \"packet\" has no effect here: the topology file has no NVSwitches, so no packet can cross one"
                .to_string(),
        );
    }
    let config = &*applied;
    // Circuits that come later use the ports of those that they follow.
    let at_beginning = network.at_beginning();
    let bill = bill(config, &at_beginning)?;
    notes.extend(unsold_switches(config, &at_beginning));
    let tier_chips = chips::tier_chips(config, &at_beginning)?;
    drop(at_beginning);
    notes.extend(chips::chosen_chips(config, &tier_chips));
    notes.extend(chips::unpublished_buffers(&tier_chips));
    if config.cluster.nvlink_packets {
        nvlink_as_packets(&mut network, servers::links_of_mesh(config, described.as_ref()) > 1);
    }
    let Impairments { slow, changes: mut impaired } = impairments(config, &network)?;
    network.slow_arcs = slow;
    network.may_reduce = true;
    let outages = outages(config, &network)?;
    let down_before = failed_before(&outages);
    network.failed.clone_from(&down_before);
    let JoinedJobs { flows, first_qp_id, job, placed } = match (&config.workload, &config.jobs) {
        (WorkloadSection::Program(program), _) => {
            let mut job = job_cache::job(config, program, &network, described.as_ref(), ranks, &mut notes)?;
            let beyond = |result: &WorkedOut| config.limits.sim_ps.is_some_and(|limit| result.makespan_ps >= limit);
            if job.worked_out.as_ref().is_some_and(beyond) {
                // The limit is below the computed makespan, so the experiment must be simulated up to the limit. Its notes are known already.
                let ranks = RanksWithTasks::Representatives;
                job = job_cache::job(config, program, &network, described.as_ref(), ranks, &mut Vec::new())?;
            }
            JoinedJobs { flows: queue_pairs(&job, &config.classes), first_qp_id: 0, job: Some(job), placed: Vec::new() }
        }
        (WorkloadSection::Jobs, Some(jobs)) => {
            jobs::joined(config, jobs, &network, described.as_ref(), ranks, &mut notes)?
        }
        _ => {
            let flows = flows(config, &network, &mut notes)?;
            check_classes(&flows, &config.classes)?;
            JoinedJobs { first_qp_id: flows.len() as u32, flows, job: None, placed: Vec::new() }
        }
    };
    if let Some(job) = &job {
        network.add_reducers(&job.graph.reducers);
    }
    budget::doing("paths");
    let mut transport = config.transport(first_host_rate(&network))?;
    transport.tier_buffers = chips::chosen_buffers(config, &tier_chips).or(transport.tier_buffers);
    let router = Router::new(&network);
    let policy: Box<dyn RoutingPolicy> = match (&config.routing.policy, named_routing_policy(config)) {
        (_, Some(policy)) => policy,
        (PolicyChoice::File { path }, None) => Box::new(route_file(path, &network, &flows)?),
        (_, None) => unreachable!("only routes of a file have no name"),
    };
    transport.spray_in_turn = policy.takes_turns();
    transport.recycles_paths = policy.recycles();
    transport.grade_packets = policy.is_adaptive().then(|| config.values.int(KeyId::GradePackets) as u32);
    if transport.grade_packets.is_some() && transport.cut_through_bytes > 0 {
        return Err(PrepareError::Config(spec::adaptive_cut_through()));
    }
    if policy.is_adaptive() {
        adaptive_choice(&mut transport, config);
    }
    let mut packet_flows: Vec<Flow> = Vec::with_capacity(flows.len());
    let mut paths: Vec<FlowPaths> = Vec::with_capacity(flows.len());
    let mut packet_of: Vec<Option<usize>> = Vec::with_capacity(flows.len());
    let mut lanes: Vec<Option<u32>> = Vec::with_capacity(flows.len());
    let detours = (!down_before.is_empty()).then(|| Router::avoiding(&network, &|link| down_before.contains(&link)));
    let later_circuits: BTreeSet<u32> =
        network.dark.iter().filter(|dark| dark.down_ps.is_none()).map(|dark| dark.link).collect();
    // Paths of flows that take others at first, because links have failed before.
    let mut own_paths: BTreeMap<usize, FlowPaths> = BTreeMap::new();
    let mut qps = job.iter().flat_map(|j| &j.graph.qps);
    for flow in &flows {
        budget::check("paths of flows");
        let qp = if flow.id >= first_qp_id { qps.next() } else { None };
        if is_intra_server(&network, flow) {
            packet_of.push(None);
        } else {
            let mut own = match inside_servers::path(&network, flow) {
                Some(paths) => paths,
                // Queue pairs of a connection take the links of their NICs in turn.
                None => router.paths_from(flow, &*policy, qp.map(|qp| qp.lane))?,
            };
            let lane = qp.map(|qp| qp.lane);
            if let Some(detours) = detours.as_ref().filter(|_| crosses(&own, &down_before)) {
                match detour(detours, flow, &*policy, lane, &down_before) {
                    Ok(detour) => {
                        own_paths.insert(paths.len(), std::mem::replace(&mut own, detour));
                    }
                    // It waits for a circuit that comes later.
                    Err(_) if crosses(&own, &later_circuits) => {}
                    Err(why) => return Err(why),
                }
            }
            paths.push(own);
            packet_of.push(Some(packet_flows.len()));
            packet_flows.push(flow.clone());
            lanes.push(lane);
        }
    }
    let packet = PayloadClock {
        payload: transport.payload,
        cut_through: transport.cut_through_bytes,
        clock_ps: transport.clock_ps,
    };
    let own: Vec<RttWindow> = paths.iter().map(|p| flow_rtt_window(&network, p, packet)).collect();
    if transport.cc.is_ultra_ethernet() || config.values.bool(KeyId::PortQueue) {
        let rtt_ps = global_rtt_window(&router, packet).rtt_ps;
        spec::fit_to_network(config, &mut transport, rtt_ps, first_host_rate(&network));
    }
    retransmission_timeout(config, &mut transport, &own, &mut notes);
    notes.extend(pauses::late_watchdog(&transport));
    notes.extend(sparse_answers(&transport, &own));
    let rtt = if transport.global_rtt && !packet_flows.is_empty() {
        vec![global_rtt_window(&router, packet); packet_flows.len()]
    } else {
        own.clone()
    };
    drop(router);
    drop(detours);
    let crossing = CrossingFlows {
        flows: &packet_flows,
        paths: &paths,
        own_paths: &own_paths,
        lanes: &lanes,
        policy: &*policy,
        first_qp_id,
    };
    let mut changes = network_changes(config, &network, &outages, &crossing, &transport, &mut notes);
    if !config.is_flow_level() {
        let alone = packet_flows.iter().take_while(|flow| flow.id < first_qp_id);
        let starts_ps: Vec<u64> = alone.map(|flow| flow.start_ps).collect();
        begin_where_moved(&starts_ps, &mut paths, &mut changes);
    }
    if !packet_flows.is_empty() {
        changes.append(&mut impaired);
        changes.sort_by_key(|change| change.time_ps);
    }
    notes.extend(impairment_notes(config, &network, &paths, &changes));
    notes.extend(sampled_packets(config, job.is_some()));
    notes.extend(several_paths(config, &paths));
    notes.extend(unused_classes(config, &packet_flows));
    notes.extend(classes_of_no_dimension(config, job.is_some()));
    notes.extend(even_shares(config, &transport, &paths));
    if !config.is_flow_level() {
        notes.extend(marking::unmarked(&network, &transport, first_host_rate(&network), &paths));
        notes.extend(lost_credit(config, &transport, &network));
        notes.extend(coarse_grades(&transport, &network));
    }
    notes.extend(inside_servers::shared_nvlink(&network, flows.iter().take_while(|flow| flow.id < first_qp_id)));
    notes.extend(inside_servers::surprises(
        config,
        &network,
        job.is_some() || !flows.is_empty(),
        packet_flows.is_empty(),
    ));
    Ok(Routed {
        config: applied,
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
    })
}

/// The paths of a flow around links that have failed before the experiment begins.
///
/// # Errors
/// There are none, or a file of routes lists others.
fn detour(
    router: &Router,
    flow: &Flow,
    policy: &dyn RoutingPolicy,
    lane: Option<u32>,
    down: &BTreeSet<u32>,
) -> Result<FlowPaths, PrepareError> {
    let found = router.paths_from(flow, policy, lane).ok().filter(|paths| !crosses(paths, down));
    found.ok_or_else(|| {
        let net = router.network();
        let (from, to) = (net.rank_name(flow.src_rank), net.rank_name(flow.dst_rank));
        let why = format!(
            "no path is left between {from} and {to} (flow {}); with a time after `down` it waits instead",
            flow.id
        );
        PrepareError::Config(Conflict { job: None, key: KeyId::Outages, why })
    })
}

/// Returns a note if repeats would be skipped, but are simulated because they are sampled over time.
fn sampled_packets(config: &Config, has_job: bool) -> Option<String> {
    (config.output.series.is_some() && has_job && config.folding().is_some() && config.steady().is_none()).then(|| {
        format!(
            "output.series samples every packet here: fidelity.fast_forward = \"{}\" skips what repeats, of which no samples are known; \"steady\" keeps skips",
            config.values.text(KeyId::FastForward)
        )
    })
}

/// Returns notes if packets of a flow may overtake each other: receivers that go back N then ask for retransmissions, and telemetry comes from other switches
/// each time.
fn several_paths(config: &Config, paths: &[FlowPaths]) -> Vec<String> {
    if config.is_flow_level() || !paths.iter().any(|flow_paths| flow_paths.data.len() > 1) {
        return Vec::new();
    }
    let policy = config.values.text(KeyId::Policy);
    let mut notes = Vec::new();
    if !config.values.is(KeyId::LossRecovery, "selective") && !config.values.is(KeyId::LossRecovery, "uec") {
        notes.push(format!(
            "routing.policy = \"{policy}\" lets packets of a flow overtake each other, and receivers here are go-back-N: they take reordering for \
             loss, and what follows is sent again (column retransmissions); adapters that take packets in any order have \
             transport.loss_recovery = \"selective\", and this is no judge of spraying with them"
        ));
    }
    if config.values.is(KeyId::Cc, "hpcc") {
        notes.push(format!(
            "routing.policy = \"{policy}\" sends packets of a flow over several paths, and HPCC compares the telemetry of one packet with that \
             of the packet before, which crossed other switches: its rates mean little here; transport.cc = \"swift\" or \"dcqcn\" does not read \
             telemetry"
        ));
    }
    notes
}

/// Returns the rate of the first host's first link that packets cross.
fn first_host_rate(net: &Network) -> u64 {
    let host = net.ranks.iter().copied().min().unwrap_or(0);
    net.links
        .iter()
        .filter(|l| net.is_packet_link(l))
        .find(|l| l.a == host || l.b == host)
        .map_or(100_000_000_000, |l| l.rate_bps)
}

/// Sets the retransmission timeout if `transport.rto_us` does not: at least four base round trips, so that a long network does not time out by itself. Else
/// warns if it is too short.
fn retransmission_timeout(config: &Config, transport: &mut Transport, own: &[RttWindow], notes: &mut Vec<String>) {
    let longest = own.iter().map(|w| w.rtt_ps).max().unwrap_or(0);
    if config.default_rto() {
        transport.rto_ps = transport.rto_ps.max(4 * longest);
    } else if transport.rto_ps <= longest {
        notes.push(format!(
            "transport.rto_us = {} is not above the longest base round trip, {} us: flows will send everything again and may give up; use at least {} us, or 0 to have it chosen",
            transport.rto_ps as f64 / 1e6,
            longest.div_ceil(1_000_000),
            (2 * longest).div_ceil(1_000_000)
        ));
    }
}

/// Returns a note if receivers answer more seldom than senders can go on: then each answer but the last waits for a retransmission timeout.
fn sparse_answers(transport: &Transport, own: &[RttWindow]) -> Option<String> {
    let payload = u64::from(transport.payload);
    let windows = || own.iter().map(|flow| flow.window_bytes).filter(|&bytes| bytes > 0);
    let window = windows().min().filter(|_| transport.window || transport.cc == Cc::Nscc);
    let range = match (transport.loss_recovery, transport.psn_range) {
        (LossRecovery::Selective, 0) => windows().max().map(|bytes| psn_range(bytes.div_ceil(payload), 0) * payload),
        (LossRecovery::Selective, given) => Some(psn_range(0, given) * payload),
        _ => None,
    };
    let (limit, what) = match (window, range) {
        (Some(window), Some(range)) if range < window => (range, "transport.psn_range"),
        (Some(window), _) => (window, "the window"),
        (None, range) => (range?, "transport.psn_range"),
    };
    // A chunk that is no multiple of the payload is seldom met.
    let chunk = if transport.chunk.is_multiple_of(payload) { transport.chunk } else { u64::MAX };
    let between = transport.ack_interval.min(chunk);
    (between > limit).then(|| {
        format!(
            "transport.ack_interval_bytes = {} is more than {what} lets a sender have outstanding, {limit} bytes: it waits for a timeout \
             (transport.rto_us) again and again; use a shorter interval",
            transport.ack_interval
        )
    })
}

/// Returns a note if traffic classes are `for` dimensions, and nothing that is sent has one.
fn classes_of_no_dimension(config: &Config, has_program: bool) -> Option<String> {
    (config.classes.has_dimensions() && !has_program).then(|| {
        "`for` in transport.classes has no effect here: flows and generated traffic are of no dimension; workload.class, or the priorities of a flow file, say \
         of which class they are"
            .to_string()
    })
}

/// Returns a note if a traffic class has no packets.
fn unused_classes(config: &Config, flows: &[Flow]) -> Option<String> {
    let used: BTreeSet<u8> = flows.iter().map(|flow| flow.class).collect();
    let used: Vec<u8> = used.into_iter().collect();
    let unused = config.classes.unused(&used);
    // Flows have no buffers.
    let room = if config.is_flow_level() || !config.values.bool(KeyId::Pfc) {
        ""
    } else {
        "; each still takes headroom and reserves from the buffers of switches, unless it is lossy, so results differ from those without it"
    };
    (!unused.is_empty()).then(|| {
        format!(
            "nothing is sent in these classes of transport.classes: {}; `for` and a dimension, workload.class, and priorities of a flow file say what is{room}",
            unused.join(", ")
        )
    })
}

/// Returns a note if a switch is larger than any that is sold: its price and power are those of its rate, as for others.
fn unsold_switches(config: &Config, network: &Network) -> Option<String> {
    if let (Some(_), Some(_)) = config.cost.switch {
        return None;
    }
    let rates = crate::cost::parts(network, 0, true).switches;
    let largest = rates.iter().copied().fold(0.0, f64::max);
    let n = rates.iter().filter(|gbps| **gbps > LARGEST_SWITCH_GBPS).count();
    (n > 0).then(|| {
        format!(
            "{n} of {} switches have more than {} Tb/s, up to {:.1}: none that large was sold when prices were collected; cost_usd and power_kw take them by \
             their rate; smaller ones need another tier",
            rates.len(),
            LARGEST_SWITCH_GBPS / 1000.0,
            largest / 1000.0
        )
    })
}

/// Sets what adaptive switches choose by, beside their grades.
fn adaptive_choice(transport: &mut Transport, config: &Config) {
    let v = &config.values;
    transport.port_weights = match v.bool(KeyId::WeighPorts) {
        false => PortWeights::None,
        true if v.is(KeyId::WeighBy, "rates") => PortWeights::Rates,
        true => PortWeights::Paths,
    };
    transport.flowlet_gap_ps = config.routing.flowlet_gap_ps;
    transport.remote_queues_ps = config.routing.remote_queues_ps;
}

/// Sum of the port rates of the largest switch that is sold as one, Gbit/s: 144 ports of 800 Gbit/s (NVIDIA Quantum-X800, 2025).
const LARGEST_SWITCH_GBPS: f64 = 115_200.0;

/// Returns a note if flow level takes shares for equal that adaptive routing makes unequal: where links are slow, or ports lead to unequal numbers of paths.
fn even_shares(config: &Config, transport: &Transport, paths: &[FlowPaths]) -> Option<String> {
    let has_choice = transport.grade_packets.is_some() && paths.iter().any(|flow_paths| flow_paths.data.len() > 1);
    (config.is_flow_level() && has_choice && config.values.has(KeyId::Outages)).then(|| {
        "flow level sends an equal part of a flow over each of its paths; with adaptive routing and topology.outages the parts differ: switches avoid queues \
         before their own slow links, and do not weigh ports by the paths behind them; fidelity.mode = \"packet\" shows that"
            .to_string()
    })
}

/// Returns a note if no queue of a port reaches the second grade of adaptive routing.
fn coarse_grades(transport: &Transport, net: &Network) -> Option<String> {
    let grade_packets = u64::from(transport.grade_packets?);
    let arcs = 0..2 * net.links.len() as ArcIdx;
    let largest = arcs
        .filter(|&arc| net.is_packet_link(net.arc_link(arc)))
        .filter_map(|arc| transport.port_queue_for(net.arc_rate(arc)))
        .max()?;
    let held = largest / u64::from(transport.payload + transport.data_overhead);
    (grade_packets > held).then(|| {
        format!(
            "routing.grade_packets = {grade_packets} is more than the largest queue of a port holds, {held}: all ports have one grade then, and switches \
             spread packets at random; at most {held} would be right"
        )
    })
}

/// Returns notes if receivers give credit that a sender does not keep or a port cannot queue, or if senders get less than fills a link.
fn lost_credit(config: &Config, transport: &Transport, net: &Network) -> Vec<String> {
    let Some(credit) = transport.credit else { return Vec::new() };
    let mut notes = Vec::new();
    if config.values.int(KeyId::CreditWindowPackets) == 0 && credit.window_packets == LARGEST_CREDIT {
        notes.push(format!(
            "senders keep {LARGEST_CREDIT} packets of credit, the most there is, which may not fill a link: one and a half bandwidth-delay products are more; \
             larger packets (transport.payload_bytes) need fewer"
        ));
    }
    let mtu = u64::from(transport.payload + transport.data_overhead);
    let arcs = 0..2 * net.links.len() as ArcIdx;
    let queues = arcs
        .filter(|&arc| net.is_packet_link(net.arc_link(arc)))
        .filter_map(|arc| transport.port_queue_for(net.arc_rate(arc)));
    let queued = queues.min().map_or(u64::MAX, |bytes| bytes / mtu);
    let (kept, what) = if queued < u64::from(credit.window_packets) {
        (queued, "the smallest queue of a port holds")
    } else {
        (u64::from(credit.window_packets), "a sender keeps (transport.credit.window_packets)")
    };
    if u64::from(credit.grant_packets) > kept {
        notes.push(format!(
            "transport.credit.grant_packets = {} is more than {what}, {kept}: a part of each grant may be lost, with the time that it takes; at most {kept} would be right",
            credit.grant_packets
        ));
    }
    notes
}

fn route_file(path: &Path, net: &Network, flows: &[Flow]) -> Result<RouteFile, PrepareError> {
    let shown = path.display().to_string();
    Ok(RouteFile::parse(&shown, &text::load_text(path)?, net, flows)?)
}
