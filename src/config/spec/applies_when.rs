//! Predicates over the values of all keys that say when a key matters, for the `applies_when` column of the key table.
//!
//! Layer: spec. A key that nothing reads is reported as having no effect and left out of an experiment's identity, so these must be exact.

use std::sync::LazyLock;

use super::key_id::{KEY_IDS, KeyId, N_KEYS};
use super::schedules::ScheduleChoice;
use super::traffic_classes::has_lossy;
use super::value::{Value, Values};

pub(super) fn always(_: &Values) -> bool {
    true
}
pub(super) fn never(_: &Values) -> bool {
    false
}
/// Whether packets are simulated. Other experiments have no congestion control, no buffers and no pauses.
pub(super) fn packets(v: &Values) -> bool {
    v.is(KeyId::Mode, "packet") || (job_mode(v) && v.is(KeyId::IterationsAt, "packet"))
}
/// Whether the ports of a switch share its packet buffer.
pub(super) fn shares_buffer(v: &Values) -> bool {
    packets(v) && !v.bool(KeyId::PortQueue)
}
/// Whether switches watch pauses.
pub(super) fn pfc_watchdog(v: &Values) -> bool {
    packets(v) && v.bool(KeyId::Pfc) && !v.is(KeyId::PfcWatchdog, "off")
}
/// Whether some packets that switches would mark may be dropped instead, as nothing pauses their senders.
pub(super) fn wred_drops(v: &Values) -> bool {
    let may_lose = !v.bool(KeyId::Pfc) || has_lossy(v.text(KeyId::Classes));
    packets(v) && v.bool(KeyId::Ecn) && may_lose && !v.bool(KeyId::PortQueue)
}

/// Whether the congestion control is one of Ultra Ethernet, with that transport's packets, receivers and switches.
pub(super) fn ultra_ethernet(v: &Values) -> bool {
    v.is(KeyId::Cc, "nscc") || v.is(KeyId::Cc, "rccc")
}
/// Whether senders need credit from their receivers.
pub(super) fn receiver_credit(v: &Values) -> bool {
    packets(v) && ultra_ethernet(v) && v.bool(KeyId::ReceiverCredit)
}
/// Whether packets belong to operations that depend on each other, and so repeat.
pub(super) fn folded(v: &Values) -> bool {
    packets(v) && (program(v) || job_mode(v))
}
/// Whether it is a cluster over days in which iterations of jobs are simulated.
pub(super) fn measured_iterations(v: &Values) -> bool {
    job_mode(v) && !v.is(KeyId::IterationsAt, "none")
}
/// Whether a key without a default was given.
pub(super) fn set(v: &Values, key: KeyId) -> bool {
    *v.get(key) != Value::Unset
}
pub(super) fn generated(v: &Values) -> bool {
    !v.is(KeyId::TopologyKind, "file")
}
/// Whether the key of the server matters. With a network from a file it decides payloads, queue pairs and costs of collectives if it is given.
pub(super) fn names_server(v: &Values) -> bool {
    generated(v) || v.has(KeyId::Server)
}
/// Whether GPUs of a server have links: a rate above 0, or one from the file of the GPU.
pub(super) fn linked(v: &Values) -> bool {
    generated(v) && (*v.get(KeyId::NvlinkGbps) == Value::Unset || v.float(KeyId::NvlinkGbps) > 0.0)
}
/// Whether the topology has a tier between leaves and top.
pub(super) fn three_tiers(v: &Values) -> bool {
    topology(v, "fat-tree") || cores_may_be_set(v)
}
/// Whether the number of tiers is a choice: in a Clos network, and in those whose segments a third tier may join in pods.
pub(super) fn two_or_three_tiers(v: &Values) -> bool {
    clos(v) || topology(v, "hpn") || topology(v, "dcn-plus")
}
/// Whether the topology has a third tier whose switches are counted by a key.
pub(super) fn cores_may_be_set(v: &Values) -> bool {
    two_or_three_tiers(v) && v.int(KeyId::Tiers) == 3
}
/// Whether the topology has switches without hosts, in a tier of their own.
pub(super) fn several_tiers(v: &Values) -> bool {
    let one_tier = ["rail-only", "dragonfly", "slim-fly", "optical"].iter().any(|kind| topology(v, kind)) || grid(v);
    generated(v) && (!one_tier || several_sites(v))
}
/// Whether the topology is a Clos network, in one plane or several.
pub(super) fn clos(v: &Values) -> bool {
    topology(v, "clos") || topology(v, "multi-plane")
}
/// Whether the topology is of segments, with a leaf for each port of a NIC.
pub(super) fn segments(v: &Values) -> bool {
    ["hpn", "dcn-plus", "spectrum-x"].iter().any(|kind| topology(v, kind))
}
/// Whether the ports of a NIC lead to different leaves by design.
pub(super) fn leaf_of_each_port(v: &Values) -> bool {
    ["hpn", "dcn-plus", "multi-plane"].iter().any(|kind| topology(v, kind))
}
/// Whether something of the network may fail, packet by packet or flow by flow.
pub(super) fn has_outages(v: &Values) -> bool {
    (packets(v) || v.is(KeyId::Mode, "flow")) && v.has(KeyId::Outages)
}
/// Whether the topology may have less rate out of a leaf than into it.
pub(super) fn oversubscribed(v: &Values) -> bool {
    clos(v) || segments(v) || topology(v, "rail-optimized") || topology(v, "optical")
}
pub(super) fn dragonflies(v: &Values) -> bool {
    topology(v, "dragonfly") || topology(v, "dragonfly-plus")
}
/// Whether the topology is over coordinates.
pub(super) fn grid(v: &Values) -> bool {
    ["torus", "mesh", "hyperx"].iter().any(|kind| topology(v, kind))
}
/// Whether clusters are joined by long links.
pub(super) fn several_sites(v: &Values) -> bool {
    generated(v) && v.int(KeyId::Sites) > 1
}
/// Whether servers may have NVLink: in generated networks, and in files that describe the inside of servers.
pub(super) fn has_nvlink(v: &Values) -> bool {
    match generated(v) {
        true => linked(v),
        false => v.is(KeyId::TopologyFormat, "simai") || v.is(KeyId::TopologyFormat, "infragraph"),
    }
}
/// Whether `cluster.nvlink` is read. Generated traffic and flow files read it only where it has their packets simulated inside servers, too.
pub(super) fn nvlink_choice(v: &Values) -> bool {
    has_nvlink(v) && (program(v) || v.is(KeyId::Nvlink, "packet"))
}
pub(super) fn topology(v: &Values, kind: &str) -> bool {
    v.is(KeyId::TopologyKind, kind)
}
pub(super) fn cc(v: &Values, cc: &str) -> bool {
    v.is(KeyId::Cc, cc)
}
pub(super) fn traffic(v: &Values) -> bool {
    v.is(KeyId::WorkloadKind, "traffic")
}
pub(super) fn pattern(v: &Values, pattern: &str) -> bool {
    traffic(v) && v.is(KeyId::Pattern, pattern)
}

/// Whether a cluster's jobs are generated, not listed in a trace.
pub(super) fn generated_jobs(v: &Values) -> bool {
    !v.is(KeyId::JobsSource, "trace")
}
pub(super) fn uniform_jobs(v: &Values) -> bool {
    v.is(KeyId::JobsSource, "uniform")
}
/// Whether a cluster's jobs are of the classes of `[[job]]` tables.
pub(super) fn classes_of_jobs(v: &Values) -> bool {
    job_mode(v) && v.is(KeyId::JobsSource, "classes")
}
/// Whether it is a cluster over days in which iterations of jobs without classes are simulated.
pub(super) fn rings(v: &Values) -> bool {
    measured_iterations(v) && !classes_of_jobs(v)
}
/// Whether flows have fair rates, in the experiment or in iterations of a cluster's jobs.
pub(super) fn flows(v: &Values) -> bool {
    v.is(KeyId::Mode, "flow") || (job_mode(v) && v.is(KeyId::IterationsAt, "flow"))
}
/// Whether failures are drawn, not listed in a trace.
pub(super) fn drawn_failures(v: &Values) -> bool {
    !v.is(KeyId::FailuresModel, "trace")
}
pub(super) fn drained(v: &Values) -> bool {
    v.float(KeyId::DrainEveryH) > 0.0
}
/// Whether the cluster's price is related to its work.
pub(super) fn priced(v: &Values) -> bool {
    transformer(v) || job_mode(v)
}
/// Whether it is a cluster over days, with jobs as wholes.
pub(super) fn job_mode(v: &Values) -> bool {
    v.is(KeyId::Mode, "job")
}

/// Sections that only `fidelity.mode = "job"` reads.
const OF_CLUSTERS: [&str; 4] = ["jobs", "scheduler", "checkpoint", "failures"];
/// Sections that `fidelity.mode = "job"` does not read at all.
const OF_PACKETS: [&str; 2] = ["workload", "job"];
/// Sections that `fidelity.mode = "job"` reads only if it simulates iterations.
const OF_ITERATIONS: [&str; 3] = ["routing", "transport", "fidelity"];
/// Keys of other sections that `fidelity.mode = "job"` reads only if it simulates iterations.
const OF_ITERATIONS_TOO: [KeyId; 5] =
    [KeyId::LinkDelayNs, KeyId::UplinkDelayNs, KeyId::CoreDelayNs, KeyId::SwitchLatencyNs, KeyId::BufferMib];
/// Keys of other sections that `fidelity.mode = "job"` does not read.
const OF_PACKETS_TOO: [KeyId; 28] = [
    KeyId::Switch,
    KeyId::Outages,
    KeyId::PortFailover,
    KeyId::RerouteUs,
    KeyId::BaseTimeNs,
    KeyId::BaseTimeAcrossNs,
    KeyId::GpuMemoryGib,
    KeyId::NvlinkGbps,
    KeyId::NvlinkLatencyNs,
    KeyId::Nvlink,
    KeyId::ServerXml,
    KeyId::Audit,
    KeyId::AuditBound,
    KeyId::LeafBufferMib,
    KeyId::AggBufferMib,
    KeyId::SpineBufferMib,
    KeyId::SimNs,
    KeyId::PacketHops,
    KeyId::OutFlows,
    KeyId::OutLinks,
    KeyId::OutRtt,
    KeyId::OutRttMeans,
    KeyId::OutSeries,
    KeyId::SeriesLinks,
    KeyId::SeriesIntervalUs,
    KeyId::SeriesCap,
    KeyId::OutSharedLinks,
    KeyId::Alone,
];
/// Keys of `OF_PACKETS_TOO` that classes of its jobs read.
const OF_CLASSES: [KeyId; 6] = [
    KeyId::GpuMemoryGib,
    KeyId::NvlinkGbps,
    KeyId::NvlinkLatencyNs,
    KeyId::ServerXml,
    KeyId::BaseTimeNs,
    KeyId::BaseTimeAcrossNs,
];

/// The levels of detail (`fidelity.mode`) that may read a key. It follows from the key's name, so it is worked out once.
#[derive(Clone, Copy)]
struct LevelsOfKey {
    is_of_clusters: bool,
    is_of_packets: bool,
    is_of_iterations: bool,
    is_of_classes: bool,
}

impl LevelsOfKey {
    fn new(id: KeyId, name: &str) -> LevelsOfKey {
        let section = name.split('.').next().unwrap_or(name);
        let is_of_packet_section = OF_PACKETS.contains(&section);
        LevelsOfKey {
            is_of_clusters: OF_CLUSTERS.contains(&section),
            is_of_packets: is_of_packet_section || OF_PACKETS_TOO.contains(&id),
            is_of_iterations: (OF_ITERATIONS.contains(&section) || OF_ITERATIONS_TOO.contains(&id))
                && id != KeyId::Mode,
            is_of_classes: is_of_packet_section || OF_CLASSES.contains(&id),
        }
    }
}

/// One entry per key, in the order of the key table.
static LEVELS: LazyLock<[LevelsOfKey; N_KEYS]> = LazyLock::new(|| KEY_IDS.map(|key| LevelsOfKey::new(key, key.name())));

/// Whether a key may have an effect at the level of detail (`fidelity.mode`).
pub(super) fn mode_reads(v: &Values, id: KeyId) -> bool {
    let levels = LEVELS[id as usize];
    if !job_mode(v) {
        return !levels.is_of_clusters;
    }
    let is_out = levels.is_of_iterations && !measured_iterations(v);
    (!levels.is_of_packets || v.is_of_job() && levels.is_of_classes) && !is_out
}

/// Whether the values are those of one of several jobs.
pub(super) fn in_job(v: &Values) -> bool {
    v.is_of_job()
}
/// Whether it is one of several jobs on one network. A class of jobs of a cluster over days is not.
pub(super) fn beside_others(v: &Values) -> bool {
    in_job(v) && !job_mode(v)
}
/// Whether it is a job that gets free GPUs by chance.
pub(super) fn by_chance(v: &Values) -> bool {
    beside_others(v) && v.is(KeyId::JobPlacement, "random")
}
/// Whether it is flows that depend on nothing.
pub(super) fn flows_alone(v: &Values) -> bool {
    traffic(v) || v.is(KeyId::WorkloadKind, "flows")
}

/// Whether it is a job of dependent operations rather than plain flows.
pub(super) fn program(v: &Values) -> bool {
    transformer(v) || collective(v) || imported(v)
}
/// Whether it is a program that repeats an iteration.
pub(super) fn iterates(v: &Values) -> bool {
    program(v) && !inference(v)
}
/// Whether it is a model that serves requests.
pub(super) fn inference(v: &Values) -> bool {
    v.is(KeyId::WorkloadKind, "inference")
}
/// Whether it is a model that is trained or serves requests.
pub(super) fn transformer(v: &Values) -> bool {
    model(v) || inference(v)
}
/// Whether prefill and decode run on separate GPUs.
pub(super) fn disaggregated(v: &Values) -> bool {
    inference(v) && v.is(KeyId::Serving, "disaggregated")
}
/// Whether requests come from `source`, a generator or a trace.
pub(super) fn requests(v: &Values, source: &str) -> bool {
    inference(v) && v.is(KeyId::Requests, source)
}
/// Whether requests of inference may have prefixes in common.
pub(super) fn prefixes(v: &Values) -> bool {
    inference(v) && (v.int(KeyId::PrefixTokens) > 0 || v.is(KeyId::Requests, "trace"))
}
/// Whether inference drafts tokens.
pub(super) fn drafts(v: &Values) -> bool {
    inference(v) && v.int(KeyId::DraftTokens) > 0
}
/// Whether instances of inference share experts.
pub(super) fn shared_experts(v: &Values) -> bool {
    inference(v) && (v.int(KeyId::Ep) > 1 || (disaggregated(v) && v.int(KeyId::PrefillEp) > 1))
}
/// Whether it is a job whose steady phases are skipped.
pub(super) fn steady(v: &Values) -> bool {
    folded(v) && (v.is(KeyId::FastForward, "steady") || v.is(KeyId::FastForward, "rates"))
}
/// Whether it is an exchange of tokens with experts alone.
pub(super) fn expert_op(v: &Values) -> bool {
    collective(v) && (v.is(KeyId::Op, "dispatch") || v.is(KeyId::Op, "combine"))
}
/// Whether tokens go once to each server that holds experts of theirs.
pub(super) fn once_a_server(v: &Values) -> bool {
    v.is(KeyId::EpDispatcher, "deepep") || v.is(KeyId::EpDispatcher, "deepep-v2")
}
/// Whether NCCL's algorithms, protocols and channels matter: not if kernels without NCCL exchange tokens, and nothing else is sent.
pub(super) fn nccl_collectives(v: &Values) -> bool {
    collectives(v) && (!expert_op(v) || v.is(KeyId::EpDispatcher, "all-to-all"))
}
pub(super) fn model(v: &Values) -> bool {
    v.is(KeyId::WorkloadKind, "model")
}
pub(super) fn collective(v: &Values) -> bool {
    v.is(KeyId::WorkloadKind, "collective")
}
/// Whether it is a program that is read from a file.
pub(super) fn imported(v: &Values) -> bool {
    matches!(v.text(KeyId::WorkloadKind), "simai" | "chakra" | "htsim" | "goal" | "kineto" | "flight-recorder" | "dag")
}
/// Whether it is a program with collectives. Connection matrices and GOAL have only messages.
pub(super) fn collectives(v: &Values) -> bool {
    matches!(
        v.text(KeyId::WorkloadKind),
        "model" | "collective" | "simai" | "chakra" | "kineto" | "flight-recorder" | "dag" | "inference"
    )
}
/// Whether it is a program in which ranks compute.
pub(super) fn computes(v: &Values) -> bool {
    matches!(
        v.text(KeyId::WorkloadKind),
        "model" | "simai" | "chakra" | "goal" | "kineto" | "flight-recorder" | "dag" | "inference"
    )
}
/// Whether the kind of each kernel is known. The slowdown beside communication depends on the kernel, and files give only durations.
pub(super) fn overlaps(v: &Values) -> bool {
    model(v)
}
/// Whether it is a program whose messages cross the network as packets.
pub(super) fn messages(v: &Values) -> bool {
    program(v) && !v.is(KeyId::Analytic, "all")
}
/// Whether it is a model that is split along this degree.
pub(super) fn degree(v: &Values, key: KeyId) -> bool {
    model(v) && v.int(key) > 1
}
/// Whether it is a pipeline of Megatron whose stages may reduce gradients together.
pub(super) fn aligns(v: &Values) -> bool {
    pipelined(v) && sharded_data(v) && v.is(KeyId::Framework, "megatron") && !ScheduleChoice::of(v).splits_backward()
}
/// Whether PyTorch's FSDP shards the model.
pub(super) fn fsdp(v: &Values) -> bool {
    sharded_data(v) && (v.is(KeyId::Framework, "fsdp") || v.is(KeyId::Framework, "fsdp2"))
}
/// Whether DeepSpeed shards parameters.
pub(super) fn zero_3(v: &Values) -> bool {
    sharded_data(v) && v.is(KeyId::Framework, "deepspeed") && v.int(KeyId::Zero) == 3
}
pub(super) fn pipelined(v: &Values) -> bool {
    degree(v, KeyId::Pp)
}
/// Whether the schedule splits backward passes. It is refused without a pipeline, not ignored.
pub(super) fn split_backward(v: &Values) -> bool {
    model(v) && ScheduleChoice::of(v).splits_backward()
}
/// Whether there are several replicas, so that gradients are reduced and state may be sharded. Context parallel ranks hold replicas too.
pub(super) fn sharded_data(v: &Values) -> bool {
    degree(v, KeyId::Dp) || degree(v, KeyId::Cp) || (pipelined(v) && v.is(KeyId::Schedule, "dualpipe"))
}
/// Whether several degrees are above 1. With at most one, every order numbers ranks alike.
pub(super) fn several_degrees(v: &Values) -> bool {
    [KeyId::Tp, KeyId::Pp, KeyId::Dp, KeyId::Cp].into_iter().filter(|k| degree(v, *k)).count() > 1
}
/// Whether a variable of NCCL's environment matters: the key with the same purpose leaves the choice to NCCL.
pub(super) fn nccl(v: &Values, key: KeyId) -> bool {
    let open = match v.get(key) {
        Value::Choice(c) => *c == "auto",
        _ => v.float(key) == 0.0,
    };
    collectives(v) && open
}
/// Whether relays matter: for all-to-alls, if the algorithm is left open, and for sends between stages. With a fixed algorithm, forbidding them alone does.
pub(super) fn pxn(v: &Values) -> bool {
    let fixed = v.is(KeyId::Algorithm, "direct") || v.is(KeyId::Algorithm, "hierarchical");
    let exchanges =
        !collective(v) || v.is(KeyId::Op, "all-to-all") || (expert_op(v) && v.is(KeyId::EpDispatcher, "all-to-all"));
    let stages = transformer(v) && (v.int(KeyId::Pp) > 1 || disaggregated(v) && v.int(KeyId::PrefillPp) > 1);
    let sends = (stages || imported(v)) && !v.bool(KeyId::Pxn);
    collectives(v) && linked(v) && (exchanges && !fixed || sends)
}
/// Whether rings between servers cross rails: only 1 says so.
pub(super) fn cross_nic(v: &Values) -> bool {
    let in_rings = v.is(KeyId::Algorithm, "auto") || v.is(KeyId::Algorithm, "ring");
    let has_no_ring = collective(v) && matches!(v.text(KeyId::Op), "all-to-all" | "send-recv" | "dispatch" | "combine");
    let several_nics = !generated(v) || v.int(KeyId::NicsPerServer) > 1;
    v.int(KeyId::NcclCrossNic) == 1 && collectives(v) && messages(v) && in_rings && !has_no_ring && several_nics
}
pub(super) fn pxn_variable(v: &Values) -> bool {
    pxn(v) && !v.given(KeyId::Pxn)
}
