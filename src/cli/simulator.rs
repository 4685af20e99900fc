//! The boundary between the command line and what it drives: sweeps, engines, benchmarks.
//!
//! Layer: cli. [`super::glue`] implements it with the layers below; tests implement it with a few lines.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::engine::gpu::DeviceChoice;
use crate::results::manifest::AdapterUsed;
use crate::results::{Axis, ExperimentRecord, Finished, InputFile, LookRecord, Outputs, StatsRecord};
use crate::sweep::Selection;

use super::args::{EngineChoice, GpuDispatch, SweepArgs};
use super::exit::CliError;
use super::interrupt::Interrupt;

/// Which experiments are meant.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    pub path: PathBuf,
    /// `KEY=VALUE`, in the order typed.
    pub set: Vec<String>,
    pub selection: Selection,
}

impl From<&SweepArgs> for SweepRequest {
    fn from(args: &SweepArgs) -> Self {
        let selection = Selection { limit: args.limit, shard: args.shard };
        SweepRequest { path: args.sweep.clone(), set: args.set.clone(), selection }
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
    /// Groups of experiments that resolve to one configuration, in words.
    pub duplicates: Vec<String>,
    /// Experiments whose model does not fit the GPU's memory: id and why.
    pub cannot_fit: Vec<(u64, String)>,
    /// Estimated memory of the largest batch, bytes; `None` where nothing is known.
    pub memory_bytes: Option<u64>,
    /// Estimated time of the run, seconds; `None` where nothing is known.
    pub seconds: Option<f64>,
    /// What is worth telling but stops nothing.
    pub warnings: Vec<String>,
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
}

impl fmt::Display for SearchPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, coarse, full) = (self.candidates, self.coarse, self.full);
        write!(
            f,
            "{n} candidates estimated, at most {coarse} simulated with coarse packets, {full} experiments run in full; by {}",
            self.objectives.join(", ")
        )
    }
}

impl SearchPlan {
    /// Packets simulated over those of all candidates, coarse ones being an eighth.
    pub fn share(&self) -> f64 {
        (self.full as f64 + self.coarse as f64 / 8.0) / self.candidates.max(1) as f64
    }
}

/// How to simulate.
#[derive(Clone, Debug)]
pub struct RunSettings {
    pub engine: EngineChoice,
    pub devices: Vec<DeviceChoice>,
    pub gpu_dispatch: GpuDispatch,
    /// CPU threads, at least 1.
    pub jobs: usize,
    pub memo: MemoChoice,
    pub interrupt: Interrupt,
}

/// Where what was simulated is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MemoChoice {
    /// Nowhere.
    Off,
    /// In memory, as long as the run lasts.
    #[default]
    Run,
    /// On disk as well.
    Kept { path: PathBuf, limit_bytes: u64 },
}

/// What simulates, once that is decided; printed and recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineUsed {
    /// `cpu` or `gpu`.
    pub engine: &'static str,
    /// Why that one, half a sentence.
    pub reason: String,
    pub adapters: Vec<AdapterUsed>,
}

/// What an earlier run has left to carry on from.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Of experiments that are complete.
    pub records: Vec<ExperimentRecord>,
    /// Statistics of these, by `exp_id`.
    pub stats: BTreeMap<u64, StatsRecord>,
    /// What a search found on its way.
    pub looks: Vec<LookRecord>,
}

/// News of a run, in the order it happens.
#[derive(Clone, Debug)]
pub enum Update {
    /// GPU kernels were compiled.
    Compiled { seconds: f64 },
    /// An experiment entered a batch.
    Started { exp_id: u64 },
    /// An experiment has its result, `ok`, `oom` or `failed`.
    Finished(Box<Finished>),
    /// A search has looked at a candidate.
    Looked(LookRecord),
    /// A search has decided which experiments run; `csv` says of every candidate why.
    Chosen { ids: Vec<u64>, csv: Vec<u8> },
    /// The timeline of an experiment, before it is finished.
    Traced { exp_id: u64, bytes: Vec<u8> },
    /// For the log and the terminal.
    Message(String),
}

/// Takes the news; an error means that results cannot be written, and the run should stop.
pub type UpdateSink<'a> = dyn FnMut(Update) -> anyhow::Result<()> + Send + 'a;

/// A benchmark by name.
#[derive(Clone, Debug, Serialize)]
pub struct BenchInfo {
    pub name: String,
    pub about: String,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    pub name: String,
    pub engine: String,
    pub hosts: u64,
    pub experiments: u64,
    pub packet_hops: u64,
    pub seconds: f64,
    pub packet_hops_per_s: f64,
    pub peak_bytes: u64,
}

/// Sweeps, engines and benchmarks.
pub trait Simulator {
    /// An expanded sweep.
    type Sweep;
    /// Engines ready to run: threads, or devices that have passed their self-test.
    type Engine;

    /// Reads, expands, validates and selects.
    ///
    /// # Errors
    /// Anything wrong with the sweep or its input files; the message names file, line or key, value and what would be right.
    fn load(&self, request: &SweepRequest) -> anyhow::Result<(Planned, Self::Sweep)>;

    /// Decides what simulates, before anything is written.
    ///
    /// # Errors
    /// No adapter for `--engine gpu`, or a `--device` that is not there.
    fn engine(&self, sweep: &Self::Sweep, settings: &RunSettings) -> anyhow::Result<(EngineUsed, Self::Engine)>;

    /// Simulates every selected experiment once, reporting each as it finishes, except those whose records are `known` from an earlier
    /// run, whose search is not repeated either. Returns early, without an error, when `settings.interrupt` asks for it. The result is warnings that show only afterwards, with
    /// the known records taken into account.
    ///
    /// # Errors
    /// The run as a whole cannot go on; one bad experiment is a failed record instead.
    fn run(
        &self,
        sweep: Self::Sweep,
        engine: Self::Engine,
        settings: &RunSettings,
        known: &Known,
        sink: &mut UpdateSink<'_>,
    ) -> Result<Vec<String>, CliError>;

    /// An annotated sweep file.
    fn template(&self) -> String;

    /// The benchmarks there are.
    fn benches(&self) -> Vec<BenchInfo>;

    /// Runs one, reporting its rows as they are measured.
    ///
    /// # Errors
    /// It could not be run.
    fn bench(&self, name: &str, sink: &mut dyn FnMut(BenchRow)) -> anyhow::Result<()>;
}
