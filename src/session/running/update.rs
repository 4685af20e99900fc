//! The state from which a run starts, and the updates that it reports.
//!
//! Layer: session.

use std::collections::BTreeMap;

use hyperfold_results::manifest::AdapterUsed;
use hyperfold_results::{ExperimentRecord, Finished, LookRecord, StatsRecord};

use crate::error::SessionError;

/// The chosen engine; printed and recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineUsed {
    /// `cpu` or `gpu`.
    pub engine: &'static str,
    /// Why this engine was chosen, as half a sentence.
    pub reason: String,
    /// GPUs that simulate, in the order of `--device`; empty on the CPU.
    pub adapters: Vec<AdapterUsed>,
}

/// Results that an earlier run has left to continue from.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Records of experiments that are complete.
    pub records: Vec<ExperimentRecord>,
    /// Statistics of these, by `exp_id`.
    pub stats: BTreeMap<u64, StatsRecord>,
    /// Candidates that a search has evaluated.
    pub looks: Vec<LookRecord>,
}

/// An event of a run, in the order in which it happens.
#[derive(Clone, Debug)]
pub enum Update {
    /// GPU kernels were compiled.
    Compiled {
        /// Wall time of that, in s.
        seconds: f64,
    },
    /// An experiment entered a batch.
    Started {
        /// Number of the experiment.
        exp_id: u64,
    },
    /// How much of the work of the experiments to run is done: packets and tasks together.
    Progress {
        /// Packets and tasks that are done.
        done: u64,
        /// Packets and tasks of all experiments.
        total: u64,
    },
    /// An experiment has its result: `ok`, `oom` or `failed`.
    Finished(Box<Finished>),
    /// A search has evaluated a candidate.
    Looked(LookRecord),
    /// A search has decided which experiments run.
    Chosen {
        /// `exp_id`s that run, ascending.
        ids: Vec<u64>,
        /// Content of `optimize.csv`: the reason for every candidate.
        csv: Vec<u8>,
    },
    /// The timeline of an experiment, before it is finished.
    Traced {
        /// Number of the experiment.
        exp_id: u64,
        /// The timeline as Perfetto reads it.
        bytes: Vec<u8>,
    },
    /// A panic inside an experiment, with its backtrace.
    Defect {
        /// Number of the experiment.
        exp_id: u64,
        /// Text for the user.
        report: String,
    },
    /// A text for the log and the terminal.
    Message(String),
}

/// Receives the events of a run. An error means that results cannot be written, and the run should stop.
pub type UpdateSink<'a> = dyn FnMut(Update) -> Result<(), SessionError> + Send + 'a;
