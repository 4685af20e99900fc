//! The sections of a configuration as types, in integers.
//!
//! Layer: spec. Plain data: `config` fills it in and checks it.

use std::path::PathBuf;

use super::cluster::ClusterRun;
use super::gpu_links::LinkKind;
use super::impairments::{Impairment, ImpairmentText};
use super::named::Named;
use super::outages::OutageText;
use super::program::ProgramSpec;
use super::registered::RegisteredPolicy;
use super::series::SeriesKeys;
use super::switches::SwitchChoice;
use hyperfold_network::topology::{FabricShape, Sites};
use hyperfold_network::transport::TierBuffers;

/// `[base.cluster]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSection {
    /// Number of GPUs; `None`: what the topology or flow file needs.
    pub gpus: Option<u32>,
    /// Number of GPUs of a server.
    pub gpus_per_server: u32,
    /// Number of NICs of a server.
    pub nics_per_server: u32,
    /// Links of a NIC.
    pub nic_ports: u32,
    /// The server named by `cluster.server`, one of [`super::SERVERS`].
    pub server: Option<&'static str>,
    /// PCIe and NIC topology of one server in NCCL's XML form.
    pub server_xml: Option<PathBuf>,
    /// The GPU: a preset, a file or a table.
    pub gpu: Named,
    /// GPU memory, bytes, instead of that in the GPU's specifications.
    pub gpu_memory_bytes: Option<u64>,
    /// Whether traffic inside a server crosses an NVSwitch as packets, instead of taking a calibrated time.
    pub nvlink_packets: bool,
    /// Rate of a GPU to the others of its server, all its links together, bps; 0: they use the network.
    pub nvlink_bps: u64,
    /// Latency one way, ps.
    pub nvlink_latency_ps: u64,
    /// Measured time of an all-reduce of 8 bytes in one server, ps; `None`: not measured.
    pub base_time_ps: Option<u64>,
    /// Measured time of an all-reduce of 8 bytes on two servers, ps; `None`: not measured.
    pub base_time_across_ps: Option<u64>,
    /// The links between the GPUs of one server if no server says it: as in the GPU's own table, or a switch if the table says nothing.
    pub link_kind: LinkKind,
}

/// `[base.topology]`. Rates in bps (whole Mb/s), times in ps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologySection {
    /// FabricShape of the network.
    pub kind: TopologyKind,
    /// Rate of a NIC.
    pub link_bps: u64,
    /// Rate of links between switches.
    pub uplink_bps: u64,
    /// Rate of links to the third tier.
    pub core_bps: u64,
    /// Rate of links between groups of a dragonfly.
    pub global_bps: u64,
    /// Propagation delay of a link of a host, one way.
    pub link_delay_ps: u64,
    /// Propagation delay of a link between switches, one way.
    pub uplink_delay_ps: u64,
    /// Propagation delay of a link to the third tier, one way.
    pub core_delay_ps: u64,
    /// Propagation delay of a link between groups of a dragonfly, one way.
    pub global_delay_ps: u64,
    /// Latency of a switch.
    pub switch_latency_ps: u64,
    /// Oversubscription in thousandths: 1000 is 1:1.
    pub oversubscription_milli: u32,
    /// Chips of switches; `None`: switches have as many ports as they need.
    pub switch: Option<SwitchChoice>,
    /// Shared buffer of a switch, bytes. 0: that of its chip, which the network decides.
    pub buffer_bytes: u64,
    /// Buffers of each tier, which may be 0 as `buffer_bytes` may; `None`: all tiers have `buffer_bytes`.
    pub tier_buffers: Option<TierBuffers>,
    /// What fails while packets cross the network.
    pub outages: Vec<OutageText>,
    /// Links that are slow or lose packets.
    pub impairments: Vec<ImpairmentText>,
}

impl TopologySection {
    /// Whether optical circuits change while the experiment runs.
    pub fn changes_circuits(&self) -> bool {
        matches!(&self.kind, TopologyKind::Generated { shape: FabricShape::Optical(optical), .. } if optical.plan.changes())
    }

    /// Whether links fail or come back while the experiment runs, or circuits do.
    pub fn changes_network(&self) -> bool {
        self.changes_circuits() || self.outages.iter().any(|outage| outage.times.changes_network())
    }

    /// Whether some link loses packets, at random or when it fails.
    pub fn loses_packets(&self) -> bool {
        self.changes_network() || self.impairments.iter().any(|text| matches!(text.what, Impairment::Loss(_)))
    }
}

/// Where the network comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyKind {
    /// A generator makes it. A count of 0 leaves it to the generator.
    Generated {
        /// FabricShape of each site.
        shape: FabricShape,
        /// Sites and the links between them; `None`: there is one.
        sites: Option<Sites>,
    },
    /// A network that a file describes.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Format of the file.
        format: TopologyFormatChoice,
    },
}

/// Format of a topology file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyFormatChoice {
    /// The form of HPCC's ns-3 simulator.
    Ns3,
    /// The form of SimAI, which adds servers to that of ns-3.
    SimAi,
    /// The form of htsim's `.topo` files.
    Htsim,
    /// InfraGraph, as JSON.
    InfraGraph,
}

/// `[base.routing]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// How packets choose among shortest paths.
    pub policy: PolicyChoice,
    /// Seed of ECMP; 1 hashes as the reference does. Spraying uses [`super::Config::spray_seed`].
    pub seed: u32,
    /// Time from a failure or repair until paths avoid or use what failed, in ps.
    pub reroute_ps: u64,
    /// Whether flows of a port that is cut off move to another port of their NIC.
    pub port_failover: bool,
    /// Adaptive routing: pause of a queue pair at a switch that ends its flowlet; 0: each packet is routed by itself.
    pub flowlet_gap_ps: u64,
    /// Adaptive routing: time from one report of switches about their queues to the next, in ps; 0: none.
    pub remote_queues_ps: u64,
}

/// How packets choose among shortest paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyChoice {
    /// A routing policy, by its name.
    Named {
        /// Name of the policy, as registered.
        name: String,
        /// Most paths that a flow is sprayed over.
        max_paths: u32,
    },
    /// Routes that a file gives.
    File {
        /// Path of the file.
        path: PathBuf,
    },
    /// A policy that a program registered.
    Registered(RegisteredPolicy),
}

/// `[base.workload]`. Generated traffic is seeded by [`super::Config::traffic_seed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadSection {
    /// Flows by a pattern.
    Traffic {
        /// Who sends to whom.
        pattern: Pattern,
        /// Number of GPUs that take part, from rank 0; `None`: all.
        ranks: Option<u32>,
    },
    /// Flows that a file lists.
    Flows {
        /// Path of the file.
        path: PathBuf,
        /// Unit of start times; `None`: seconds if any of them has a fraction.
        start_unit: Option<StartUnitChoice>,
    },
    /// A job of dependent operations.
    Program(Box<ProgramSpec>),
    /// Several jobs, each with its own workload: [`super::Config::jobs`].
    Jobs,
    /// Jobs as wholes, over days: `fidelity.mode = "job"`.
    Cluster(Box<ClusterRun>),
}

/// The pattern of traffic: who sends to whom. `bytes` is the size of each flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Many senders to one receiver. `fan_in` 0: everyone else sends.
    Incast {
        /// Senders to a receiver.
        fan_in: u32,
        /// Number of receivers.
        receivers: u32,
        /// Bytes of each flow.
        bytes: u64,
    },
    /// Every rank sends to one other and receives from one.
    Permutation {
        /// Bytes of each flow.
        bytes: u64,
    },
    /// Clients write to or read from storage servers, which are the last `servers` ranks.
    Storage {
        /// Number of storage servers.
        servers: u32,
        /// Servers that an access is split over.
        stripes: u32,
        /// Bytes of each flow.
        bytes: u64,
        /// Whether clients read, not write.
        reads: bool,
        /// Time between two accesses of a client, ps.
        every_ps: u64,
        /// Time in which accesses begin, ps.
        duration_ps: u64,
    },
    /// Every rank sends to the one `stride` after it.
    Ring {
        /// Distance between sender and receiver.
        stride: u32,
        /// Bytes of each flow.
        bytes: u64,
    },
    /// Every rank sends to every other.
    AllToAll {
        /// Bytes of each flow.
        bytes: u64,
    },
    /// Flows that begin at random, with sizes from a distribution.
    Poisson {
        /// Share of the hosts' link rate, millionths.
        load_ppm: u32,
        /// Distribution of sizes.
        cdf: CdfChoice,
        /// Time in which flows begin, ps.
        duration_ps: u64,
    },
}

/// A flow-size distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CdfChoice {
    /// One of [`super::BUILT_IN_CDFS`].
    BuiltIn(&'static str),
    /// A file with a size and its cumulative probability a line.
    File(PathBuf),
}

/// Unit of a flow file's start times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartUnitChoice {
    /// Nanoseconds, as whole numbers.
    Ns,
    /// Seconds, with or without a fraction.
    S,
}

/// `[base.limits]`; `None`: no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitsSection {
    /// Simulated time, ps.
    pub sim_ps: Option<u64>,
    /// Number of packet-hops.
    pub packet_hops: Option<u64>,
    /// Wall time, ms.
    pub wall_ms: Option<u64>,
    /// Host memory, bytes.
    pub memory_bytes: Option<u64>,
}

/// `[base.output]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputSection {
    /// Whether `flows.csv` is written.
    pub flows: bool,
    /// Whether `links.csv` is written.
    pub links: bool,
    /// Whether round-trip times are sampled and written.
    pub rtt: bool,
    /// Whether mean round-trip times are written.
    pub rtt_means: bool,
    /// Samples over time; `None`: none are taken.
    pub series: Option<SeriesKeys>,
    /// Whether timelines are written.
    pub trace: bool,
    /// Whether each of several jobs is also simulated without the others.
    pub alone: bool,
    /// Whether each `[[job]]` is also left out once.
    pub leave_one_out: bool,
    /// Whether, for several jobs, each job and link that it shares gets a row.
    pub shared_links: bool,
    /// Whether each job of a cluster over days gets a row.
    pub cluster_jobs: bool,
    /// Whether the use of groups of servers in a cluster over days is written.
    pub cluster_map: bool,
    /// Whether each inference request gets a row.
    pub requests: bool,
}
