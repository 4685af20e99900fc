//! Defaults that depend on other keys, one function for each.
//!
//! Layer: spec. `keys` names them in the table, `resolve` calls them.

use super::applies_when::{
    collective, collectives, inference, job_mode, leaf_of_each_port, program, traffic, transformer, ultra_ethernet,
};
use super::key_id::KeyId;
use super::schedules::ScheduleChoice;
use super::server_links::{has_server_file, own_links};
use super::servers::{ServerModel, find_server, gpu_of};
use super::switches::{DEFAULT_BUFFER_MIB, SwitchChoice};
use super::traffic_classes::has_lossy;
use super::value::{Value, Values};

/// Returns the model of the named server, if one is named.
fn server(v: &Values) -> Option<&'static ServerModel> {
    find_server(v.text(KeyId::Server))
}
/// All of a server's GPUs; for a cluster with fewer GPUs than a server has, the cluster's GPUs.
pub(super) fn gpus_per_server(v: &Values) -> Value {
    let whole = server(v).map_or(8, |s| s.gpus);
    let cluster_gpus = if v.given(KeyId::Gpus) { v.int(KeyId::Gpus) } else { 0 };
    Value::Int(if (1..whole).contains(&cluster_gpus) { cluster_gpus } else { whole })
}
pub(super) fn nics_per_server(v: &Values) -> Value {
    // A server that was given another number of GPUs keeps at most one NIC per GPU.
    let per_gpu = v.int(KeyId::GpusPerServer);
    Value::Int(server(v).map_or(per_gpu, |s| s.ports().min(per_gpu)))
}
pub(super) fn nic_ports(v: &Values) -> Value {
    let own = server(v).map_or(1, ServerModel::links_of_port);
    Value::Int(if leaf_of_each_port(v) { own.max(2) } else { own })
}
/// Whether the fabric gives each NIC two leaves so that one may fail.
pub(super) fn two_leaves_a_nic(v: &Values) -> Value {
    Value::Bool(v.is(KeyId::TopologyKind, "hpn") || v.is(KeyId::TopologyKind, "dcn-plus"))
}
pub(super) fn gpu(v: &Values) -> Value {
    Value::Text(gpu_of(v.text(KeyId::Server)).unwrap_or("h100").into())
}
pub(super) fn nvlink_gbps(v: &Values) -> Value {
    let no_p2p = v.int(KeyId::NcclP2pDisable) == 1 || matches!(v.text(KeyId::NcclP2pLevel), "0" | "LOC");
    if no_p2p && collectives(v) {
        return Value::Float(0.0);
    }
    let gpus = v.int(KeyId::GpusPerServer) as u32;
    match server(v) {
        Some(server) => Value::Float(server.inside_gbps),
        // The file of the servers replaces this value.
        None if has_server_file(v) => Value::Float(REPLACED_BY_FILE),
        None => own_links(v).and_then(|links| links.gbps_in_server(gpus)).map_or(Value::Unset, Value::Float),
    }
}
/// Placeholder in Gb/s where a file of servers is named: its rates replace this one when it is read. Any rate above 0 would do.
const REPLACED_BY_FILE: f64 = 3600.0;
/// The largest MTU of InfiniBand, which RoCE has where it is deployed; without a named server the reference's payload.
pub(super) fn payload_bytes(v: &Values) -> Value {
    Value::Int(if server(v).is_some() || ultra_ethernet(v) { 4096 } else { 1000 })
}
pub(super) fn collective_overhead(v: &Values) -> Value {
    Value::Text(if server(v).is_some() { "measured" } else { "none" }.into())
}
/// The latency of the server or GPU; 500 if neither gives one (our choice).
pub(super) fn nvlink_latency_ns(v: &Values) -> Value {
    let own = || own_links(v).map_or(500.0, |links| links.latency_ps as f64 / 1e3);
    Value::Float(server(v).map_or_else(own, |s| s.latency_ns))
}
pub(super) fn base_time_ns(v: &Values) -> Value {
    Value::Float(server(v).and_then(|s| s.base_time_ns).unwrap_or(0.0))
}
pub(super) fn base_time_across_ns(v: &Values) -> Value {
    Value::Float(server(v).and_then(|s| s.base_time_across_ns).unwrap_or(0.0))
}
pub(super) fn server_xml(v: &Values) -> Value {
    v.get(KeyId::NcclTopoFile).clone()
}
/// The buffer of the reference's switches, or that of a chip. Unset where the ports of each tier decide which chip it is.
pub(super) fn buffer_mib(v: &Values) -> Value {
    match SwitchChoice::of(v) {
        Some(SwitchChoice::Chip(chip)) => Value::Float(chip.buffer_mib()),
        Some(SwitchChoice::ByRate) => Value::Unset,
        None => Value::Float(DEFAULT_BUFFER_MIB),
    }
}
pub(super) fn tier_buffer_mib(v: &Values) -> Value {
    v.get(KeyId::BufferMib).clone()
}
pub(super) fn link_gbps(v: &Values) -> Value {
    Value::Float(server(v).map_or(400.0, ServerModel::port_gbps))
}
/// By default, the fabric has one rate.
pub(super) fn uplink_gbps(v: &Values) -> Value {
    v.get(KeyId::LinkGbps).clone()
}
pub(super) fn global_gbps(v: &Values) -> Value {
    v.get(KeyId::UplinkGbps).clone()
}
pub(super) fn core_gbps(v: &Values) -> Value {
    v.get(KeyId::UplinkGbps).clone()
}
pub(super) fn uplink_delay_ns(v: &Values) -> Value {
    v.get(KeyId::LinkDelayNs).clone()
}
pub(super) fn core_delay_ns(v: &Values) -> Value {
    v.get(KeyId::UplinkDelayNs).clone()
}
pub(super) fn global_delay_ns(v: &Values) -> Value {
    v.get(KeyId::UplinkDelayNs).clone()
}

/// GPUs that the workload needs, in whole servers. Unset if a file decides.
pub(super) fn gpus(v: &Values) -> Value {
    if v.is_of_job() {
        return job_gpus(v);
    }
    if !v.jobs().is_empty() {
        // Classes of jobs do not say how large their cluster is.
        return if job_mode(v) { Value::Unset } else { gpus_of_jobs(v) };
    }
    if v.is(KeyId::TopologyKind, "file") || !(traffic(v) || collective(v) || transformer(v)) {
        return Value::Unset;
    }
    let per_server = v.int(KeyId::GpusPerServer).max(1);
    let need = if transformer(v) {
        model_gpus(v)
    } else {
        match (v.int(KeyId::Ranks), v.is(KeyId::Pattern, "incast"), v.int(KeyId::FanIn)) {
            (0, true, fan_in) if traffic(v) && fan_in > 0 => v.int(KeyId::Receivers).max(fan_in + 1),
            (0, _, _) => 128,
            (ranks, _, _) => ranks,
        }
    };
    Value::Int((need + per_server - 1) / per_server * per_server)
}

/// GPUs of a model's layout. A value above the key's range is refused later, with the configuration.
fn model_gpus(v: &Values) -> i64 {
    let times = |degrees: &[KeyId]| degrees.iter().fold(1i64, |n, k| n.saturating_mul(v.int(*k).max(1)));
    if inference(v) {
        return times(&[KeyId::Tp, KeyId::Pp, KeyId::Dp]).saturating_add(prefill_gpus(v)).min(1 << 40);
    }
    times(&[KeyId::Tp, KeyId::Pp, KeyId::Cp, KeyId::Dp]).min(1 << 40)
}

/// GPUs of a pool that only prefills. Keys that come after those of the cluster have the values written in the file, without their defaults.
fn prefill_gpus(v: &Values) -> i64 {
    if !v.is(KeyId::Serving, "disaggregated") {
        return 0;
    }
    let value_or = |own: KeyId, other: KeyId| if v.int(own) > 0 { v.int(own) } else { v.int(other).max(1) };
    let (tp, pp) = (value_or(KeyId::PrefillTp, KeyId::Tp), value_or(KeyId::PrefillPp, KeyId::Pp));
    tp.saturating_mul(pp).saturating_mul(v.int(KeyId::PrefillDp).max(1))
}

/// GPUs that one of several jobs needs, if its keys tell.
fn job_gpus(v: &Values) -> Value {
    let (ranks, fan_in) = (v.int(KeyId::Ranks), v.int(KeyId::FanIn));
    match () {
        () if transformer(v) => Value::Int(model_gpus(v)),
        () if (traffic(v) || collective(v)) && ranks > 0 => Value::Int(ranks),
        () if traffic(v) && v.is(KeyId::Pattern, "incast") && fan_in > 0 => {
            Value::Int(v.int(KeyId::Receivers).max(fan_in + 1))
        }
        () => Value::Unset,
    }
}

/// GPUs of all jobs together, in whole servers. Unset if a file decides, or the keys of a job do not tell.
fn gpus_of_jobs(v: &Values) -> Value {
    let foreground = v.jobs().iter().map(|job| job.values()).filter(|v| !v.bool(KeyId::JobBackground));
    let each: Vec<i64> = foreground.map(|v| v.int(KeyId::Gpus)).collect();
    if v.is(KeyId::TopologyKind, "file") || each.is_empty() || each.contains(&0) {
        return Value::Unset;
    }
    let per_server = v.int(KeyId::GpusPerServer).max(1);
    let need = each.into_iter().fold(0i64, i64::saturating_add).min(1 << 40);
    Value::Int((need + per_server - 1) / per_server * per_server)
}

/// Replicas of the model for which the cluster has GPUs.
pub(super) fn dp(v: &Values) -> Value {
    if inference(v) {
        let one = v.int(KeyId::Tp).saturating_mul(v.int(KeyId::Pp)).max(1);
        return Value::Int((v.int(KeyId::Gpus).saturating_sub(prefill_gpus(v)) / one).max(1));
    }
    let one = [KeyId::Tp, KeyId::Pp, KeyId::Cp].into_iter().fold(1i64, |n, k| n.saturating_mul(v.int(k)));
    Value::Int((v.int(KeyId::Gpus) / one).max(1))
}
/// The global batch that gives each replica as many micro-batches as the pipeline has stages.
pub(super) fn global_batch(v: &Values) -> Value {
    Value::Int([KeyId::Microbatch, KeyId::Dp, KeyId::Pp].into_iter().fold(1i64, |n, k| n.saturating_mul(v.int(k))))
}
fn megatron(v: &Values) -> bool {
    v.is(KeyId::Framework, "megatron")
}
pub(super) fn sequence_parallel(v: &Values) -> Value {
    Value::Bool(megatron(v))
}
/// On a pipeline, torchtitan frees no parameters after a forward pass (`fsdp_reshard_after_forward` of `default`).
pub(super) fn zero(v: &Values) -> Value {
    Value::Int(match v.text(KeyId::Framework) {
        "fsdp2" if v.int(KeyId::Pp) > 1 => 2,
        "fsdp" | "fsdp2" => 3,
        "deepspeed" => 1,
        _ => 0,
    })
}
pub(super) fn output_spread(v: &Values) -> Value {
    Value::Float(v.float(KeyId::LengthSpread))
}
pub(super) fn precision(v: &Values) -> Value {
    Value::Text(if v.bool(KeyId::Fp8) { "fp8" } else { "bf16" }.into())
}
/// Megatron accumulates in fp32.
pub(super) fn grad_bytes(v: &Values) -> Value {
    Value::Int(if megatron(v) { 4 } else { v.int(KeyId::ParamBytes) })
}
/// Megatron's `--overlap-grad-reduce` and `--overlap-param-gather` are options; the other frameworks overlap unless told not to.
pub(super) fn overlap_data(v: &Values) -> Value {
    Value::Bool(!megatron(v))
}
pub(super) fn overlap_p2p(v: &Values) -> Value {
    Value::Bool(v.int(KeyId::Vpp) > 1 || ScheduleChoice::of(v).splits_backward())
}
/// Megatron's 40 million elements, DeepSpeed's reduce_bucket_size of 500 million, PyTorch's bucket_cap_mb of 25 MiB.
pub(super) fn bucket_mb(v: &Values) -> Value {
    let grad_bytes = v.int(KeyId::GradBytes) as f64;
    Value::Float(match v.text(KeyId::Framework) {
        "megatron" => 40.0 * grad_bytes,
        "deepspeed" => 500.0 * grad_bytes,
        _ => 26.2144,
    })
}
/// Size of a flow of generated traffic, or the order of sizes in nccl-tests.
pub(super) fn bytes(v: &Values) -> Value {
    Value::Int(if collective(v) { 64_000_000 } else { 1_000_000 })
}
/// NCCL stripes a message over the ports of a NIC: those of one device (net_ib.cc), and over EFA's devices of a GPU (aws-ofi-nccl).
fn striped(v: &Values) -> i64 {
    if (server(v).is_some() || leaf_of_each_port(v)) && *v.get(KeyId::NcclQps) == Value::Unset {
        v.int(KeyId::NicPorts).max(1)
    } else {
        1
    }
}
pub(super) fn qps(v: &Values) -> Value {
    Value::Int(v.int(KeyId::NcclQps).max(striped(v)))
}
pub(super) fn split_on_qps(v: &Values) -> Value {
    let over_ports = !v.given(KeyId::QpsPerConnection) && striped(v) > 1;
    Value::Bool(v.int(KeyId::NcclSplit) == 1 || over_ports)
}
pub(super) fn pxn_allowed(v: &Values) -> Value {
    Value::Bool(v.int(KeyId::NcclPxnDisable) == 0 && *v.get(KeyId::NcclPxnLevel) != Value::Int(0))
}

fn k_or(v: &Values, default: f64) -> Value {
    if v.is(KeyId::Cc, "dctcp") { Value::Float(v.float(KeyId::DctcpKKb)) } else { Value::Float(default) }
}
pub(super) fn ecn_kmin(v: &Values) -> Value {
    k_or(v, 400.0)
}
pub(super) fn ecn_kmax(v: &Values) -> Value {
    k_or(v, 1600.0)
}
pub(super) fn ecn_pmax(v: &Values) -> Value {
    Value::Float(if v.is(KeyId::Cc, "dctcp") || ultra_ethernet(v) { 1.0 } else { 0.2 })
}

pub(super) fn is_ultra_ethernet(v: &Values) -> Value {
    Value::Bool(ultra_ethernet(v))
}
pub(super) fn is_rccc(v: &Values) -> Value {
    Value::Bool(v.is(KeyId::Cc, "rccc"))
}
pub(super) fn trimming(v: &Values) -> Value {
    Value::Bool(v.bool(KeyId::PortQueue) && ultra_ethernet(v))
}
pub(super) fn pfc(v: &Values) -> Value {
    Value::Bool(!v.bool(KeyId::PortQueue))
}
pub(super) fn loss_recovery(v: &Values) -> Value {
    Value::Text(if ultra_ethernet(v) { "uec" } else { "adapter" }.into())
}
/// Four packets of Ultra Ethernet, as htsim's receiver has it.
pub(super) fn ack_interval(v: &Values) -> Value {
    Value::Int(if ultra_ethernet(v) { 16_384 } else { 1 })
}

/// Windows below one packet are a part of Swift.
pub(super) fn min_rate_mbps(v: &Values) -> Value {
    Value::Float(if v.is(KeyId::Cc, "swift") { 10.0 } else { 1000.0 })
}
pub(super) fn window(v: &Values) -> Value {
    Value::Bool(["hpcc", "dctcp", "swift"].iter().any(|cc| v.is(KeyId::Cc, cc)))
}

/// The reference's scenarios let ACKs pass during pauses only for these two.
pub(super) fn ack_high_prio(v: &Values) -> Value {
    Value::Bool(["dcqcn", "timely", "swift"].iter().any(|cc| v.is(KeyId::Cc, cc)))
}

/// Common NIC defaults are 4.096 us * 2^n: n = 10 if loss is normal, n = 14 if it is not. NCCL_IB_TIMEOUT is such an n.
pub(super) fn rto_us(v: &Values) -> Value {
    Value::Float(match v.get(KeyId::NcclTimeout) {
        Value::Int(n) if program(v) => 4.096 * (1u64 << n) as f64,
        // The size of queues decides, which depends on the network.
        _ if ultra_ethernet(v) && v.bool(KeyId::PortQueue) => 0.0,
        // The longer timeout of IRN (SIGCOMM 2018), whose receivers take packets in any order.
        _ if v.is(KeyId::LossRecovery, "selective") || ultra_ethernet(v) => 320.0,
        _ if v.bool(KeyId::Pfc) && !has_lossy(v.text(KeyId::Classes)) => 67_109.0,
        _ => 4_194.0,
    })
}
pub(super) fn rto_retries(v: &Values) -> Value {
    match v.get(KeyId::NcclRetries) {
        Value::Int(n) if program(v) => Value::Int(*n),
        _ => Value::Int(7),
    }
}
