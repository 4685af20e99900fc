//! Errors in a sweep file or a configuration file, as messages that a person can act on.
//!
//! Layer: spec. Every message names the place (file and line, or the option), the key, the value found and what would be right.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::key_id::KeyId;
use super::key_path::name_of_job_key;

/// The place where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, or a part of it.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1, if known.
        line: Option<u32>,
        /// Range of bytes in that line, if known. Boxed, so that errors stay small.
        columns: Option<Box<Range<usize>>>,
    },
    /// `--set KEY=VALUE`, as typed.
    Set(String),
    /// One experiment of a sweep, named by its axis values.
    Experiment {
        /// Path of the sweep file.
        path: PathBuf,
        /// Axes and values, as text.
        axes: String,
    },
}

impl Place {
    /// Creates the place of a whole file.
    pub fn file(path: &Path) -> Self {
        Place::File { path: path.to_path_buf(), line: None, columns: None }
    }

    /// Creates the place of a line, counted from 1.
    pub fn line(path: &Path, line: usize) -> Self {
        Place::File { path: path.to_path_buf(), line: u32::try_from(line).ok(), columns: None }
    }

    /// Creates the place of a part of a line, counted from 1: a range of its bytes, counted from 0.
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

/// A reason why a sweep file, an option or a configuration file cannot be used. All of them are exit code 2.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// A file cannot be read.
    #[error("{place}: cannot read it: {why}")]
    Read {
        /// Place of the file that cannot be read.
        place: Place,
        /// Error of the operating system, in words.
        why: String,
    },
    /// A file is no TOML.
    #[error("{place}: not valid TOML: {why}")]
    Syntax {
        /// Place of the text that is no TOML.
        place: Place,
        /// The fault, in the words of the parser.
        why: String,
    },
    /// There is no such key.
    #[error("{place}: unknown key `{key}`; {hint}")]
    UnknownKey {
        /// Place where it was written.
        place: Place,
        /// Name of a key, as it was written.
        key: String,
        /// A suggestion of the name that may have been meant.
        hint: String,
    },
    /// The key has a name, but this version does nothing with it.
    #[error("{place}: `{key}` is not available in this version; {instead}")]
    KeyNotAvailable {
        /// Place where it was written.
        place: Place,
        /// Dotted name of the key.
        key: String,
        /// A suggestion of the way to go instead.
        instead: String,
    },
    /// A key cannot have this value.
    #[error("{place}: `{key} = {value}`: {why}")]
    BadValue {
        /// Place where it was written.
        place: Place,
        /// Dotted name of the key.
        key: String,
        /// Value, as it was written.
        value: String,
        /// A description of values that would be right.
        why: String,
    },
    /// A key must be written.
    #[error("{place}: `{key}` is missing; {hint}")]
    Missing {
        /// Place where it was written.
        place: Place,
        /// Dotted name of the key.
        key: String,
        /// A description of the value to write.
        hint: String,
    },
    /// The sweep as a whole is wrong.
    #[error("{place}: {why}")]
    Sweep {
        /// Place where it was written.
        place: Place,
        /// The fault, in words for the user.
        why: String,
    },
}

impl SpecError {
    /// Returns the place of the fault.
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

    /// Returns the place of the fault, so that a caller who knows it better can change it.
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

/// A value that contradicts the rest of a configuration. The caller knows where the key was written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{}`: {why}", self.name())]
pub struct Conflict {
    /// Name of the job whose key it is; `None`: a key of `[base]`.
    pub job: Option<Arc<str>>,
    /// The key whose value it is.
    pub key: KeyId,
    /// A description of the contradiction, and how to resolve it.
    pub why: String,
}

impl Conflict {
    /// Returns the conflict as one of a job's key.
    pub(super) fn of_job(self, job: &Arc<str>) -> Conflict {
        // A job's cluster is its GPUs.
        let key = if self.key == KeyId::Gpus { KeyId::JobGpus } else { self.key };
        let why = self.why.replace("cluster.gpus =", &format!("{} =", name_of_job_key(job, KeyId::JobGpus)));
        Conflict { job: Some(Arc::clone(job)), key, why }
    }

    /// Returns the dotted name of the key.
    pub fn name(&self) -> String {
        match &self.job {
            Some(job) => name_of_job_key(job, self.key),
            None => self.key.name().to_string(),
        }
    }
}
