//! A key's value, checked against its declaration, and the values of all keys of one experiment.
//!
//! Layer: spec. Values are still in a person's units; `config` converts them to integers.

use std::fmt;
use std::sync::Arc;

use super::key_id::{KeyId, N_KEYS};
use super::key_path::KeyPath;
use super::registered::RegisteredPolicy;

/// One value. Choices point into the key table, so that comparing and copying them is cheap.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing was written and nothing applies.
    Unset,
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// One of a key's choices.
    Choice(&'static str),
    /// A free text, a path or a name.
    Text(Arc<str>),
    /// A policy that a program registered.
    Registered(RegisteredPolicy),
}

impl fmt::Display for Value {
    /// Writes the value as a person would, without quotes. This is also the canonical form that keys are hashed in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unset => f.write_str("auto"),
            Value::Int(i) => write!(f, "{i}"),
            // The shortest form that reads back to the same bits; -0 is 0.
            Value::Float(x) => write!(f, "{}", x + 0.0),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Choice(s) => f.write_str(s),
            Value::Text(s) => f.write_str(s),
            Value::Registered(policy) => f.write_str(policy.name()),
        }
    }
}

impl Value {
    /// Returns the value as TOML, quoted if needed. `Unset` has no TOML form and becomes an empty string.
    pub fn to_toml(&self) -> String {
        match self {
            Value::Unset => "\"\"".to_string(),
            Value::Float(x) if x.fract() == 0.0 && x.abs() < 1e15 => format!("{x:.1}"),
            Value::Choice(s) => toml::Value::String((*s).to_string()).to_string(),
            Value::Text(s) => toml::Value::String(s.to_string()).to_string(),
            Value::Registered(policy) => toml::Value::String(policy.name().to_string()).to_string(),
            other => other.to_string(),
        }
    }
}

/// The values of all keys of one experiment, and which of them were written.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    v: Vec<Value>,
    /// Whether each key was written, one bit per key.
    given: [u64; N_KEYS.div_ceil(64)],
    /// Jobs in the order of the sweep file; empty for the values of a job.
    jobs: Vec<JobValues>,
    /// Whether these are the values of one of several jobs.
    of_job: bool,
}

/// The own values of one of several jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct JobValues {
    /// Name of the job.
    pub name: Arc<str>,
    /// Values that were written for it; later entries win.
    pub(super) written: Vec<(KeyId, Value)>,
    /// All keys with their values for it, once they are derived.
    pub(super) resolved: Option<Box<Values>>,
}

impl JobValues {
    /// Whether its table, an axis or `--set` sets a key for it.
    pub fn writes(&self, key: KeyId) -> bool {
        self.written.iter().any(|(k, _)| *k == key)
    }

    /// Returns all keys with their values for this job. PRECONDITION: [`Values::derive`] was called.
    pub fn values(&self) -> &Values {
        self.resolved.as_deref().expect("values are asked for after they are derived")
    }
}

impl Values {
    /// Returns values of which none is written or resolved.
    pub(super) fn empty() -> Self {
        Values { v: vec![Value::Unset; N_KEYS], given: [0; N_KEYS.div_ceil(64)], jobs: Vec::new(), of_job: false }
    }

    /// Returns the jobs, in the order of the sweep file; empty if there is only `[base.workload]`.
    pub fn jobs(&self) -> &[JobValues] {
        &self.jobs
    }

    pub(super) fn jobs_mut(&mut self) -> &mut Vec<JobValues> {
        &mut self.jobs
    }

    /// Whether these are the values of one of several jobs.
    pub fn is_of_job(&self) -> bool {
        self.of_job
    }

    /// Returns the values that a job starts from: these, with its own values over them.
    pub(super) fn under_job(&self, job: &JobValues) -> Values {
        let mut v = Values { v: self.v.clone(), given: self.given, jobs: Vec::new(), of_job: true };
        // A job's GPUs are its own.
        v.set_derived(KeyId::Gpus, Value::Unset);
        v.given[KeyId::Gpus as usize / 64] &= !(1 << (KeyId::Gpus as u32 % 64));
        job.written.iter().for_each(|(key, value)| v.set_given(*key, value.clone()));
        v
    }

    /// Returns the value at a path. PRECONDITION: for a job's key, [`Values::derive`] was called.
    pub fn at(&self, path: KeyPath) -> &Value {
        match path.job {
            Some(job) => self.jobs[usize::from(job)].values().get(path.key),
            None => self.get(path.key),
        }
    }

    /// Copies `other` into this object, reusing its allocations.
    pub fn copy_from(&mut self, other: &Values) {
        self.v.clone_from(&other.v);
        self.given = other.given;
        self.jobs.clone_from(&other.jobs);
        self.of_job = other.of_job;
    }

    /// Returns the value of a key.
    pub fn get(&self, key: KeyId) -> &Value {
        &self.v[key as usize]
    }

    /// Whether the key was written (in the sweep file, by an option, an axis or a configuration file) rather than left to its default.
    pub fn given(&self, key: KeyId) -> bool {
        self.given[key as usize / 64] >> (key as u32 % 64) & 1 == 1
    }

    pub(super) fn set_given(&mut self, key: KeyId, value: Value) {
        self.v[key as usize] = value;
        self.given[key as usize / 64] |= 1 << (key as u32 % 64);
    }

    pub(super) fn set_derived(&mut self, key: KeyId, value: Value) {
        self.v[key as usize] = value;
    }

    /// Whether a text or choice key has exactly this value.
    pub fn is(&self, key: KeyId, text: &str) -> bool {
        self.text(key) == text
    }

    /// Returns a text or choice; empty if unset.
    pub fn text(&self, key: KeyId) -> &str {
        match self.get(key) {
            Value::Choice(s) => s,
            Value::Text(s) => s,
            Value::Registered(policy) => policy.name(),
            _ => "",
        }
    }

    /// Returns the registered policy that a key names; `None` if its value is built in.
    pub fn registered(&self, key: KeyId) -> Option<&RegisteredPolicy> {
        match self.get(key) {
            Value::Registered(policy) => Some(policy),
            _ => None,
        }
    }

    /// Whether there is a value: written or derived, and no empty text.
    pub fn has(&self, key: KeyId) -> bool {
        match self.get(key) {
            Value::Unset => false,
            Value::Text(s) => !s.is_empty(),
            _ => true,
        }
    }

    /// Returns a whole number; 0 if unset.
    pub fn int(&self, key: KeyId) -> i64 {
        match self.get(key) {
            Value::Int(i) => *i,
            _ => 0,
        }
    }

    /// Returns a number; 0 if unset.
    pub fn float(&self, key: KeyId) -> f64 {
        match self.get(key) {
            Value::Float(x) => *x,
            Value::Int(i) => *i as f64,
            _ => 0.0,
        }
    }

    /// Returns a switch; off if unset.
    pub fn bool(&self, key: KeyId) -> bool {
        matches!(self.get(key), Value::Bool(true))
    }
}
