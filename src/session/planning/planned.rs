//! The plan of a run, as far as the command line and the files of the run need it.
//!
//! Layer: session.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use hyperfold_config::sweep::Selection;
use hyperfold_results::{Axis, InputFile, NotCompared, Outputs};

use crate::planning::excluded::Excluded;
use crate::planning::forecast::{COARSE_PACKETS, MemoryForecast, TimeForecast};

/// A sweep file, and the experiments of it that are requested.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    /// Path of the sweep file.
    pub path: PathBuf,
    /// Keys that are set, as `KEY=VALUE`, in the order typed.
    pub set: Vec<String>,
    /// Which of its experiments are requested: `--limit`, `--shard`.
    pub selection: Selection,
    /// Whether the plan estimates time and memory. That takes time: clusters over days are simulated for a moment.
    pub estimates: bool,
    /// Counts the planned experiments; keep a clone to report them.
    pub progress: PlanProgress,
}

/// Counts the experiments of a sweep that are planned. Clones share their counts, so that another thread can report them.
#[derive(Clone, Debug, Default)]
pub struct PlanProgress(Arc<(AtomicU64, AtomicU64)>);

impl PlanProgress {
    /// Returns the number of planned experiments, and of all: 0 until that is known.
    pub fn planned(&self) -> (u64, u64) {
        (self.0.0.load(Ordering::Relaxed), self.0.1.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, planned: usize, n_experiments: usize) {
        self.0.0.store(planned as u64, Ordering::Relaxed);
        self.0.1.store(n_experiments as u64, Ordering::Relaxed);
    }
}

/// A validated sweep, as far as the command line needs it.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// Name of the sweep, from its file.
    pub name: String,
    /// Number of experiments after constraints, before `--limit` and `--shard`.
    pub experiments: u64,
    /// `exp_id`s to run, ascending.
    pub selected: Vec<u64>,
    /// Keys that the sweep varies, in its order, with the kind of their values.
    pub axes: Vec<Axis>,
    /// Files that the run writes besides `results.csv`, and the sets of columns there.
    pub outputs: Outputs,
    /// The sweep with every key resolved, as TOML.
    pub resolved: String,
    /// Hash of all its experiments, selected or not.
    pub digest: String,
    /// Absolute path of the sweep file.
    pub sweep_path: String,
    /// Number of repeats of every configuration.
    pub replicas: u64,
    /// Files that the sweep reads, with the hashes of their contents.
    pub inputs: Vec<InputFile>,
    /// Number of experiments, selected or not, that repeat configuration and seed of an earlier one.
    pub duplicates: u64,
    /// A note about duplicates; `None` if there are none.
    pub duplicates_note: Option<String>,
    /// Selected experiments that need more memory than their GPUs or this machine have.
    pub cannot_fit: Excluded,
    /// Selected experiments whose keys or inputs contradict each other: their rows will be `failed`.
    pub cannot_run: Excluded,
    /// Estimated peak memory of the run, bytes by what holds them; `None` if it was not estimated.
    pub memory: Option<MemoryForecast>,
    /// Estimated time of the run, seconds; `None` if it was not estimated.
    pub seconds: Option<TimeForecast>,
    /// Warnings that stop nothing.
    pub warnings: Vec<String>,
    /// Axes whose values are not compared, because their times come from different models.
    pub not_compared: Vec<NotCompared>,
    /// Experiments that may need more memory than their GPUs have, by `exp_id`, with reasons.
    pub tight: BTreeMap<u64, String>,
    /// Plan of the search with `method = "optimize"`: not all of `selected` are run.
    pub search: Option<SearchPlan>,
}

impl Planned {
    /// Most experiments that get a row.
    pub fn rows(&self) -> u64 {
        self.search.as_ref().map_or(self.selected.len() as u64, |s| s.full)
    }
}

/// The plan of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SearchPlan {
    /// Number of points to choose from; all are estimated.
    pub candidates: u64,
    /// Most candidates that are simulated with coarse packets.
    pub coarse: u64,
    /// Most experiments that are run in full.
    pub full: u64,
    /// The objectives of the search, the first before the others, as the sweep writes it.
    pub objectives: Vec<String>,
    /// Conditions on the experiments that are run in full.
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
    /// Packets that are simulated over those of all candidates; coarse simulations count an eighth.
    pub fn share(&self) -> f64 {
        (self.full as f64 + self.coarse as f64 * COARSE_PACKETS) / self.candidates.max(1) as f64
    }
}
