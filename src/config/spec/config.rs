//! One experiment's configuration: typed, in integers, checked as a whole.
//!
//! Layer: spec. Built from resolved [`Values`]. Does not touch the files that it names, and builds no networks or flows.

use std::path::Path;

use super::applies_when::{has_nvlink, job_mode, ultra_ethernet, wred_drops};
use super::cluster::{ClusterRun, cluster_run};
use super::costs::CostKeys;
use super::cut_through::check_cut_through;
use super::ecn_by_rate::ecn_by_rate;
use super::error::Conflict;
use super::jobs::{JobSection, JobsSection};
use super::key_id::KeyId;
use super::keys::COUNT as MAX_GPUS;
use super::mix::mix;
use super::named::named;
use super::outages::link_texts;
use super::scale::scaled;
use super::sections::{
    ClusterSection, LimitsSection, OutputSection, PolicyChoice, Routing, TopologyKind, TopologySection, WorkloadSection,
};
use super::series::series_keys;
use super::server_links::{check_links, link_kind};
use super::servers::SERVERS;
use super::switches::SwitchChoice;
use super::topology::topology_kind;
use super::traffic_classes::TrafficClasses;
use super::value::{Value, Values};
use super::workload::{members, workload};
use hyperfold_base::units::{BPS_PER_GBPS, PS_PER_NS};
use hyperfold_network::routing::{PolicyKeys, routing_policy};
use hyperfold_network::topology::{FabricShape, FatTree, RailOnly, RailOptimized};
use hyperfold_network::transport::{EcnThresholds, TierBuffers};

/// Everything that describes one experiment.
#[derive(Clone, Debug)]
pub struct Config {
    /// Section `cluster`: GPUs and servers.
    pub cluster: ClusterSection,
    /// Section `topology`: the network.
    pub topology: TopologySection,
    /// Section `routing`: how packets choose paths.
    pub routing: Routing,
    /// The workload; [`WorkloadSection::Jobs`] if there are several jobs.
    pub workload: WorkloadSection,
    /// The jobs; `None`: there is only `[base.workload]`.
    pub jobs: Option<JobsSection>,
    /// Section `limits`: when a simulation ends early.
    pub limits: LimitsSection,
    /// Section `output`: what is written.
    pub output: OutputSection,
    /// Section `cost`: prices and powers.
    pub cost: CostKeys,
    /// The seed of this experiment's replica; every other seed is derived from it.
    pub seed: u64,
    /// The traffic classes of `transport.classes`, and that of the workload.
    pub classes: TrafficClasses,
    /// Value of `ecn_by_rate`: link rate in bps and its thresholds.
    pub(super) ecn_by_rate: Vec<(u64, EcnThresholds)>,
    /// All resolved keys, for what is read later (transport) and for printing.
    pub values: Values,
}

impl Config {
    /// Types and checks resolved values. `dir`: folder to which paths are relative (that of the sweep file); `seed`: the replica's. The error names the wrong
    /// key.
    pub fn new(values: Values, dir: &Path, seed: u64) -> Result<Config, Conflict> {
        let v = &values;
        let path = |key: KeyId, when: &str| match v.text(key) {
            "" => Err(Conflict { job: None, key, why: format!("it is required with {when}; give the path of a file") }),
            p => Ok(dir.join(p)),
        };
        let u32_of = |key: KeyId| v.int(key) as u32;
        let some = |x: u64| (x > 0).then_some(x);

        let kind = topology_kind(v, dir)?;
        let policy = match (v.registered(KeyId::Policy), v.text(KeyId::Policy)) {
            (Some(policy), _) => PolicyChoice::Registered(policy.clone()),
            (None, "file") => PolicyChoice::File { path: path(KeyId::RoutingPath, "routing.policy = \"file\"")? },
            (None, name) => PolicyChoice::Named { name: name.to_string(), max_paths: u32_of(KeyId::MaxPaths) },
        };
        let ecn_by_rate = ecn_by_rate(v)?;
        let link_texts = link_texts(v)?;
        if v.int(KeyId::Gpus) > MAX_GPUS {
            let why = format!("the workload needs {} GPUs; networks have at most {MAX_GPUS}", v.int(KeyId::Gpus));
            return Err(Conflict { job: None, key: KeyId::Gpus, why });
        }
        let mib = |key: KeyId| scaled(v.float(key), (1u64 << 20) as f64);
        let tier_keys = [KeyId::LeafBufferMib, KeyId::AggBufferMib, KeyId::SpineBufferMib];
        let config = Config {
            cluster: ClusterSection {
                gpus: some(v.int(KeyId::Gpus) as u64).map(|n| n as u32),
                gpus_per_server: u32_of(KeyId::GpusPerServer),
                nics_per_server: u32_of(KeyId::NicsPerServer),
                nic_ports: u32_of(KeyId::NicPorts),
                server: SERVERS.into_iter().find(|s| v.is(KeyId::Server, s)),
                server_xml: v.has(KeyId::ServerXml).then(|| dir.join(v.text(KeyId::ServerXml))),
                gpu: named(v.text(KeyId::Gpu), dir),
                gpu_memory_bytes: some(scaled(v.float(KeyId::GpuMemoryGib), (1u64 << 30) as f64)),
                nvlink_packets: v.is(KeyId::Nvlink, "packet") && has_nvlink(v),
                nvlink_bps: scaled(v.float(KeyId::NvlinkGbps), BPS_PER_GBPS as f64),
                nvlink_latency_ps: scaled(v.float(KeyId::NvlinkLatencyNs), PS_PER_NS as f64),
                base_time_ps: some(scaled(v.float(KeyId::BaseTimeNs), PS_PER_NS as f64)),
                base_time_across_ps: some(scaled(v.float(KeyId::BaseTimeAcrossNs), PS_PER_NS as f64)),
                link_kind: link_kind(v),
            },
            topology: TopologySection {
                kind,
                link_bps: scaled(v.float(KeyId::LinkGbps), BPS_PER_GBPS as f64),
                uplink_bps: scaled(v.float(KeyId::UplinkGbps), BPS_PER_GBPS as f64),
                global_bps: scaled(v.float(KeyId::GlobalGbps), BPS_PER_GBPS as f64),
                core_bps: scaled(v.float(KeyId::CoreGbps), BPS_PER_GBPS as f64),
                uplink_delay_ps: scaled(v.float(KeyId::UplinkDelayNs), PS_PER_NS as f64),
                core_delay_ps: scaled(v.float(KeyId::CoreDelayNs), PS_PER_NS as f64),
                link_delay_ps: scaled(v.float(KeyId::LinkDelayNs), PS_PER_NS as f64),
                global_delay_ps: scaled(v.float(KeyId::GlobalDelayNs), PS_PER_NS as f64),
                switch_latency_ps: scaled(v.float(KeyId::SwitchLatencyNs), PS_PER_NS as f64),
                oversubscription_milli: scaled(v.float(KeyId::Oversubscription), 1e3) as u32,
                switch: SwitchChoice::of(v),
                buffer_bytes: mib(KeyId::BufferMib),
                tier_buffers: tier_keys.iter().any(|key| v.given(*key)).then(|| TierBuffers {
                    leaf: mib(KeyId::LeafBufferMib),
                    agg: mib(KeyId::AggBufferMib),
                    spine: mib(KeyId::SpineBufferMib),
                }),
                outages: link_texts.outages,
                impairments: link_texts.impairments,
            },
            routing: Routing {
                policy,
                seed: v.int(KeyId::RoutingSeed) as u32,
                reroute_ps: scaled(v.float(KeyId::RerouteUs), 1e3 * PS_PER_NS as f64),
                flowlet_gap_ps: scaled(v.float(KeyId::FlowletGapUs), 1e3 * PS_PER_NS as f64),
                remote_queues_ps: scaled(v.float(KeyId::RemoteUs), 1e3 * PS_PER_NS as f64),
                port_failover: v.bool(KeyId::PortFailover),
            },
            workload: match v.jobs() {
                _ if job_mode(v) => WorkloadSection::Cluster(Box::new(cluster_run(v, dir, seed)?)),
                [] => workload(v, dir)?,
                _ => WorkloadSection::Jobs,
            },
            jobs: (!v.jobs().is_empty()).then(|| JobsSection::new(v, dir, seed)).transpose()?,
            limits: LimitsSection {
                sim_ps: some(v.int(KeyId::SimNs) as u64 * PS_PER_NS),
                packet_hops: some(v.int(KeyId::PacketHops) as u64),
                wall_ms: some(scaled(v.float(KeyId::WallS), 1e3)),
                memory_bytes: some(scaled(v.float(KeyId::MemoryGib), f64::from(1 << 30))),
            },
            cost: CostKeys::new(v),
            output: OutputSection {
                flows: v.bool(KeyId::OutFlows) && !job_mode(v),
                links: v.bool(KeyId::OutLinks) && !job_mode(v),
                rtt: v.bool(KeyId::OutRtt) && !job_mode(v),
                rtt_means: v.bool(KeyId::OutRttMeans) && !job_mode(v),
                series: series_keys(v)?,
                trace: v.bool(KeyId::OutTrace),
                alone: v.bool(KeyId::Alone) && !job_mode(v),
                leave_one_out: v.bool(KeyId::LeaveOneOut) && !job_mode(v),
                shared_links: v.bool(KeyId::OutSharedLinks) && !job_mode(v),
                cluster_jobs: v.bool(KeyId::OutJobs) && job_mode(v),
                cluster_map: v.bool(KeyId::OutMap) && job_mode(v),
                requests: v.bool(KeyId::OutRequests) && !job_mode(v),
            },
            seed,
            classes: TrafficClasses::new(v)?,
            ecn_by_rate,
            values,
        };
        config.check()?;
        Ok(config)
    }

    /// Checks conditions between keys, which ranges of single keys cannot express.
    fn check(&self) -> Result<(), Conflict> {
        let v = &self.values;
        let fail = |key: KeyId, why: String| Err(Conflict { job: None, key, why });
        let generated = !matches!(self.topology.kind, TopologyKind::File { .. });
        check_links(v)?;
        match &self.topology.kind {
            TopologyKind::Generated { shape: FabricShape::FatTree(FatTree { k }), .. } if k % 2 == 1 => {
                return fail(KeyId::FatTreeK, format!("it must be even: {} or {}", k - 1, k + 1));
            }
            TopologyKind::Generated {
                shape:
                    FabricShape::RailOptimized(RailOptimized { rails, .. }) | FabricShape::RailOnly(RailOnly { rails }),
                ..
            } if *rails > self.cluster.nics_per_server => {
                return fail(
                    KeyId::Rails,
                    format!("it must be at most cluster.nics_per_server = {}", self.cluster.nics_per_server),
                );
            }
            TopologyKind::Generated {
                shape: FabricShape::RailOptimized(RailOptimized { pods: 1.., servers_per_pod: 1.., .. }),
                ..
            } => {
                return fail(KeyId::ServersPerPod, "topology.pods says the same already; give one of them".to_string());
            }
            _ => {}
        }
        match &self.jobs {
            None => self.check_workload()?,
            Some(jobs) => {
                for job in &jobs.jobs {
                    self.of_job(job).check_workload().map_err(|conflict| conflict.of_job(&job.name))?;
                }
                // Classes of jobs do not all run at once.
                if generated && self.cluster_run().is_none() {
                    jobs.check(self.cluster.gpus)?;
                }
            }
        }
        if let Some(gpus) = self.cluster.gpus.filter(|_| generated) {
            let per_server = self.cluster.gpus_per_server;
            if gpus % per_server != 0 {
                let near = (gpus / per_server * per_server, (gpus / per_server + 1) * per_server);
                let examples = if near.0 > 0 { format!("{} or {}", near.0, near.1) } else { near.1.to_string() };
                return fail(
                    KeyId::Gpus,
                    format!("it must be a multiple of cluster.gpus_per_server = {per_server}, for example {examples}"),
                );
            }
        }
        if generated && self.cluster.nics_per_server > self.cluster.gpus_per_server {
            let gpus = self.cluster.gpus_per_server;
            return fail(KeyId::NicsPerServer, format!("it must be at most cluster.gpus_per_server = {gpus}"));
        }
        if v.bool(KeyId::Ecn) && v.float(KeyId::EcnKminKb) > v.float(KeyId::EcnKmaxKb) {
            let kmax = v.get(KeyId::EcnKmaxKb);
            return fail(KeyId::EcnKminKb, format!("it must be at most transport.ecn_kmax_kb = {kmax}"));
        }
        if v.is(KeyId::Cc, "timely") && v.float(KeyId::TimelyTLowUs) > v.float(KeyId::TimelyTHighUs) {
            let high = v.get(KeyId::TimelyTHighUs);
            return fail(KeyId::TimelyTLowUs, format!("it must be at most transport.timely.t_high_us = {high}"));
        }
        check_ultra_ethernet(v)?;
        check_cut_through(v)?;
        if v.is(KeyId::Cc, "swift") && v.float(KeyId::SwiftFsMinCwnd) >= v.float(KeyId::SwiftFsMaxCwnd) {
            let max = v.get(KeyId::SwiftFsMaxCwnd);
            return fail(KeyId::SwiftFsMinCwnd, format!("it must be below transport.swift.fs_max_cwnd = {max}"));
        }
        Ok(())
    }

    /// Returns the cluster over days that is simulated; `None`: jobs are simulated packet by packet.
    pub fn cluster_run(&self) -> Option<&ClusterRun> {
        match &self.workload {
            WorkloadSection::Cluster(run) => Some(run),
            _ => None,
        }
    }

    /// Checks conditions between the keys of a workload and its GPUs.
    fn check_workload(&self) -> Result<(), Conflict> {
        let v = &self.values;
        if self.cluster_run().is_some() {
            return Ok(());
        }
        let fail = |key: KeyId, why: String| Err(Conflict { job: None, key, why });
        if !matches!(self.workload, WorkloadSection::Program(_)) && v.int(KeyId::Iterations) > 1 {
            return fail(KeyId::Iterations, "traffic and flow files run once: 1".to_string());
        }
        if let WorkloadSection::Program(program) = &self.workload {
            program.check(v, self.cluster.gpus)?;
        }
        if let (WorkloadSection::Traffic { pattern, ranks: Some(ranks), .. }, gpus) =
            (&self.workload, self.cluster.gpus)
        {
            if let Some(gpus) = gpus.filter(|g| ranks > g) {
                return fail(KeyId::Ranks, format!("it must be at most cluster.gpus = {gpus}"));
            }
            if *ranks < 2 {
                return fail(
                    KeyId::Ranks,
                    "it must be at least 2 (somebody sends, somebody else receives), or 0 for all".to_string(),
                );
            }
            members(pattern, *ranks)?;
        } else if let (WorkloadSection::Traffic { pattern, .. }, Some(gpus)) = (&self.workload, self.cluster.gpus) {
            if gpus < 2 {
                return fail(KeyId::Gpus, "it must be at least 2: somebody sends, somebody else receives".to_string());
            }
            members(pattern, gpus)?;
        }
        Ok(())
    }

    /// Returns the configuration of one of several jobs: its workload and seed, on a cluster of its GPUs.
    pub fn of_job(&self, job: &JobSection) -> Config {
        Config {
            cluster: ClusterSection { gpus: job.gpus, ..self.cluster.clone() },
            topology: self.topology.clone(),
            routing: self.routing.clone(),
            workload: job.workload.clone(),
            jobs: None,
            limits: self.limits.clone(),
            output: self.output,
            cost: self.cost,
            seed: job.seed,
            classes: job.classes.clone(),
            ecn_by_rate: self.ecn_by_rate.clone(),
            values: job.values.clone(),
        }
    }

    /// Returns the configuration of a class of a cluster's jobs, as an experiment in which one of them runs alone. PRECONDITION: iterations are simulated.
    pub fn of_class(&self, job: &JobSection) -> Config {
        let level = if self.values.is(KeyId::IterationsAt, "packet") { "packet" } else { "flow" };
        let mut config = self.of_job(job);
        config.values.set_derived(KeyId::Mode, Value::Choice(level));
        // Job mode has no packets inside servers.
        config.cluster.nvlink_packets = false;
        config
    }

    /// Whether the retransmission timeout is the default one, which may be raised if round trips are long.
    pub fn default_rto(&self) -> bool {
        *self.values.get(KeyId::RtoUs) == super::derive::rto_us(&self.values)
    }

    /// Seed of marking, from the replica's and `transport.seed`.
    pub fn marking_seed(&self) -> u32 {
        mix(self.seed, self.values.int(KeyId::TransportSeed) as u64, 1) as u32
    }

    /// Seed of spraying, from the replica's and `routing.seed`. ECMP's hash depends only on `routing.seed`, so that replicas keep their paths.
    pub fn spray_seed(&self) -> u32 {
        mix(self.seed, u64::from(self.routing.seed), 2) as u32
    }

    /// Seed of compute jitter, from the replica's and `workload.seed`.
    pub fn jitter_seed(&self) -> u64 {
        mix(self.seed, self.values.int(KeyId::WorkloadSeed) as u64, 4)
    }

    /// Whether each message of a collective starts with fresh congestion-control state, instead of its queue pair's.
    pub fn fresh_qp(&self) -> bool {
        self.values.bool(KeyId::FreshQp)
    }

    /// Returns about how many times the work of all its jobs is simulated: once, and again for jobs alone and for all jobs but one.
    pub fn times_simulated(&self) -> u64 {
        let n_jobs = self.jobs.as_ref().map_or(0, |jobs| jobs.jobs.len() as u64);
        1 + u64::from(self.output.alone) + if self.output.leave_one_out { n_jobs.saturating_sub(1) } else { 0 }
    }

    /// Whether flows have max-min fair rates instead of packets.
    pub fn is_flow_level(&self) -> bool {
        self.values.is(KeyId::Mode, "flow")
    }

    /// Returns what becomes one flow.
    pub fn joining(&self) -> Joining {
        match self.is_flow_level() {
            true if self.values.is(KeyId::Join, "collectives") => Joining::Collectives,
            true if self.values.is(KeyId::Join, "ranks") => Joining::Ranks,
            _ => Joining::Nothing,
        }
    }

    /// Whether ranks run programs, and one rank of each class stands for the others.
    pub fn joins_ranks(&self) -> bool {
        let has_programs = matches!(self.workload, WorkloadSection::Program(_) | WorkloadSection::Jobs);
        self.joining() == Joining::Ranks && has_programs
    }

    /// Whether an experiment that equals another one takes its outcome.
    pub fn shares_outcomes(&self) -> bool {
        self.is_flow_level() || self.folding() == Some(true)
    }

    /// Whether switches drop some data packets that they would mark: the key asks for it, and some packets may be lost.
    pub fn drops_early(&self) -> bool {
        self.values.bool(KeyId::WredDrops) && wred_drops(&self.values)
    }

    /// Returns whether repeats may be remembered if they may be skipped without changing results; `None`: everything is simulated.
    pub fn folding(&self) -> Option<bool> {
        (!self.is_flow_level() && !self.values.is(KeyId::FastForward, "off")).then(|| self.values.bool(KeyId::Memo))
    }

    /// Returns how steady phases are found and skipped; `None`: they are simulated.
    pub fn steady(&self) -> Option<Steady> {
        let v = &self.values;
        let metric = ["rate", "window", "inflight", "queue", "rtt"]
            .iter()
            .position(|m| v.is(KeyId::SteadyMetric, m))
            .unwrap_or(0) as u32;
        let rates = v.is(KeyId::FastForward, "rates");
        (!self.is_flow_level() && (rates || v.is(KeyId::FastForward, "steady"))).then(|| Steady {
            rates,
            metric,
            theta_ppm: scaled(v.float(KeyId::SteadyTheta), 1e6) as u32,
            samples: v.int(KeyId::SteadySamples) as u32,
            interval_ns: v.int(KeyId::SteadyIntervalNs) as u32,
            audit_ppm: scaled(v.float(KeyId::Audit), 1e6) as u32,
            audit_bound: v.float(KeyId::AuditBound),
        })
    }

    /// Seed of generated traffic, from the replica's and `workload.seed`.
    pub fn traffic_seed(&self) -> u64 {
        mix(self.seed, self.values.int(KeyId::WorkloadSeed) as u64, 3)
    }
}

/// The unit of traffic that becomes one flow at flow level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// Each message is a flow.
    Nothing,
    /// Each collective over rings.
    Collectives,
    /// Each collective over rings, and what ranks of a class send.
    Ranks,
}

/// Parameters of skipping steady phases. Zeros: chosen for each partition of the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Whether measured rates are carried on where senders meet, too (`fidelity.fast_forward = "rates"`).
    pub rates: bool,
    /// Index of the choice of `fidelity.steady_metric`.
    pub metric: u32,
    /// Value of `fidelity.steady_theta`, in millionths.
    pub theta_ppm: u32,
    /// Value of `fidelity.steady_samples`.
    pub samples: u32,
    /// Value of `fidelity.steady_interval_ns`, ns.
    pub interval_ns: u32,
    /// Value of `fidelity.audit`, in millionths.
    pub audit_ppm: u32,
    /// Bound of the mean relative error in audits.
    pub audit_bound: f64,
}

/// Maximum number of entropies of a flow: their number has 8 bits in a packet.
const MAX_ENTROPIES: i64 = 256;

/// Checks keys of Ultra Ethernet against each other: they describe one receiver, one sender and one kind of switch.
fn check_ultra_ethernet(v: &Values) -> Result<(), Conflict> {
    let fail = |key: KeyId, why: &str| Err(Conflict { job: None, key, why: why.to_string() });
    if !v.is(KeyId::Mode, "packet") {
        return Ok(());
    }
    let uec = v.is(KeyId::LossRecovery, "uec");
    if uec != ultra_ethernet(v) {
        let why = if uec {
            "\"uec\" goes with transport.cc = \"nscc\" and \"rccc\" only; \"selective\" takes packets in any order under other congestion controls"
        } else {
            "transport.cc = \"nscc\" and \"rccc\" go with \"uec\" only: leave it out"
        };
        return fail(KeyId::LossRecovery, why);
    }
    if v.is(KeyId::Cc, "rccc") && !v.bool(KeyId::ReceiverCredit) {
        return fail(
            KeyId::ReceiverCredit,
            "transport.cc = \"rccc\" is receiver credit: true, or another transport.cc",
        );
    }
    if uec && v.bool(KeyId::ReceiverCredit) && !v.bool(KeyId::PortQueue) && !v.bool(KeyId::Pfc) {
        let why = "a shared buffer without PFC may drop credit, which is never given again: transport.port_queue = true, or transport.pfc = true";
        return fail(KeyId::ReceiverCredit, why);
    }
    if uec && v.bool(KeyId::ReceiverCredit) && v.bool(KeyId::Pfc) && v.is(KeyId::PfcWatchdog, "drop") {
        let why = "a watchdog that drops packets may drop credit, which is never given again: \"forward\" or \"off\", or transport.receiver_credit = false";
        return fail(KeyId::PfcWatchdog, why);
    }
    if v.bool(KeyId::PortQueue) && v.is(KeyId::Cc, "hpcc") {
        return fail(KeyId::PortQueue, "hpcc reads the queues of a shared buffer: false");
    }
    if v.bool(KeyId::PortQueue) && v.bool(KeyId::Pfc) {
        return fail(KeyId::Pfc, "with transport.port_queue there is no shared buffer that could pause anybody: false");
    }
    if v.bool(KeyId::PortQueue) && v.bool(KeyId::Trimming) && !uec {
        return fail(
            KeyId::Trimming,
            "only receivers of transport.loss_recovery = \"uec\" understand trimmed packets; write transport.trimming = false, or choose these receivers",
        );
    }
    let Some(policy) = routing_policy(v.text(KeyId::Policy), PolicyKeys { seed: 1, max_paths: 1 }) else {
        return Ok(());
    };
    if policy.has_entropies() && v.int(KeyId::MaxPaths) > MAX_ENTROPIES {
        return fail(KeyId::MaxPaths, "a flow has at most 256 entropies");
    }
    if policy.recycles() && !uec {
        let why = "it needs ACKs that carry entropies: transport.cc = \"nscc\" or \"rccc\"; other policies go with any";
        return fail(KeyId::Policy, why);
    }
    Ok(())
}
