//! What is to be run, as far as a plan and the files of a run need to know it.
//!
//! Layer: session.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::results::{Axis, InputFile, Outputs};
use crate::sweep::Selection;

use super::excluded::Excluded;
use super::forecast::{COARSE_PACKETS, MemoryForecast, TimeForecast};

/// Which experiments are meant.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    pub path: PathBuf,
    /// `KEY=VALUE`, in the order typed.
    pub set: Vec<String>,
    pub selection: Selection,
    pub progress: PlanProgress,
}

/// How many experiments of a sweep are planned. Clones share their counts, so that another thread can tell them.
#[derive(Clone, Debug, Default)]
pub struct PlanProgress(Arc<(AtomicU64, AtomicU64)>);

impl PlanProgress {
    /// Experiments that are planned, and how many there are: 0 until that is known.
    pub fn planned(&self) -> (u64, u64) {
        (self.0.0.load(Ordering::Relaxed), self.0.1.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, planned: usize, of: usize) {
        self.0.0.store(planned as u64, Ordering::Relaxed);
        self.0.1.store(of as u64, Ordering::Relaxed);
    }
}

/// A validated sweep, as far as the command line needs to know it.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    pub name: String,
    /// Experiments after constraints, before `--limit` and `--shard`.
    pub experiments: u64,
    /// `exp_id`s to run, ascending.
    pub selected: Vec<u64>,
    pub axes: Vec<Axis>,
    pub outputs: Outputs,
    /// The sweep with every key resolved, TOML.
    pub resolved: String,
    /// Hash of all its experiments, selected or not.
    pub digest: String,
    /// The sweep file, absolute.
    pub sweep_path: String,
    /// Repeats of every configuration.
    pub replicas: u64,
    pub inputs: Vec<InputFile>,
    /// Experiments of the sweep, selected or not, with the configuration and seed of one before them.
    pub duplicates: u64,
    /// The same in words; `None` where there are none.
    pub duplicates_note: Option<String>,
    /// Selected experiments that take more memory than there is, of their GPUs or of this machine.
    pub cannot_fit: Excluded,
    /// Selected experiments whose keys or inputs do not go together: their rows will be `failed`.
    pub cannot_run: Excluded,
    /// Estimated memory of the run at its peak, bytes by what holds them; `None` where nothing is known.
    pub memory: Option<MemoryForecast>,
    /// Estimated time of the run, seconds; `None` where nothing is known.
    pub seconds: Option<TimeForecast>,
    /// What is worth telling but stops nothing.
    pub warnings: Vec<String>,
    /// Experiments that may need more memory than their GPUs have, by `exp_id`, and why.
    pub tight: BTreeMap<u64, String>,
    /// With `method = "optimize"`: not all of `selected` are run.
    pub search: Option<SearchPlan>,
}

impl Planned {
    /// Experiments that get a row, at most.
    pub fn rows(&self) -> u64 {
        self.search.as_ref().map_or(self.selected.len() as u64, |s| s.full)
    }
}

/// What a search will do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchPlan {
    /// Points to choose from; all are estimated.
    pub candidates: u64,
    /// Those simulated with coarse packets, at most.
    pub coarse: u64,
    /// Experiments run in full, at most.
    pub full: u64,
    pub objectives: Vec<String>,
    /// Conditions that what is run in full must meet.
    pub limits: Vec<String>,
}

impl fmt::Display for SearchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, coarse, full) = (self.candidates, self.coarse, self.full);
        write!(
            f,
            "{n} candidates estimated, at most {coarse} simulated with coarse packets, {full} experiments run in full; by {}",
            self.objectives.join(", ")
        )?;
        if self.limits.is_empty() { Ok(()) } else { write!(f, "; within {}", self.limits.join(", ")) }
    }
}

impl SearchPlan {
    /// Packets simulated over those of all candidates, coarse ones being an eighth.
    pub fn share(&self) -> f64 {
        (self.full as f64 + self.coarse as f64 * COARSE_PACKETS) / self.candidates.max(1) as f64
    }
}
