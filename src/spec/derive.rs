//! Defaults that depend on other keys, and the layering that resolves all keys of an experiment.
//!
//! Layer: spec. From the bottom: defaults, the configuration file, `[base]`, `--set`, axes; then derived defaults.

use std::sync::Arc;

use super::key::Default;
use super::keys::{K, KEYS};
use super::reads::{collective, collectives, model, program, traffic};
use super::servers::{Server, find_server, gpu_of};
use super::value::{Value, Values};

/// What the named server has, if one is named.
fn server(v: &Values) -> Option<&'static Server> {
    find_server(v.text(K::Server))
}
pub(super) fn gpus_per_server(v: &Values) -> Value {
    Value::Int(server(v).map_or(8, |s| s.gpus))
}
pub(super) fn nics_per_server(v: &Values) -> Value {
    // A server that was given another number of GPUs keeps at most one NIC a GPU.
    let per_gpu = v.int(K::GpusPerServer);
    Value::Int(server(v).map_or(per_gpu, |s| s.ports().min(per_gpu)))
}
pub(super) fn nic_ports(v: &Values) -> Value {
    Value::Int(server(v).map_or(1, Server::links_of_port))
}
pub(super) fn gpu(v: &Values) -> Value {
    Value::Text(gpu_of(v.text(K::Server)).unwrap_or("h100").into())
}
pub(super) fn nvlink_gbps(v: &Values) -> Value {
    let no_p2p = v.int(K::NcclP2pDisable) == 1 || matches!(v.text(K::NcclP2pLevel), "0" | "LOC");
    Value::Float(if no_p2p && collectives(v) { 0.0 } else { server(v).map_or(3600.0, |s| s.inside_gbps) })
}
/// Our choice where no server is named: 500.
pub(super) fn nvlink_latency_ns(v: &Values) -> Value {
    Value::Float(server(v).map_or(500.0, |s| s.latency_ns))
}
pub(super) fn server_xml(v: &Values) -> Value {
    v.get(K::NcclTopoFile).clone()
}
pub(super) fn link_gbps(v: &Values) -> Value {
    Value::Float(server(v).map_or(400.0, Server::port_gbps))
}

/// GPUs that the workload needs: whole servers. Nothing where a file decides.
pub(super) fn gpus(v: &Values) -> Value {
    if v.is(K::TopologyKind, "file") || !(traffic(v) || collective(v) || model(v)) {
        return Value::Unset;
    }
    let per_server = v.int(K::GpusPerServer).max(1);
    let need = if model(v) {
        // Above the key's range it is refused with the configuration.
        [K::Tp, K::Pp, K::Cp, K::Dp].into_iter().fold(1i64, |n, k| n.saturating_mul(v.int(k).max(1))).min(1 << 40)
    } else {
        match (v.int(K::Ranks), v.is(K::Pattern, "incast"), v.int(K::FanIn)) {
            (0, true, fan_in) if traffic(v) && fan_in > 0 => v.int(K::Receivers).max(fan_in + 1),
            (0, _, _) => 128,
            (ranks, _, _) => ranks,
        }
    };
    Value::Int((need + per_server - 1) / per_server * per_server)
}

/// Replicas of the model that the cluster has room for.
pub(super) fn dp(v: &Values) -> Value {
    let one = [K::Tp, K::Pp, K::Cp].into_iter().fold(1i64, |n, k| n.saturating_mul(v.int(k)));
    Value::Int((v.int(K::Gpus) / one).max(1))
}
/// As many micro-batches as the pipeline has stages.
pub(super) fn global_batch(v: &Values) -> Value {
    Value::Int([K::Microbatch, K::Dp, K::Pp].into_iter().fold(1i64, |n, k| n.saturating_mul(v.int(k))))
}
fn megatron(v: &Values) -> bool {
    v.is(K::Framework, "megatron")
}
pub(super) fn sequence_parallel(v: &Values) -> Value {
    Value::Bool(megatron(v))
}
pub(super) fn zero(v: &Values) -> Value {
    Value::Int(match v.text(K::Framework) {
        "fsdp" => 3,
        "deepspeed" => 1,
        _ => 0,
    })
}
/// Megatron accumulates in fp32.
pub(super) fn grad_bytes(v: &Values) -> Value {
    Value::Int(if megatron(v) { 4 } else { v.int(K::ParamBytes) })
}
/// Megatron's `--overlap-grad-reduce` and `--overlap-param-gather` are options; the others overlap unless told not to.
pub(super) fn overlap_data(v: &Values) -> Value {
    Value::Bool(!megatron(v))
}
pub(super) fn overlap_p2p(v: &Values) -> Value {
    Value::Bool(v.int(K::Vpp) > 1)
}
/// Megatron's 40 million elements, DeepSpeed's reduce_bucket_size of 500 million, PyTorch's bucket_cap_mb of 25 MiB.
pub(super) fn bucket_mb(v: &Values) -> Value {
    let grad_bytes = v.int(K::GradBytes) as f64;
    Value::Float(match v.text(K::Framework) {
        "megatron" => 40.0 * grad_bytes,
        "deepspeed" => 500.0 * grad_bytes,
        _ => 26.2144,
    })
}
/// A flow of generated traffic, or nccl-tests' order of size.
pub(super) fn bytes(v: &Values) -> Value {
    Value::Int(if collective(v) { 64_000_000 } else { 1_000_000 })
}
pub(super) fn qps(v: &Values) -> Value {
    Value::Int(v.int(K::NcclQps).max(1))
}
pub(super) fn split_on_qps(v: &Values) -> Value {
    Value::Bool(v.int(K::NcclSplit) == 1)
}
pub(super) fn pxn_allowed(v: &Values) -> Value {
    Value::Bool(v.int(K::NcclPxnDisable) == 0 && *v.get(K::NcclPxnLevel) != Value::Int(0))
}

fn k_or(v: &Values, other: f64) -> Value {
    if v.is(K::Cc, "dctcp") { Value::Float(v.float(K::DctcpKKb)) } else { Value::Float(other) }
}
pub(super) fn ecn_kmin(v: &Values) -> Value {
    k_or(v, 400.0)
}
pub(super) fn ecn_kmax(v: &Values) -> Value {
    k_or(v, 1600.0)
}
pub(super) fn ecn_pmax(v: &Values) -> Value {
    Value::Float(if v.is(K::Cc, "dctcp") { 1.0 } else { 0.2 })
}

pub(super) fn window(v: &Values) -> Value {
    Value::Bool(v.is(K::Cc, "hpcc") || v.is(K::Cc, "dctcp"))
}

/// The reference's scenarios let ACKs through pauses for these two only.
pub(super) fn ack_high_prio(v: &Values) -> Value {
    Value::Bool(v.is(K::Cc, "dcqcn") || v.is(K::Cc, "timely"))
}

/// Common NIC defaults are 4.096 us * 2^n: n = 10 where loss is normal, n = 14 where it is not. NCCL_IB_TIMEOUT is such an n.
pub(super) fn rto_us(v: &Values) -> Value {
    Value::Float(match v.get(K::NcclTimeout) {
        Value::Int(n) if program(v) => 4.096 * (1u64 << n) as f64,
        _ if v.bool(K::Pfc) => 67_109.0,
        _ => 4_194.0,
    })
}
pub(super) fn rto_retries(v: &Values) -> Value {
    match v.get(K::NcclRetries) {
        Value::Int(n) if program(v) => Value::Int(*n),
        _ => Value::Int(7),
    }
}

/// Keys whose value 0 means "the default".
fn zero_is_default(key: K) -> bool {
    matches!(key, K::Gpus | K::RtoUs | K::Dp | K::GlobalBatch)
}

/// All defaults that depend on nothing.
fn defaults() -> Values {
    let mut v = Values::empty();
    for k in &KEYS {
        let value = match k.default {
            Default::Int(i) => Value::Int(i),
            Default::Float(x) => Value::Float(x),
            Default::Bool(b) => Value::Bool(b),
            Default::Choice(s) => Value::Choice(s),
            Default::Text(s) => Value::Text(Arc::from(s)),
            Default::None(_) | Default::Derived(..) => Value::Unset,
        };
        v.set_derived(k.id, value);
    }
    v
}

impl Values {
    /// Defaults under the given layers, later ones winning. Derived defaults are still open: see [`Values::derive`].
    pub fn layered(layers: &[&[(K, Value)]]) -> Values {
        let mut v = defaults();
        for (key, value) in layers.iter().flat_map(|l| l.iter()) {
            v.set(*key, value.clone());
        }
        v
    }

    /// Writes one value on top.
    pub fn set(&mut self, key: K, value: Value) {
        self.set_given(key, value);
    }

    /// Fills in every derived default that nobody wrote (or wrote as 0 where that asks for it). To be called once, after the last `set`.
    pub fn derive(&mut self) {
        for (key, f) in derived() {
            let zero = zero_is_default(*key) && self.float(*key) == 0.0;
            if zero || matches!(self.get(*key), Value::Unset) {
                let value = f(self);
                self.set_derived(*key, value);
            }
        }
    }
}

type Derive = fn(&Values) -> Value;

/// The derived keys in table order, collected once because every experiment runs through them.
fn derived() -> &'static [(K, Derive)] {
    static LIST: std::sync::OnceLock<Vec<(K, Derive)>> = std::sync::OnceLock::new();
    LIST.get_or_init(|| {
        KEYS.iter()
            .filter_map(|k| match k.default {
                Default::Derived(f, _) => Some((k.id, f)),
                _ => None,
            })
            .collect()
    })
}
