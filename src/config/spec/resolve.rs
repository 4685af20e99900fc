//! Resolves all keys of an experiment: layers of values, one over the other, and then the derived defaults.
//!
//! Layer: spec. From the bottom: defaults, the configuration file, `[base]`, `--set`, axes; then defaults of a recipe and an adapter, and derived defaults, which `derive`
//! computes.

use std::sync::Arc;

use super::adapters::adapter_defaults;
use super::jobs::listed_gpus;
use super::key::Default;
use super::key_id::KeyId;
use super::key_path::KeyPath;
use super::keys::KEYS;
use super::recipes::recipe_defaults;
use super::value::{JobValues, Value, Values};

/// Whether the value 0 of a key means "the default".
fn zero_is_default(key: KeyId) -> bool {
    matches!(key, KeyId::Gpus | KeyId::RtoUs | KeyId::Dp | KeyId::GlobalBatch)
}

/// Returns all defaults that depend on nothing.
fn defaults() -> Values {
    let mut v = Values::empty();
    for k in &KEYS {
        v.set_derived(k.id, k.plain_default());
    }
    v
}

impl Values {
    /// Returns the defaults under the given layers, of which later ones win. Derived defaults are not set yet: see [`Values::derive`].
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

    /// Adds a job with the values that were written for it. PRECONDITION: before [`Values::derive`].
    pub fn add_job(&mut self, name: Arc<str>, written: Vec<(KeyId, Value)>) {
        self.jobs_mut().push(JobValues { name, written, resolved: None });
    }

    /// Writes one value on top, of `[base]` or of a job. PRECONDITION: the job was added.
    pub fn set_at(&mut self, path: KeyPath, value: Value) {
        match path.job {
            Some(job) => self.jobs_mut()[usize::from(job)].written.push((path.key, value)),
            None => self.set(path.key, value),
        }
    }

    /// Sets every derived default that was not written, or was written as 0 to ask for the default. PRECONDITION: called once, after the last `set`.
    pub fn derive(&mut self) {
        let mut jobs = std::mem::take(self.jobs_mut());
        for job in &mut jobs {
            let mut v = self.under_job(job);
            let gpus = job_gpus(&v);
            v.set_derived(KeyId::Gpus, gpus);
            v.derive();
            job.resolved = Some(Box::new(v));
        }
        *self.jobs_mut() = jobs;
        for (key, value) in recipe_defaults(self).into_iter().chain(adapter_defaults(self)) {
            self.set_derived(key, value);
        }
        for (key, f) in derived() {
            let zero = zero_is_default(*key) && self.float(*key) == 0.0;
            if zero || matches!(self.get(*key), Value::Unset) {
                let value = f(self);
                self.set_derived(*key, value);
            }
        }
    }
}

/// Returns the GPUs of a job if it says how many: `gpus`, or as many as its placement lists.
fn job_gpus(v: &Values) -> Value {
    match (v.int(KeyId::JobGpus), listed_gpus(v.text(KeyId::JobPlacement))) {
        (0, Some(Ok(list))) => Value::Int(list.len() as i64),
        (0, _) => Value::Unset,
        (gpus, _) => Value::Int(gpus),
    }
}

type Derive = fn(&Values) -> Value;

/// Returns the derived keys in table order, collected once because every experiment needs them.
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
