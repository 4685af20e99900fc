//! Finds keys by name, and suggests names for unknown ones.
//!
//! Layer: spec.

use super::aliases::meant;
use super::key::{Key, VARIABLES};
use super::key_id::KeyId;
use super::key_path::{JOB, WORKLOAD, split_job_name};
use super::keys::{KEYS, LATER, SECTIONS};
use hyperfold_base::nearest::nearest;

/// Returns the declaration of a dotted name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.name == name)
}

/// Returns the declaration of a key of a `[[job]]` table, by its name there.
pub fn find_job_key(name: &str) -> Option<&'static Key> {
    find(&format!("{JOB}{name}")).or_else(|| find(&format!("{WORKLOAD}{name}")))
}

/// Returns the declaration of a dotted name, of `[base]` or `job.NAME.KEY`.
pub fn find_declared(name: &str) -> Option<&'static Key> {
    match split_job_name(name) {
        Some((_, rest)) => find_job_key(rest),
        None => find(name),
    }
}

/// Returns a key's name without its section, as in labels of axes: `cc` of `transport.cc`, `train.placement` of `job.train.placement`.
pub fn short_name(name: &str) -> &str {
    match split_job_name(name) {
        Some(_) => name.strip_prefix(JOB).unwrap_or(name),
        None => name.rsplit('.').next().unwrap_or(name),
    }
}

/// Returns an axis' value as it stands in a sentence: a text without characters in quotes, since it would not be seen.
pub fn shown_value(text: &str) -> &str {
    if text.is_empty() { "\"\"" } else { text }
}

/// Returns an axis with its value, as in labels: `bytes 1000`.
pub fn named_value(name: &str, value: &impl std::fmt::Display) -> String {
    format!("{} {}", short_name(name), shown_value(&value.to_string()))
}

/// Values that are words and still need the name of their key.
const SAY_LITTLE: [&str; 7] = ["true", "false", "none", "auto", "off", "on", "default"];

/// Returns an axis' value as it stands in a list of values. A name says what it is, such as `dcqcn`; numbers, switches and keys of jobs need the name of their key.
pub fn told_value(name: &str, text: &str) -> String {
    let bare = text.starts_with(|c: char| c.is_ascii_alphabetic()) && !SAY_LITTLE.contains(&text);
    if bare && !name.starts_with(JOB) { text.to_string() } else { named_value(name, &text) }
}

/// Returns the declaration of a key.
pub fn key(id: KeyId) -> &'static Key {
    &KEYS[id as usize]
}

/// Returns what to use instead of a known name that this version lacks.
pub fn later(name: &str) -> Option<&'static str> {
    LATER
        .iter()
        .find(|(n, _)| name == *n || name.strip_prefix(n).is_some_and(|rest| rest.starts_with('.')))
        .map(|(_, instead)| *instead)
}

/// Returns the keys that an unknown name, with or without dots, may mean: those with such an alias, or with the same last part in another section. May be
/// empty.
pub fn alternatives(name: &str) -> Vec<&'static str> {
    let aliased = meant(name);
    if !aliased.is_empty() {
        return aliased;
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let (cluster_keys, others): (Vec<_>, Vec<_>) =
        suggested(name).filter(|k| k.rsplit('.').next() == Some(last)).partition(|k| is_of_a_cluster(k));
    if others.is_empty() { cluster_keys } else { others }
}

/// Whether only job mode reads a key: fewer people mean it than one with the same last part elsewhere.
fn is_of_a_cluster(name: &str) -> bool {
    ["jobs.", "scheduler.", "checkpoint.", "failures."].iter().any(|section| name.starts_with(section))
}

/// Returns the names that an unknown one may mean. Keys of jobs are suggested only for names of jobs' keys.
fn suggested(name: &str) -> impl Iterator<Item = &'static str> {
    let is_job_name = name.starts_with(JOB);
    KEYS.iter().map(|k| k.name).filter(move |k| is_job_name || !k.starts_with(JOB))
}

/// Returns a hint for an unknown dotted name.
pub fn hint(name: &str) -> String {
    if name.starts_with(VARIABLES) {
        let known: Vec<&str> = KEYS.iter().filter_map(|k| k.name.strip_prefix(VARIABLES)).collect();
        return format!("the variables that a simulation can follow are {}", known.join(", "));
    }
    // An alias is a better guess than a slip of the keyboard.
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
