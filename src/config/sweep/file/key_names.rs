//! Dotted names in a sweep file: keys of `[base]`, and those of jobs, `job.NAME.KEY`.
//!
//! Layer: sweep. Knows names and declarations, but no values and no places.

use std::sync::Arc;

use crate::spec::{KEYS, Key, KeyPath, find, find_job_key, hint, later, split_job_name};
use hyperfold_base::nearest::nearest;

/// A name that stands for a value.
#[derive(Clone, Copy)]
pub(in crate::sweep) struct KnownKey {
    pub path: KeyPath,
    pub key: &'static Key,
}

/// Why a name stands for nothing.
pub(in crate::sweep) enum UnknownName {
    /// It is known, but not in this version. The text says what to use instead.
    Later(&'static str),
    /// It is not known. The text says what may be meant.
    Hint(String),
}

/// Returns what a dotted name stands for in a sweep with these jobs.
pub(in crate::sweep) fn declared(name: &str, jobs: &[Arc<str>]) -> Result<KnownKey, UnknownName> {
    let unknown = |hint: String| Err(UnknownName::Hint(hint));
    let Some((job, rest)) = split_job_name(name) else {
        return match (find(name), later(name)) {
            (Some(key), _) => Ok(KnownKey { path: key.id.into(), key }),
            (None, Some(instead)) => Err(UnknownName::Later(instead)),
            (None, None) => unknown(hint(name)),
        };
    };
    let Some(number) = jobs.iter().position(|j| **j == *job) else {
        return unknown(match jobs {
            [] => {
                "there are no jobs; jobs are [[job]] tables, each with a name, and their keys are job.NAME.KEY".into()
            }
            _ => format!("there is no job `{}`; the jobs are {}", short(job), jobs.join(", ")),
        });
    };
    if rest.is_empty() {
        return unknown(format!("write `job.{job}.KEY`, for example `job.{job}.gpus`"));
    }
    match find_job_key(rest) {
        Some(key) => Ok(KnownKey { path: KeyPath { job: Some(number as u16), key: key.id }, key }),
        None => match later(&format!("workload.{rest}")) {
            Some(instead) => Err(UnknownName::Later(instead)),
            None => unknown(job_hint(job, rest)),
        },
    }
}

/// Returns a hint for an unknown key of a job.
fn job_hint(job: &str, rest: &str) -> String {
    let job_keys =
        || KEYS.iter().filter_map(|k| k.name.strip_prefix("workload.").or_else(|| k.name.strip_prefix("job.")));
    let plain = rest.strip_prefix("workload.").unwrap_or(rest);
    let elsewhere = KEYS.iter().find(|k| k.name == rest || k.name.rsplit('.').next() == Some(rest));
    match (find_job_key(plain), nearest(rest, job_keys()), elsewhere) {
        (Some(_), ..) => format!("write `job.{job}.{plain}`: a job's keys are those of [base.workload] without `workload.`"),
        (_, _, Some(key)) => format!("`{}` is the same for all jobs; write it in [base]", key.name),
        (_, Some(near), _) => format!("did you mean `job.{job}.{near}`?"),
        _ => "a job has the keys of [base.workload], without `workload.`, and name, gpus, placement, start_us, arrival_us, background"
            .to_string(),
    }
}

/// Returns a name, shortened for a message.
fn short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}
