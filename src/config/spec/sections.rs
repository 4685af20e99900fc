//! The sections of a configuration as types, in integers.
//!
//! Layer: spec. Plain data: `config` fills it in and checks it.

use std::path::PathBuf;

use super::cluster::ClusterRun;
use super::gpu_links::LinkKind;
use super::named::Named;
use super::program::ProgramSpec;
use super::registered::RegisteredPolicy;
use hyperfold_network::transport::TierBuffers;

/// `[base.cluster]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSection {
    /// Number of GPUs; `None`: what the topology or flow file needs.
    pub gpus: Option<u32>,
    pub gpus_per_server: u32,
    pub nics_per_server: u32,
    /// Links of a NIC.
    pub nic_ports: u32,
    /// The server named by `cluster.server`, one of [`super::SERVERS`].
    pub server: Option<&'static str>,
    /// PCIe and NIC topology of one server in NCCL's XML form.
    pub server_xml: Option<PathBuf>,
    pub gpu: Named,
    /// GPU memory, bytes, instead of that in the GPU's specifications.
    pub gpu_memory_bytes: Option<u64>,
    /// Whether traffic inside a server crosses an NVSwitch as packets, instead of taking a calibrated time.
    pub nvlink_packets: bool,
    /// Rate of a GPU to the others of its server, all its links together, bps; 0: they use the network.
    pub nvlink_bps: u64,
    /// Latency one way, ps.
    pub nvlink_latency_ps: u64,
    /// What joins the GPUs of one server if no server says it: as in the GPU's own table, or a switch if the table says nothing.
    pub link_kind: LinkKind,
}

/// `[base.topology]`. Rates in bps (whole Mb/s), times in ps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologySection {
    pub kind: TopologyKind,
    pub link_bps: u64,
    pub uplink_bps: u64,
    pub link_delay_ps: u64,
    pub switch_latency_ps: u64,
    /// Oversubscription in thousandths: 1000 is 1:1.
    pub oversubscription_milli: u32,
    pub buffer_bytes: u64,
    /// Buffers of each tier; `None`: all tiers have `buffer_bytes`.
    pub tier_buffers: Option<TierBuffers>,
}

/// Shape of the network. A count of 0 leaves it to the generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyKind {
    FatTree {
        k: u32,
    },
    Clos {
        tiers: u32,
        hosts_per_leaf: u32,
        spines: u32,
        pods: u32,
        cores: u32,
    },
    /// At most one of `pods` and `servers_per_pod` is given: see [`TopologySection::pods`].
    RailOptimized {
        rails: u32,
        pods: u32,
        servers_per_pod: u32,
        spines: u32,
    },
    RailOnly {
        rails: u32,
    },
    File {
        path: PathBuf,
        format: TopologyFormatChoice,
    },
}

/// Format of a topology file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyFormatChoice {
    Ns3,
    SimAi,
    Htsim,
}

/// `[base.routing]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    pub policy: PolicyChoice,
    /// Seed of ECMP; 1 hashes as the reference does. Spraying uses [`super::Config::spray_seed`].
    pub seed: u32,
}

/// How packets choose among shortest paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyChoice {
    /// A routing policy, by its name.
    Named {
        name: String,
        max_paths: u32,
    },
    File {
        path: PathBuf,
    },
    /// A policy that a program registered.
    Registered(RegisteredPolicy),
}

/// `[base.workload]`. Generated traffic is seeded by [`super::Config::traffic_seed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadSection {
    Traffic {
        pattern: Pattern,
        /// Number of GPUs that take part, from rank 0; `None`: all.
        ranks: Option<u32>,
    },
    Flows {
        path: PathBuf,
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
        fan_in: u32,
        receivers: u32,
        bytes: u64,
    },
    Permutation {
        bytes: u64,
    },
    /// Clients write to or read from storage servers, which are the last `servers` ranks.
    Storage {
        servers: u32,
        stripes: u32,
        bytes: u64,
        reads: bool,
        every_ps: u64,
        duration_ps: u64,
    },
    Ring {
        stride: u32,
        bytes: u64,
    },
    AllToAll {
        bytes: u64,
    },
    Poisson {
        /// Share of the hosts' link rate, millionths.
        load_ppm: u32,
        cdf: CdfChoice,
        duration_ps: u64,
    },
}

/// A flow-size distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CdfChoice {
    /// One of [`super::BUILT_IN_CDFS`].
    BuiltIn(&'static str),
    File(PathBuf),
}

/// Unit of a flow file's start times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartUnitChoice {
    Ns,
    S,
}

/// `[base.limits]`; `None`: no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitsSection {
    pub sim_ps: Option<u64>,
    pub packet_hops: Option<u64>,
    pub wall_ms: Option<u64>,
    /// Host memory, bytes.
    pub memory_bytes: Option<u64>,
}

/// `[base.output]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputSection {
    pub flows: bool,
    pub links: bool,
    pub rtt: bool,
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

impl TopologySection {
    /// Returns the pods of a network of `servers` servers; 0 leaves them to the generator.
    pub fn pods(&self, servers: u32) -> u32 {
        match self.kind {
            TopologyKind::RailOptimized { servers_per_pod: per_pod @ 1.., .. } => servers.div_ceil(per_pod),
            TopologyKind::RailOptimized { pods, .. } | TopologyKind::Clos { pods, .. } => pods,
            _ => 0,
        }
    }
}
