//! Finds keys by name, and suggests names for those that are unknown.
//!
//! Layer: spec.

use super::aliases::meant;
use super::error::nearest;
use super::key::{Key, VARIABLES};
use super::key_id::KeyId;
use super::key_path::{JOB, WORKLOAD, split_job_name};
use super::keys::{KEYS, LATER, SECTIONS};

/// The declaration of a dotted name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.name == name)
}

/// The declaration of a key of a `[[job]]` table, by its name there.
pub fn find_job_key(name: &str) -> Option<&'static Key> {
    find(&format!("{JOB}{name}")).or_else(|| find(&format!("{WORKLOAD}{name}")))
}

/// The declaration of a dotted name, be it of `[base]` or `job.NAME.KEY`.
pub fn find_declared(name: &str) -> Option<&'static Key> {
    match split_job_name(name) {
        Some((_, rest)) => find_job_key(rest),
        None => find(name),
    }
}

/// A key's name without its section, as labels of axes have it: `cc` of `transport.cc`, `train.placement` of `job.train.placement`.
pub fn short_name(name: &str) -> &str {
    match split_job_name(name) {
        Some(_) => name.strip_prefix(JOB).unwrap_or(name),
        None => name.rsplit('.').next().unwrap_or(name),
    }
}

/// The declaration of a key.
pub fn key(id: KeyId) -> &'static Key {
    &KEYS[id as usize]
}

/// What a known name that this version lacks asks for, and what to use instead.
pub fn later(name: &str) -> Option<&'static str> {
    LATER
        .iter()
        .find(|(n, _)| name == *n || name.strip_prefix(n).is_some_and(|rest| rest.starts_with('.')))
        .map(|(_, instead)| *instead)
}

/// Keys that an unknown name, with dots or without, may mean: an alias of theirs, or their last part without its section. May be empty.
pub fn alternatives(name: &str) -> Vec<&'static str> {
    let aliased = meant(name);
    if !aliased.is_empty() {
        return aliased;
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let (of_clusters, others): (Vec<_>, Vec<_>) =
        suggested(name).filter(|k| k.rsplit('.').next() == Some(last)).partition(|k| is_of_a_cluster(k));
    if others.is_empty() { of_clusters } else { others }
}

/// Whether only job mode reads a key: fewer people mean it than one of the same last part elsewhere.
fn is_of_a_cluster(name: &str) -> bool {
    ["jobs.", "scheduler.", "checkpoint.", "failures."].iter().any(|section| name.starts_with(section))
}

/// Names that may be meant by an unknown one. Keys of jobs alone are for those who write of jobs.
fn suggested(name: &str) -> impl Iterator<Item = &'static str> {
    let of_jobs = name.starts_with(JOB);
    KEYS.iter().map(|k| k.name).filter(move |k| of_jobs || !k.starts_with(JOB))
}

/// A hint for an unknown dotted name.
pub fn hint(name: &str) -> String {
    if name.starts_with(VARIABLES) {
        let known: Vec<&str> = KEYS.iter().filter_map(|k| k.name.strip_prefix(VARIABLES)).collect();
        return format!("the variables that a simulation can follow are {}", known.join(", "));
    }
    // What somebody wrote on purpose is a better guess than a slip of the keyboard.
    let aliased = meant(name);
    if aliased.is_empty()
        && let Some(k) = nearest(name, suggested(name))
    {
        return format!("did you mean `{k}`?");
    }
    let other = alternatives(name);
    if !other.is_empty() {
        return format!("did you mean `{}`?", other.join("` or `"));
    }
    let section = name.split('.').next().unwrap_or(name);
    let table = name.rsplit_once('.').map_or(name, |(table, _)| table);
    let below = |table: &str| -> Vec<&str> {
        KEYS.iter()
            .map(|k| k.name)
            .filter(|k| k.strip_prefix(table).is_some_and(|rest| rest.starts_with('.')))
            .collect()
    };
    let mut known = below(table);
    if known.is_empty() {
        known = below(section);
    }
    if known.is_empty() {
        known = SECTIONS.iter().map(|(s, _)| *s).filter(|s| *s != "job").collect();
        return format!("the sections are {}", known.join(", "));
    }
    known.truncate(40);
    format!("known there: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::key_path::KeyPath;
    use super::*;

    #[test]
    fn names_of_jobs_keys_lead_to_keys_and_back() {
        for name in ["job.a.gpus", "job.a.tp", "job.b-1.nccl.NCCL_ALGO"] {
            let (job, rest) = split_job_name(name).unwrap();
            let path = KeyPath { job: Some(0), key: find_job_key(rest).unwrap().id };
            assert_eq!(path.name(&[job.into()]), name);
            assert_eq!(find_declared(name).unwrap().id, path.key);
        }
        assert_eq!(split_job_name("jobs.a.tp"), None);
        assert!(find_declared("job.gpus").is_none() && find_declared("job.a.cc").is_none());
    }
}
