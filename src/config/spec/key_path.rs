//! The path of a value in an experiment: a key of `[base]`, or one of a `[[job]]`.
//!
//! Layer: spec. A leaf: declarations are in `keys`. Jobs have their names in the sweep file; here a job is a number, its place in the file.

use std::borrow::Cow;
use std::sync::Arc;

use super::key_id::KeyId;

/// Prefix of the names of jobs' keys: `job.NAME.KEY`.
pub const JOB: &str = "job.";
/// The section whose keys a job's table has besides its own.
pub(super) const WORKLOAD: &str = "workload.";

/// A key of an experiment: of the whole experiment, or of one of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyPath {
    /// The job's place in the sweep file; `None`: a key of `[base]`.
    pub job: Option<u16>,
    /// Key within `[base]` or the job's table.
    pub key: KeyId,
}

impl From<KeyId> for KeyPath {
    fn from(key: KeyId) -> KeyPath {
        KeyPath { job: None, key }
    }
}

impl KeyPath {
    /// Returns the dotted name, given the names of the jobs.
    pub fn name(self, jobs: &[Arc<str>]) -> Cow<'static, str> {
        match self.job {
            Some(job) => name_of_job_key(&jobs[usize::from(job)], self.key).into(),
            None => self.key.name().into(),
        }
    }
}

/// Returns the dotted name of a job's key, `job.NAME.KEY`.
pub(super) fn name_of_job_key(job: &str, key: KeyId) -> String {
    let name = key.name();
    let rest = name.strip_prefix(WORKLOAD).or_else(|| name.strip_prefix(JOB)).unwrap_or(name);
    format!("{JOB}{job}.{rest}")
}

/// Splits a dotted name `job.NAME.KEY` into job and key; the key is empty if the name ends early. `None`: it is another kind of name.
pub fn split_job_name(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(JOB).or_else(|| (name == "job").then_some(""))?;
    Some(rest.split_once('.').unwrap_or((rest, "")))
}
