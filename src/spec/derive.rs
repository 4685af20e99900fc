//! Defaults that depend on other keys, and the layering that resolves all keys of an experiment.
//!
//! Layer: spec. From the bottom: defaults, the configuration file, `[base]`, `--set`, axes; then derived defaults.

use std::sync::Arc;

use super::key::Default;
use super::keys::{K, KEYS};
use super::value::{Value, Values};

/// GPUs that the traffic needs: whole servers. Nothing where a file decides.
pub(super) fn gpus(v: &Values) -> Value {
    if v.is(K::TopologyKind, "file") || !v.is(K::WorkloadKind, "traffic") {
        return Value::Unset;
    }
    let per_server = v.int(K::GpusPerServer).max(1);
    let need = match (v.int(K::Ranks), v.is(K::Pattern, "incast"), v.int(K::FanIn)) {
        (0, true, fan_in) if fan_in > 0 => v.int(K::Receivers).max(fan_in + 1),
        (0, _, _) => 128,
        (ranks, _, _) => ranks,
    };
    Value::Int((need + per_server - 1) / per_server * per_server)
}

pub(super) fn nics_per_server(v: &Values) -> Value {
    Value::Int(v.int(K::GpusPerServer))
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

/// Common NIC defaults are 4.096 us * 2^n: n = 10 where loss is normal, n = 14 where it is not.
pub(super) fn rto_us(v: &Values) -> Value {
    Value::Float(if v.bool(K::Pfc) { 67_109.0 } else { 4_194.0 })
}

/// Keys whose value 0 means "the default".
fn zero_is_default(key: K) -> bool {
    matches!(key, K::Gpus | K::RtoUs)
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
