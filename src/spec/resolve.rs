//! Resolves all keys of an experiment: layers of values, one over the other, and then the derived defaults.
//!
//! Layer: spec. From the bottom: defaults, the configuration file, `[base]`, `--set`, axes; then derived defaults, which `derive` computes.

use std::sync::Arc;

use super::key::Default;
use super::key_id::KeyId;
use super::keys::KEYS;
use super::value::{Value, Values};

/// Keys whose value 0 means "the default".
fn zero_is_default(key: KeyId) -> bool {
    matches!(key, KeyId::Gpus | KeyId::RtoUs | KeyId::Dp | KeyId::GlobalBatch)
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
    pub fn layered(layers: &[&[(KeyId, Value)]]) -> Values {
        let mut v = defaults();
        for (key, value) in layers.iter().flat_map(|l| l.iter()) {
            v.set(*key, value.clone());
        }
        v
    }

    /// Writes one value on top.
    pub fn set(&mut self, key: KeyId, value: Value) {
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
fn derived() -> &'static [(KeyId, Derive)] {
    static LIST: std::sync::OnceLock<Vec<(KeyId, Derive)>> = std::sync::OnceLock::new();
    LIST.get_or_init(|| {
        KEYS.iter()
            .filter_map(|k| match k.default {
                Default::Derived(f, _) => Some((k.id, f)),
                _ => None,
            })
            .collect()
    })
}
