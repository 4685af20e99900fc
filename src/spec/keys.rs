//! The key table: every key of `[base]`, declared once.
//!
//! Layer: spec. Order matters twice: the template and the reference print it, and a derived default may use what stands before it.
//! `LATER` names what INTERFACE promises for later versions, so that it is refused with that reason instead of as a typing error.

use super::derive;
use super::key::{Default as D, Key, Kind};
use super::value::Values;

macro_rules! keys {
    ($($id:ident $name:literal $kind:expr, $default:expr, $reads:expr, $doc:literal;)*) => {
        /// A key of `[base]`, by its position in the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum K { $($id),* }

        /// The number of keys.
        pub const N_KEYS: usize = [$($name),*].len();

        /// All declarations, in the order of [`K`].
        pub static KEYS: [Key; N_KEYS] = [
            $(Key { id: K::$id, name: $name, kind: $kind, default: $default, reads: $reads, decides: decides($name), doc: $doc }),*
        ];
    };
}

/// Output switches and the wall-clock limit decide nothing about the simulation itself.
const fn decides(name: &str) -> bool {
    let b = name.as_bytes();
    !(b[0] == b'o' || matches!(b, b"limits.wall_s"))
}

const fn int(min: i64, max: i64) -> Kind {
    Kind::Int { min, max }
}
const fn num(min: f64, max: f64) -> Kind {
    Kind::Float { min, max, quantum: 0.0 }
}
const fn stepped(min: f64, max: f64, quantum: f64) -> Kind {
    Kind::Float { min, max, quantum }
}
const fn one_of(now: &'static [&'static str], later: &'static [&'static str]) -> Kind {
    Kind::Choice { now, later }
}

/// Link rates are whole Mb/s, up to 2^43 bps.
const LINK_GBPS: Kind = stepped(0.001, 8796.0, 0.001);
/// Rates of congestion control are whole bps.
const RATE_MBPS: Kind = stepped(0.000_001, 8_796_000.0, 0.000_001);
const DELAY_US: Kind = stepped(0.000_001, 1_000_000.0, 0.000_001);
const DELAY_US_OR_0: Kind = stepped(0.0, 1_000_000.0, 0.000_001);
const COUNT: i64 = 1 << 20;
const BYTES_MAX: i64 = 1 << 40;

fn always(_: &Values) -> bool {
    true
}
fn never(_: &Values) -> bool {
    false
}
fn generated(v: &Values) -> bool {
    !v.is(K::TopologyKind, "file")
}
fn topology(v: &Values, kind: &str) -> bool {
    v.is(K::TopologyKind, kind)
}
fn cc(v: &Values, cc: &str) -> bool {
    v.is(K::Cc, cc)
}
fn traffic(v: &Values) -> bool {
    v.is(K::WorkloadKind, "traffic")
}
fn pattern(v: &Values, pattern: &str) -> bool {
    traffic(v) && v.is(K::Pattern, pattern)
}

keys! {
    Gpus "cluster.gpus" int(0, COUNT), D::Derived(derive::gpus, "what the workload or the topology file needs, else 128"),
        generated, "GPUs in the network; 0 is the default";
    GpusPerServer "cluster.gpus_per_server" int(1, 1024), D::Int(8), generated, "GPUs in one server";
    Gpu "cluster.gpu" Kind::Text, D::Text("h100"), never, "accelerator; network traffic alone does not depend on it";
    NicsPerServer "cluster.nics_per_server" int(1, 1024), D::Derived(derive::nics_per_server, "one a GPU"),
        generated, "network ports of one server, at most one a GPU; with fewer, neighbouring GPUs share one";
    NvlinkGbps "cluster.nvlink_gbps" stepped(0.0, 8796.0, 0.001), D::Float(3600.0), generated,
        "rate between GPUs of one server, analytical; 0: none, they use the network";
    NvlinkLatencyNs "cluster.nvlink_latency_ns" stepped(0.001, 1e9, 0.001), D::Float(500.0), |v| generated(v) && v.float(K::NvlinkGbps) > 0.0,
        "one-way latency between GPUs of one server (our choice)";

    TopologyKind "topology.kind" one_of(&["fat-tree", "clos", "rail-optimized", "rail-only", "file"],
        &["dragonfly", "torus", "bcube", "hpn", "dcn-plus", "spectrum-x"]), D::Choice("rail-optimized"), always, "shape of the network";
    TopologyPath "topology.path" Kind::Path, D::None("required with kind = \"file\""), |v| topology(v, "file"), "topology file";
    TopologyFormat "topology.format" one_of(&["ns3", "simai", "htsim"], &[]), D::Choice("ns3"), |v| topology(v, "file"), "form of the topology file";
    LinkGbps "topology.link_gbps" LINK_GBPS, D::Float(400.0), generated, "rate of links between hosts and switches";
    UplinkGbps "topology.uplink_gbps" LINK_GBPS, D::Float(400.0), |v| generated(v) && !topology(v, "rail-only"), "rate of links between switches";
    LinkDelayNs "topology.link_delay_ns" stepped(0.001, 1e9, 0.001), D::Float(1000.0), generated, "propagation delay of a link, one way";
    SwitchLatencyNs "topology.switch_latency_ns" stepped(0.0, 1e9, 0.001), D::Float(0.0), generated, "added to the delay of links into a switch";
    Oversubscription "topology.oversubscription" stepped(0.001, 1000.0, 0.001), D::Float(1.0),
        |v| topology(v, "clos") || topology(v, "rail-optimized"), "rate into a leaf from hosts over its rate to the tier above";
    BufferMib "topology.buffer_mib" stepped(0.001, 65536.0, 0.001), D::Float(32.0), always, "shared packet buffer of a switch";
    FatTreeK "topology.k" int(0, 256), D::Int(0), |v| topology(v, "fat-tree"), "ports of a fat-tree's switches, even; 0: the least that fits the GPUs";
    Tiers "topology.tiers" int(2, 3), D::Int(2), |v| topology(v, "clos"), "tiers of switches of a Clos network";
    HostsPerLeaf "topology.hosts_per_leaf" int(0, COUNT), D::Int(0), |v| topology(v, "clos"), "host ports of a leaf of a Clos network; 0: chosen";
    Pods "topology.pods" int(0, COUNT), D::Int(0), |v| topology(v, "rail-optimized") || (topology(v, "clos") && v.int(K::Tiers) == 3),
        "groups of leaves; 0: chosen";
    Spines "topology.spines" int(0, COUNT), D::Int(0), |v| topology(v, "clos") || topology(v, "rail-optimized"),
        "switches above the leaves, in a Clos network of three tiers those of one pod; 0: chosen by oversubscription";
    Cores "topology.cores" int(0, COUNT), D::Int(0), |v| topology(v, "clos") && v.int(K::Tiers) == 3, "switches of a Clos network's third tier; 0: chosen";
    Rails "topology.rails" int(0, 1024), D::Int(0), |v| topology(v, "rail-optimized") || topology(v, "rail-only"),
        "leaves a pod, or switches of a rail-only network; 0: cluster.nics_per_server";
    ServersPerPod "topology.servers_per_pod" int(0, COUNT), D::Int(0), |v| topology(v, "rail-optimized"), "servers of one pod, instead of pods; 0: chosen";

    Policy "routing.policy" one_of(&["ecmp", "spray", "file"], &["flowlet", "adaptive"]), D::Choice("ecmp"), always, "how packets choose among shortest paths";
    RoutingSeed "routing.seed" int(0, u32::MAX as i64), D::Int(1), |v| !v.is(K::Policy, "file"), "seed of ECMP's hash (1: the reference's own) and of spraying";
    RoutingPath "routing.path" Kind::Path, D::None("required with policy = \"file\""), |v| v.is(K::Policy, "file"), "routes file";
    MaxPaths "routing.max_paths" int(1, 65536), D::Int(64), |v| v.is(K::Policy, "spray"), "most paths a flow is sprayed over";

    Cc "transport.cc" one_of(&["none", "dcqcn", "hpcc", "timely", "dctcp"], &["swift"]), D::Choice("hpcc"), always, "congestion control";
    PayloadBytes "transport.payload_bytes" int(1, 65000), D::Int(1000), always, "payload of a full packet";
    Pfc "transport.pfc" Kind::Bool, D::Bool(true), always, "priority flow control: pause frames instead of loss";
    PfcAlphaShift "transport.pfc_alpha_shift" int(0, 30), D::Int(3), always, "dynamic threshold: free buffer shifted right by this";
    PfcReserveBytes "transport.pfc_reserve_bytes" int(0, 1 << 30), D::Int(4096), always, "buffer reserved to each port";
    PfcResumeOffsetBytes "transport.pfc_resume_offset_bytes" int(0, 1 << 30), D::Int(3072), |v| v.bool(K::Pfc), "a port resumes this far below its threshold";
    Ecn "transport.ecn" Kind::Bool, D::Bool(true), always, "switches mark packets";
    EcnKminKb "transport.ecn_kmin_kb" stepped(0.0, 1e7, 0.001), D::Derived(derive::ecn_kmin, "400; with dctcp its k_kb"), |v| v.bool(K::Ecn),
        "queue where marking starts, units of 1000 B per 100 Gb/s of link rate";
    EcnKmaxKb "transport.ecn_kmax_kb" stepped(0.0, 1e7, 0.001), D::Derived(derive::ecn_kmax, "1600; with dctcp its k_kb"), |v| v.bool(K::Ecn),
        "queue above which every packet is marked, units of 1000 B per 100 Gb/s of link rate";
    EcnPmax "transport.ecn_pmax" num(0.0, 1.0), D::Derived(derive::ecn_pmax, "0.2; with dctcp 1"), |v| v.bool(K::Ecn), "marking probability at kmax";
    EcnByRate "transport.ecn_by_rate" Kind::Text, D::None("none"), |v| v.bool(K::Ecn),
        "thresholds of exact link rates, `gbps kmin_kb kmax_kb pmax; ...`; what is written in ecn_kmin_kb, ecn_kmax_kb, ecn_pmax wins";
    Window "transport.window" Kind::Bool, D::Derived(derive::window, "true with hpcc and dctcp"), always, "bytes in flight limited to the bandwidth-delay product";
    VarWindow "transport.var_window" Kind::Bool, D::Derived(derive::window, "true with hpcc and dctcp"), |v| v.bool(K::Window), "the window shrinks with the rate";
    GlobalRtt "transport.global_rtt" Kind::Bool, D::Bool(true), |v| v.bool(K::Window) || cc(v, "hpcc"),
        "base RTT and window: the largest over all pairs of hosts, else each flow's own";
    FreshQp "transport.fresh_qp" Kind::Bool, D::Bool(false), never, "collectives: each message starts with fresh congestion-control state; flows always do";
    Clock "transport.clock" one_of(&["ps", "ns"], &[]), D::Choice("ps"), always, "\"ns\" rounds every transmission to the nearest nanosecond, as the reference does";
    AckIntervalBytes "transport.ack_interval_bytes" int(1, BYTES_MAX), D::Int(1), always, "bytes from one ACK to the next";
    AckChunkBytes "transport.ack_chunk_bytes" int(0, BYTES_MAX), D::Int(4000), |v| v.int(K::AckIntervalBytes) > 1,
        "an ACK is due also at multiples of this; 0: never";
    AckHighPrio "transport.ack_high_prio" Kind::Bool, D::Derived(derive::ack_high_prio, "true with dcqcn and timely"), |v| v.bool(K::Pfc),
        "a NIC's ACKs are not held by pauses of the data class";
    RateBound "transport.rate_bound" Kind::Bool, D::Bool(true), always, "packets are paced at the flow's rate, else only limited by windows";
    MinRateMbps "transport.min_rate_mbps" RATE_MBPS, D::Float(1000.0), |v| !cc(v, "none"), "least rate of a flow";
    NackIntervalUs "transport.nack_interval_us" DELAY_US_OR_0, D::Float(500.0), always, "least time between two NACKs for one byte";
    CnpIntervalUs "transport.cnp_interval_us" DELAY_US_OR_0, D::Float(0.0), |v| v.bool(K::Ecn) && (cc(v, "dcqcn") || cc(v, "dctcp")),
        "least time between two congestion notifications of a flow; 0: every marked packet gives one";
    RtoUs "transport.rto_us" DELAY_US_OR_0, D::Derived(derive::rto_us, "4194 without PFC, 67109 with"), always, "retransmission timeout; 0 is the default, raised to four base round trips where that is longer";
    RtoRetries "transport.rto_retries" int(0, 1_000_000), D::Int(7), always, "timeouts in a row after which a flow gives up";
    TransportSeed "transport.seed" int(0, i64::MAX), D::Int(1), |v| v.bool(K::Ecn), "mixed into the seed of marking";
    TransportConfig "transport.config" Kind::Path, D::None("none"), always, "configuration file of HPCC or SimAI; keys written in the sweep file win over it";
    TransportFormat "transport.format" one_of(&["ns3"], &[]), D::Choice("ns3"), |v| v.given(K::TransportConfig), "form of the configuration file";
    DcqcnG "transport.dcqcn.g" num(0.0, 1.0), D::Float(1.0 / 256.0), |v| cc(v, "dcqcn"), "gain of alpha";
    DcqcnAlphaUs "transport.dcqcn.alpha_us" DELAY_US, D::Float(1.0), |v| cc(v, "dcqcn"), "period of alpha's update";
    DcqcnDecreaseUs "transport.dcqcn.decrease_us" DELAY_US, D::Float(4.0), |v| cc(v, "dcqcn"), "period of rate decreases";
    DcqcnIncreaseUs "transport.dcqcn.increase_us" DELAY_US, D::Float(300.0), |v| cc(v, "dcqcn"), "period of rate increases";
    DcqcnFastRecovery "transport.dcqcn.fast_recovery" int(0, 1_000_000), D::Int(1), |v| cc(v, "dcqcn"), "increases before the target rises";
    DcqcnRaiMbps "transport.dcqcn.rai_mbps" RATE_MBPS, D::None("20 per 100 Gb/s of NIC rate"), |v| cc(v, "dcqcn"), "additive increase";
    DcqcnRhaiMbps "transport.dcqcn.rhai_mbps" RATE_MBPS, D::None("200 per 100 Gb/s of NIC rate"), |v| cc(v, "dcqcn"), "hyper increase";
    DcqcnClamp "transport.dcqcn.clamp" Kind::Bool, D::Bool(false), |v| cc(v, "dcqcn"), "every decrease lowers the target too";
    HpccEta "transport.hpcc.eta" num(0.01, 2.0), D::Float(0.95), |v| cc(v, "hpcc"), "target utilisation";
    HpccMiThresh "transport.hpcc.mi_thresh" int(0, 1_000_000), D::Int(0), |v| cc(v, "hpcc"), "additive increases before a multiplicative one";
    HpccRaiMbps "transport.hpcc.rai_mbps" RATE_MBPS, D::None("40 per 100 Gb/s of NIC rate"), |v| cc(v, "hpcc"), "additive increase";
    HpccIntMulti "transport.hpcc.int_multi" int(1, 1024), D::None("the NIC rate in 25 Gb/s, at least 1"), |v| cc(v, "hpcc"), "coarseness of the telemetry's byte counts";
    HpccFastReact "transport.hpcc.fast_react" Kind::Bool, D::Bool(true), |v| cc(v, "hpcc"), "react to every ACK, not once a round trip";
    TimelyAlpha "transport.timely.alpha" num(0.0, 1.0), D::Float(0.875), |v| cc(v, "timely"), "weight of a new round-trip difference";
    TimelyBeta "transport.timely.beta" num(0.0, 1.0), D::Float(0.8), |v| cc(v, "timely"), "multiplicative decrease";
    TimelyTLowUs "transport.timely.t_low_us" DELAY_US, D::Float(50.0), |v| cc(v, "timely"), "round trip below which rates rise";
    TimelyTHighUs "transport.timely.t_high_us" DELAY_US, D::Float(500.0), |v| cc(v, "timely"), "round trip above which rates fall";
    TimelyMinRttUs "transport.timely.min_rtt_us" DELAY_US, D::Float(20.0), |v| cc(v, "timely"), "unit of the round-trip gradient";
    TimelyRaiMbps "transport.timely.rai_mbps" RATE_MBPS, D::None("100 per 100 Gb/s of NIC rate"), |v| cc(v, "timely"), "additive increase";
    TimelyRhaiMbps "transport.timely.rhai_mbps" RATE_MBPS, D::None("500 per 100 Gb/s of NIC rate"), |v| cc(v, "timely"), "hyper increase";
    DctcpG "transport.dctcp.g" num(0.0, 1.0), D::Float(0.0625), |v| cc(v, "dctcp"), "gain of alpha";
    DctcpRaiMbps "transport.dctcp.rai_mbps" RATE_MBPS, D::Float(615.0), |v| cc(v, "dctcp"), "additive increase";
    DctcpKKb "transport.dctcp.k_kb" stepped(0.0, 1e7, 0.001), D::Float(300.0),
        |v| cc(v, "dctcp") && v.bool(K::Ecn) && !(v.given(K::EcnKminKb) && v.given(K::EcnKmaxKb)), "marking threshold, units of 1000 B per 100 Gb/s of link rate";

    WorkloadKind "workload.kind" one_of(&["traffic", "flows"], &["model", "collective", "simai", "chakra", "htsim", "goal"]),
        D::None("required"), always, "what is sent";
    Iterations "workload.iterations" int(1, 1), D::Int(1), never, "traffic and flow files run once; more come with training workloads";
    Pattern "workload.pattern" one_of(&["incast", "permutation", "ring", "all-to-all", "poisson"], &[]), D::None("required with kind = \"traffic\""), traffic, "who sends to whom";
    Bytes "workload.bytes" int(1, BYTES_MAX), D::Int(1_000_000), |v| traffic(v) && !v.is(K::Pattern, "poisson"), "size of each flow";
    Ranks "workload.ranks" int(0, COUNT), D::Int(0), traffic, "GPUs that take part, from rank 0; 0: all";
    FanIn "workload.fan_in" int(0, COUNT), D::Int(8), |v| pattern(v, "incast"), "senders to each receiver; 0: everyone else";
    Receivers "workload.receivers" int(1, COUNT), D::Int(1), |v| pattern(v, "incast"), "receivers, spread evenly from rank 0";
    Stride "workload.stride" int(1, COUNT), D::Int(1), |v| pattern(v, "ring"), "rank i sends to rank i + stride";
    Load "workload.load" num(0.001, 1.0), D::Float(0.5), |v| pattern(v, "poisson"), "share of the hosts' link rate";
    Cdf "workload.cdf" Kind::Text, D::Text("WebSearch"), |v| pattern(v, "poisson"),
        "flow sizes: \"WebSearch\", \"FbHdp\", \"AliStorage2019\", \"GoogleRPC2008\" or a file";
    DurationNs "workload.duration_ns" int(1, 1_000_000_000_000), D::Int(1_000_000), |v| pattern(v, "poisson"), "time in which flows arrive";
    WorkloadSeed "workload.seed" int(0, i64::MAX), D::Int(1), |v| pattern(v, "poisson") || pattern(v, "permutation") || pattern(v, "incast"),
        "mixed into the seed of pairs, sizes and arrivals";
    WorkloadPath "workload.path" Kind::Path, D::None("required with kind = \"flows\""), |v| v.is(K::WorkloadKind, "flows"), "flow file";
    WorkloadFormat "workload.format" one_of(&["ns3"], &["htsim"]), D::Choice("ns3"), |v| v.is(K::WorkloadKind, "flows"), "form of the flow file";
    StartUnit "workload.start_unit" one_of(&["ns", "s"], &[]), D::None("seconds if any start has a fraction"), |v| v.is(K::WorkloadKind, "flows"),
        "unit of the flow file's start times; needed where all are whole numbers";

    Mode "fidelity.mode" one_of(&["packet"], &["flow", "job"]), D::Choice("packet"), never, "level of detail";
    FastForward "fidelity.fast_forward" one_of(&["steady", "exact", "off"], &[]), D::Choice("steady"), never,
        "how much may be folded; this version simulates everything, which is within every bound";
    Memo "fidelity.memo" Kind::Bool, D::Bool(true), never, "reuse of what was simulated before; this version simulates everything";
    SteadyTheta "fidelity.steady_theta" num(0.0, 1.0), D::Float(0.05), never, "bound of the fluctuation of a steady rate";
    SteadySamples "fidelity.steady_samples" int(1, 1_000_000_000), D::Int(2000), never, "intervals in the window of a steady rate";
    SteadyIntervalNs "fidelity.steady_interval_ns" int(0, 1_000_000_000), D::Int(0), never, "interval of a steady rate's samples; 0: chosen";

    SimNs "limits.sim_ns" int(0, 1_000_000_000_000_000), D::Int(0), always, "simulated time after which an experiment fails; 0: none";
    PacketHops "limits.packet_hops" int(0, i64::MAX), D::Int(0), always, "packet-hops after which an experiment fails; 0: none";
    WallS "limits.wall_s" stepped(0.0, 1e9, 0.001), D::Float(0.0), always, "seconds on the clock after which an experiment fails; 0: none";

    OutFlows "output.flows" Kind::Bool, D::Bool(false), always, "write flows.csv";
    OutLinks "output.links" Kind::Bool, D::Bool(false), always, "write links.csv";
    OutRtt "output.rtt" Kind::Bool, D::Bool(false), always, "write rtt.csv";
    OutTrace "output.trace" Kind::Off, D::Bool(false), never, "write a timeline";
}

/// The sections of `[base]` and what each is about, in the order they are printed.
pub const SECTIONS: &[(&str, &str)] = &[
    ("cluster", "the machines"),
    ("topology", "the network between them"),
    ("routing", "paths"),
    ("transport", "sending, marking, pausing; each congestion control has its own table below"),
    ("workload", "what is sent"),
    ("fidelity", "how exactly it is simulated"),
    ("limits", "reaching one fails that experiment with \"limit: ...\""),
    ("output", "files beside results.csv"),
];

/// Flow-size distributions that come with the program; any other `workload.cdf` is a file.
pub const BUILT_IN_CDFS: [&str; 4] = ["WebSearch", "FbHdp", "AliStorage2019", "GoogleRPC2008"];

/// The built-in distribution of this name, in any case of letters.
pub fn built_in_cdf(name: &str) -> Option<&'static str> {
    BUILT_IN_CDFS.into_iter().find(|b| b.eq_ignore_ascii_case(name))
}

/// Known names (and everything below them) that later versions bring, with what to use now.
pub const LATER: &[(&str, &str)] = {
    const W: &str = "available workloads: kind = \"traffic\" and kind = \"flows\"";
    const T: &str = "available topologies: fat-tree, clos, rail-optimized, rail-only, file";
    const C: &str = "available congestion controls: none, dcqcn, hpcc, timely, dctcp";
    &[
        ("workload.model", W),
        ("workload.tp", W),
        ("workload.pp", W),
        ("workload.dp", W),
        ("workload.ep", W),
        ("workload.cp", W),
        ("workload.vpp", W),
        ("workload.microbatch", W),
        ("workload.global_batch", W),
        ("workload.recompute", W),
        ("workload.zero", W),
        ("workload.framework", W),
        ("workload.compute_jitter", W),
        ("workload.expert_skew", W),
        ("workload.op", W),
        ("workload.algorithm", W),
        ("topology.dims", T),
        ("topology.planes", T),
        ("topology.groups", T),
        ("transport.swift", C),
        ("routing.flowlet", "available policies: ecmp, spray, file"),
        ("routing.adaptive", "available policies: ecmp, spray, file"),
    ]
};
