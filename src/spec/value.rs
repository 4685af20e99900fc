//! A key's value, checked against its declaration, and the values of all keys of one experiment.
//!
//! Layer: spec. Values are still in a person's units; `config` turns them into integers.

use std::fmt;
use std::sync::Arc;

use super::key_id::{KeyId, N_KEYS};
use super::key_path::KeyPath;

/// One value. Choices point into the key table, so that comparing and copying them is cheap.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing was written and nothing applies.
    Unset,
    Int(i64),
    Float(f64),
    Bool(bool),
    Choice(&'static str),
    Text(Arc<str>),
}

impl fmt::Display for Value {
    /// As a person would write it, without quotes; this is also the canonical form that keys are hashed in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unset => f.write_str("auto"),
            Value::Int(i) => write!(f, "{i}"),
            // The shortest form that reads back to the same bits; -0 is 0.
            Value::Float(x) => write!(f, "{}", x + 0.0),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Choice(s) => f.write_str(s),
            Value::Text(s) => f.write_str(s),
        }
    }
}

impl Value {
    /// As TOML, quoted where it must be. `Unset` has no TOML form and is written as an empty string.
    pub fn to_toml(&self) -> String {
        match self {
            Value::Unset => "\"\"".to_string(),
            Value::Float(x) if x.fract() == 0.0 && x.abs() < 1e15 => format!("{x:.1}"),
            Value::Choice(s) => toml::Value::String((*s).to_string()).to_string(),
            Value::Text(s) => toml::Value::String(s.to_string()).to_string(),
            other => other.to_string(),
        }
    }
}

/// The values of all keys of one experiment, and which of them somebody wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    v: Vec<Value>,
    /// One bit a key.
    given: [u64; N_KEYS.div_ceil(64)],
    /// In the order of the sweep file; a job has none.
    jobs: Vec<JobValues>,
    /// Whether these are the values of one of several jobs.
    of_job: bool,
}

/// What one of several jobs has of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct JobValues {
    pub name: Arc<str>,
    /// What was written for it, later entries winning.
    pub(super) written: Vec<(KeyId, Value)>,
    /// All keys as they are for it, once they are derived.
    pub(super) resolved: Option<Box<Values>>,
}

impl JobValues {
    /// Whether its table, an axis or `--set` gives it a key of its own.
    pub fn writes(&self, key: KeyId) -> bool {
        self.written.iter().any(|(k, _)| *k == key)
    }

    /// All keys as they are for this job. PRECONDITION: [`Values::derive`] was called.
    pub fn values(&self) -> &Values {
        self.resolved.as_deref().expect("values are asked for after they are derived")
    }
}

impl Values {
    /// Nothing written, nothing resolved.
    pub(super) fn empty() -> Self {
        Values { v: vec![Value::Unset; N_KEYS], given: [0; N_KEYS.div_ceil(64)], jobs: Vec::new(), of_job: false }
    }

    /// The jobs, in the order of the sweep file; none where `[base.workload]` is all there is.
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

    /// The values that a job starts from: these, with what it has of its own over them.
    pub(super) fn under_job(&self, job: &JobValues) -> Values {
        let mut v = Values { v: self.v.clone(), given: self.given, jobs: Vec::new(), of_job: true };
        // A job's GPUs are its own.
        v.set_derived(KeyId::Gpus, Value::Unset);
        v.given[KeyId::Gpus as usize / 64] &= !(1 << (KeyId::Gpus as u32 % 64));
        job.written.iter().for_each(|(key, value)| v.set_given(*key, value.clone()));
        v
    }

    /// The value at a path. PRECONDITION: that of a job's key is asked for after [`Values::derive`].
    pub fn at(&self, path: KeyPath) -> &Value {
        match path.job {
            Some(job) => self.jobs[usize::from(job)].values().get(path.key),
            None => self.get(path.key),
        }
    }

    /// Becomes a copy of `other`, in the allocation at hand.
    pub fn copy_from(&mut self, other: &Values) {
        self.v.clone_from(&other.v);
        self.given = other.given;
        self.jobs.clone_from(&other.jobs);
        self.of_job = other.of_job;
    }

    /// The value of a key.
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

    /// A text or choice; empty if unset.
    pub fn text(&self, key: KeyId) -> &str {
        match self.get(key) {
            Value::Choice(s) => s,
            Value::Text(s) => s,
            _ => "",
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

    /// A whole number; 0 if unset.
    pub fn int(&self, key: KeyId) -> i64 {
        match self.get(key) {
            Value::Int(i) => *i,
            _ => 0,
        }
    }

    /// A number; 0 if unset.
    pub fn float(&self, key: KeyId) -> f64 {
        match self.get(key) {
            Value::Float(x) => *x,
            Value::Int(i) => *i as f64,
            _ => 0.0,
        }
    }

    /// A switch; off if unset.
    pub fn bool(&self, key: KeyId) -> bool {
        matches!(self.get(key), Value::Bool(true))
    }
}
