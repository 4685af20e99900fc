//! When a key matters: predicates over the values of all keys, for the `applies_when` column of the key table.
//!
//! Layer: spec. A key that nothing reads is reported as having no effect and left out of an experiment's identity, so these must be exact.

use super::key_id::KeyId;
use super::value::{Value, Values};

pub(super) fn always(_: &Values) -> bool {
    true
}
pub(super) fn never(_: &Values) -> bool {
    false
}
/// Experiments whose packets are simulated. Others know no congestion control, no buffers and no pauses.
pub(super) fn packets(v: &Values) -> bool {
    v.is(KeyId::Mode, "packet") || (job_mode(v) && v.is(KeyId::IterationsAt, "packet"))
}
/// Packets of operations that depend on each other, which come again.
pub(super) fn folded(v: &Values) -> bool {
    packets(v) && (program(v) || job_mode(v))
}
/// Clusters over days in which iterations of jobs are simulated.
pub(super) fn measured_iterations(v: &Values) -> bool {
    job_mode(v) && !v.is(KeyId::IterationsAt, "none")
}
/// A key without a default that was given.
pub(super) fn set(v: &Values, key: KeyId) -> bool {
    *v.get(key) != Value::Unset
}
pub(super) fn generated(v: &Values) -> bool {
    !v.is(KeyId::TopologyKind, "file")
}
/// GPUs of a server have links: a rate above 0, or one that the file of the GPU says.
pub(super) fn linked(v: &Values) -> bool {
    generated(v) && (*v.get(KeyId::NvlinkGbps) == Value::Unset || v.float(KeyId::NvlinkGbps) > 0.0)
}
/// Whose leaves and top have a tier between them.
pub(super) fn three_tiers(v: &Values) -> bool {
    topology(v, "fat-tree") || (topology(v, "clos") && v.int(KeyId::Tiers) == 3)
}
/// Networks whose servers may have NVLink: generated ones, and files that say what is inside a server.
pub(super) fn has_nvlink(v: &Values) -> bool {
    match generated(v) {
        true => linked(v),
        false => v.is(KeyId::TopologyFormat, "simai"),
    }
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

/// Jobs of a cluster that no trace lists.
pub(super) fn generated_jobs(v: &Values) -> bool {
    !v.is(KeyId::JobsSource, "trace")
}
pub(super) fn uniform_jobs(v: &Values) -> bool {
    v.is(KeyId::JobsSource, "uniform")
}
/// Jobs of a cluster that are of the classes of `[[job]]` tables.
pub(super) fn classes_of_jobs(v: &Values) -> bool {
    job_mode(v) && v.is(KeyId::JobsSource, "classes")
}
/// Clusters over days in which iterations of jobs that are of no class are simulated.
pub(super) fn rings(v: &Values) -> bool {
    measured_iterations(v) && !classes_of_jobs(v)
}
/// Experiments, or iterations of a cluster's jobs, in which flows have fair rates.
pub(super) fn flows(v: &Values) -> bool {
    v.is(KeyId::Mode, "flow") || (job_mode(v) && v.is(KeyId::IterationsAt, "flow"))
}
/// Failures that no trace lists.
pub(super) fn drawn_failures(v: &Values) -> bool {
    !v.is(KeyId::FailuresModel, "trace")
}
pub(super) fn drained(v: &Values) -> bool {
    v.float(KeyId::DrainEveryH) > 0.0
}
/// Where the cluster's price is brought to what it does.
pub(super) fn priced(v: &Values) -> bool {
    transformer(v) || job_mode(v)
}
/// Clusters over days, with jobs as wholes.
pub(super) fn job_mode(v: &Values) -> bool {
    v.is(KeyId::Mode, "job")
}

/// Sections that only `fidelity.mode = "job"` reads.
const OF_CLUSTERS: [&str; 4] = ["jobs", "scheduler", "checkpoint", "failures"];
/// Sections that it does not read at all.
const OF_PACKETS: [&str; 2] = ["workload", "job"];
/// Sections that it reads where it simulates iterations.
const OF_ITERATIONS: [&str; 3] = ["routing", "transport", "fidelity"];
/// Keys of the others likewise.
const OF_ITERATIONS_TOO: [KeyId; 3] = [KeyId::LinkDelayNs, KeyId::SwitchLatencyNs, KeyId::BufferMib];
/// Keys that it does not read.
const OF_PACKETS_TOO: [KeyId; 17] = [
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
    KeyId::OutSharedLinks,
    KeyId::Alone,
];
/// Of these, keys that classes of its jobs read.
const OF_CLASSES: [KeyId; 4] = [KeyId::GpuMemoryGib, KeyId::NvlinkGbps, KeyId::NvlinkLatencyNs, KeyId::ServerXml];

/// Whether the level of detail leaves a key any effect.
pub(super) fn mode_reads(v: &Values, id: KeyId, name: &str) -> bool {
    let section = name.split('.').next().unwrap_or(name);
    if !job_mode(v) {
        return !OF_CLUSTERS.contains(&section);
    }
    let of_iterations = OF_ITERATIONS.contains(&section) || OF_ITERATIONS_TOO.contains(&id);
    let is_out = of_iterations && id != KeyId::Mode && !measured_iterations(v);
    let is_of_packets = OF_PACKETS.contains(&section) || OF_PACKETS_TOO.contains(&id);
    let of_class = v.is_of_job() && (OF_PACKETS.contains(&section) || OF_CLASSES.contains(&id));
    (!is_of_packets || of_class) && !is_out
}

/// One of several jobs.
pub(super) fn in_job(v: &Values) -> bool {
    v.is_of_job()
}
/// One of several jobs on one network. A class of jobs of a cluster over days is none.
pub(super) fn beside_others(v: &Values) -> bool {
    in_job(v) && !job_mode(v)
}
/// A job that gets free GPUs by chance.
pub(super) fn by_chance(v: &Values) -> bool {
    beside_others(v) && v.is(KeyId::JobPlacement, "random")
}
/// Flows that depend on nothing.
pub(super) fn flows_alone(v: &Values) -> bool {
    traffic(v) || v.is(KeyId::WorkloadKind, "flows")
}

/// A job of dependent operations rather than plain flows.
pub(super) fn program(v: &Values) -> bool {
    transformer(v) || collective(v) || imported(v)
}
/// Programs that repeat an iteration.
pub(super) fn iterates(v: &Values) -> bool {
    program(v) && !inference(v)
}
/// A model that serves requests.
pub(super) fn inference(v: &Values) -> bool {
    v.is(KeyId::WorkloadKind, "inference")
}
/// A model that is trained or serves requests.
pub(super) fn transformer(v: &Values) -> bool {
    model(v) || inference(v)
}
/// Prefill and decode on GPUs of their own.
pub(super) fn disaggregated(v: &Values) -> bool {
    inference(v) && v.is(KeyId::Serving, "disaggregated")
}
/// Requests that come from a generator or a trace.
pub(super) fn requests(v: &Values, from: &str) -> bool {
    inference(v) && v.is(KeyId::Requests, from)
}
/// Instances of inference that share experts.
pub(super) fn shared_experts(v: &Values) -> bool {
    inference(v) && (v.int(KeyId::Ep) > 1 || (disaggregated(v) && v.int(KeyId::PrefillEp) > 1))
}
/// A job whose steady phases are skipped.
pub(super) fn steady(v: &Values) -> bool {
    folded(v) && (v.is(KeyId::FastForward, "steady") || v.is(KeyId::FastForward, "rates"))
}
pub(super) fn model(v: &Values) -> bool {
    v.is(KeyId::WorkloadKind, "model")
}
pub(super) fn collective(v: &Values) -> bool {
    v.is(KeyId::WorkloadKind, "collective")
}
/// Programs that are read from a file.
pub(super) fn imported(v: &Values) -> bool {
    matches!(v.text(KeyId::WorkloadKind), "simai" | "chakra" | "htsim" | "goal" | "dag")
}
/// Programs with collectives; connection matrices and GOAL know messages only.
pub(super) fn collectives(v: &Values) -> bool {
    matches!(v.text(KeyId::WorkloadKind), "model" | "collective" | "simai" | "chakra" | "dag" | "inference")
}
/// Programs in which ranks compute.
pub(super) fn computes(v: &Values) -> bool {
    matches!(v.text(KeyId::WorkloadKind), "model" | "simai" | "chakra" | "goal" | "dag" | "inference")
}
/// Programs whose kernels are known for what they are: what slows down beside communication depends on the kernel, and files give durations only.
pub(super) fn overlaps(v: &Values) -> bool {
    model(v)
}
/// Programs whose messages cross the network as packets.
pub(super) fn messages(v: &Values) -> bool {
    program(v) && !v.is(KeyId::Analytic, "all")
}
/// A model that is split in this way.
pub(super) fn degree(v: &Values, key: KeyId) -> bool {
    model(v) && v.int(key) > 1
}
pub(super) fn pipelined(v: &Values) -> bool {
    degree(v, KeyId::Pp)
}
/// Several replicas, so that gradients are reduced and state may be sharded. Context parallel ranks hold replicas too.
pub(super) fn sharded_data(v: &Values) -> bool {
    degree(v, KeyId::Dp) || degree(v, KeyId::Cp)
}
/// With at most one degree above 1 every order numbers ranks alike.
pub(super) fn several_degrees(v: &Values) -> bool {
    [KeyId::Tp, KeyId::Pp, KeyId::Dp, KeyId::Cp].into_iter().filter(|k| degree(v, *k)).count() > 1
}
/// A variable of NCCL's environment matters where the key of the same purpose leaves the choice to NCCL.
pub(super) fn nccl(v: &Values, key: KeyId) -> bool {
    let open = match v.get(key) {
        Value::Choice(c) => *c == "auto",
        _ => v.float(key) == 0.0,
    };
    collectives(v) && open
}
/// Only all-to-alls are relayed, and only where the choice is left open.
pub(super) fn pxn(v: &Values) -> bool {
    let fixed = v.is(KeyId::Algorithm, "direct") || v.is(KeyId::Algorithm, "hierarchical");
    let exchanges = !collective(v) || v.is(KeyId::Op, "all-to-all");
    collectives(v) && exchanges && !fixed && linked(v)
}
pub(super) fn pxn_variable(v: &Values) -> bool {
    pxn(v) && !v.given(KeyId::Pxn)
}
