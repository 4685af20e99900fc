//! What can be wrong with a sweep file or a configuration file, as messages a person can act on.
//!
//! Layer: spec. Every message names the place (file and line, or the option), the key, the value found and what would be right.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::key_id::KeyId;
use super::key_path::name_of_job_key;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, a line counted from 1 where one is known, and the bytes of that line that are meant where that is known (boxed, so that errors stay small).
    File { path: PathBuf, line: Option<u32>, columns: Option<Box<Range<usize>>> },
    /// `--set KEY=VALUE`, as typed.
    Set(String),
    /// One experiment of a sweep, named by its axis values.
    Experiment { path: PathBuf, axes: String },
}

impl Place {
    /// A whole file.
    pub fn file(path: &Path) -> Self {
        Place::File { path: path.to_path_buf(), line: None, columns: None }
    }

    /// A line counted from 1.
    pub fn line(path: &Path, line: usize) -> Self {
        Place::File { path: path.to_path_buf(), line: u32::try_from(line).ok(), columns: None }
    }

    /// A part of a line counted from 1: bytes of it, counted from 0.
    pub fn columns(path: &Path, line: usize, columns: Range<usize>) -> Self {
        Place::File { path: path.to_path_buf(), line: u32::try_from(line).ok(), columns: Some(Box::new(columns)) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { path, line: Some(line), .. } => write!(f, "{}:{line}", path.display()),
            Place::File { path, line: None, .. } => write!(f, "{}", path.display()),
            Place::Set(text) => write!(f, "--set {text}"),
            Place::Experiment { path, axes } if axes.is_empty() => write!(f, "{}", path.display()),
            Place::Experiment { path, axes } => write!(f, "{} (experiment with {axes})", path.display()),
        }
    }
}

/// Why a sweep file, an option or a configuration file cannot be used. All of them are exit code 2.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SpecError {
    #[error("{place}: cannot read it: {why}")]
    Read { place: Place, why: String },
    #[error("{place}: not valid TOML: {why}")]
    Syntax { place: Place, why: String },
    #[error("{place}: unknown key `{key}`; {hint}")]
    UnknownKey { place: Place, key: String, hint: String },
    #[error("{place}: `{key}` is not available in this version; {instead}")]
    KeyNotAvailable { place: Place, key: String, instead: String },
    #[error("{place}: `{key} = {value}`: {why}")]
    BadValue { place: Place, key: String, value: String, why: String },
    #[error("{place}: `{key}` is missing; {hint}")]
    Missing { place: Place, key: String, hint: String },
    #[error("{place}: {why}")]
    Sweep { place: Place, why: String },
}

impl SpecError {
    /// Where the fault is.
    pub fn place(&self) -> &Place {
        match self {
            SpecError::Read { place, .. }
            | SpecError::Syntax { place, .. }
            | SpecError::UnknownKey { place, .. }
            | SpecError::KeyNotAvailable { place, .. }
            | SpecError::BadValue { place, .. }
            | SpecError::Missing { place, .. }
            | SpecError::Sweep { place, .. } => place,
        }
    }

    /// The same, for whoever knows better where that is.
    pub fn place_mut(&mut self) -> &mut Place {
        match self {
            SpecError::Read { place, .. }
            | SpecError::Syntax { place, .. }
            | SpecError::UnknownKey { place, .. }
            | SpecError::KeyNotAvailable { place, .. }
            | SpecError::BadValue { place, .. }
            | SpecError::Missing { place, .. }
            | SpecError::Sweep { place, .. } => place,
        }
    }
}

/// A value that does not fit together with the rest of a configuration. The caller knows where the key was written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{}`: {why}", self.name())]
pub struct Conflict {
    /// The name of the job whose key it is; `None`: a key of `[base]`.
    pub job: Option<Arc<str>>,
    pub key: KeyId,
    pub why: String,
}

impl Conflict {
    /// The same, of a key of this job.
    pub(super) fn of_job(self, job: &Arc<str>) -> Conflict {
        // A job's cluster is its GPUs.
        let key = if self.key == KeyId::Gpus { KeyId::JobGpus } else { self.key };
        let why = self.why.replace("cluster.gpus =", &format!("{} =", name_of_job_key(job, KeyId::JobGpus)));
        Conflict { job: Some(Arc::clone(job)), key, why }
    }

    /// The dotted name of the key.
    pub fn name(&self) -> String {
        match &self.job {
            Some(job) => name_of_job_key(job, self.key),
            None => self.key.name().to_string(),
        }
    }
}

/// The candidate nearest to `word` by edit distance, if it is near enough to be a slip of the keyboard.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 5).clamp(2, 4);
    candidates
        .map(|c| (distance(word, c, limit), c))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// The column that is meant by a name: the one of several that has the name and a unit behind it, as `makespan_ns` of `makespan`, or [`nearest`].
pub fn nearest_column<'a>(name: &str, columns: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let with_unit = |c: &&str| c.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
    columns.clone().filter(with_unit).min_by_key(|c| c.len()).or_else(|| nearest(name, columns))
}

/// Levenshtein distance over characters; `limit + 1` as soon as it cannot be at most `limit`.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let b: Vec<char> = b.chars().collect();
    let n_a = a.chars().count();
    if n_a.abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let words = ["topology.kind", "topology.k", "transport.cc"];
        assert_eq!(nearest("topology.knid", words.into_iter()), Some("topology.kind"));
        assert_eq!(nearest("transport.cv", words.into_iter()), Some("transport.cc"));
        assert_eq!(nearest("weather", words.into_iter()), None);
    }
}
