//! Options of the commands, declared once. [`super::command`] lists the commands.
//!
//! Layer: cli. Parses; decides nothing.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::Shell;

use hyperfold_base::budget;
use hyperfold_config::sweep::{Selection, Shard};
use hyperfold_engine::gpu::DeviceChoice;
use hyperfold_session::{EngineChoice, GpuDispatch, PlanProgress, SweepRequest};

/// Options of `run` and `plan` that select experiments.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The sweep file (TOML)
    pub sweep: PathBuf,
    /// Set a key of the sweep file, by its dotted name (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<String>,
    /// Only the experiments with exp_id mod N = I
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Only the experiments with exp_id below N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Memory that may be used, in GiB; an experiment that needs more fails alone [default: three quarters of what is free here, within a container's limit]
    #[arg(long, value_name = "GIB", value_parser = gibibytes)]
    pub memory: Option<u64>,
}

impl SweepArgs {
    /// Sets the memory limit of the process, if the user gave one.
    pub fn limit_memory(&self) {
        if let Some(bytes) = self.memory {
            budget::set_total(bytes);
        }
    }

    /// The sweep that these arguments ask for, without estimates of its time and memory.
    pub fn request(&self) -> SweepRequest {
        let selection = Selection { limit: self.limit, shard: self.shard };
        let (path, set, progress) = (self.sweep.clone(), self.set.clone(), PlanProgress::default());
        SweepRequest { path, set, selection, estimates: false, progress }
    }
}

/// Parses a number of GiB, and returns bytes.
fn gibibytes(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(gib) if (0.001..=1e6).contains(&gib) => Ok((gib * f64::from(1 << 30)) as u64),
        _ => Err("a number of GiB from 0.001 to 1000000 would be right, such as 16 or 0.5".to_string()),
    }
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Folder for the results; must not exist or be empty, except with --resume
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Engine: `auto` takes a real GPU when the batch is large enough to pay for it, else the CPU
    #[arg(long, value_parser = one_of(ENGINES), default_value = "auto")]
    pub engine: EngineChoice,
    /// GPU adapter, by its number or a part of its name in `hyperfold doctor` (repeatable: experiments go to whichever is free), or `all`
    #[arg(long, value_name = "INDEX|NAME")]
    pub device: Vec<DeviceChoice>,
    /// How steps reach a GPU: a workgroup an experiment, or a dispatch a system for very large experiments
    #[arg(long, value_parser = one_of(DISPATCHES), default_value = "auto")]
    pub gpu_dispatch: GpuDispatch,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// Keep what is simulated in this file (in a folder: a file there) for later runs and shards; `off`: remember nothing, not even within the run
    #[arg(long, value_name = "PATH|off")]
    pub memo: Option<PathBuf>,
    /// Most that the memo's file may have; what was used longest ago goes first
    #[arg(long, value_name = "N", requires = "memo", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub memo_limit_mib: u64,
    /// Carry on with the run that DIR holds: run what is missing, and write the files as if it had never stopped
    #[arg(long)]
    pub resume: bool,
    /// Exit with 3 if there was a warning
    #[arg(long)]
    pub strict: bool,
    /// No progress, no table, and warnings only with --strict; only errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Print one JSON object a line for each row of results.csv, in place of the tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Simulate some experiments of each kind for about 2 s, for a closer estimate of the time
    #[arg(long)]
    pub probe: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// File to write; an existing file is kept
    #[arg(default_value = "sweep.toml")]
    pub path: PathBuf,
    /// Only the keys that nearly every sweep sets, as a sweep that runs in seconds
    #[arg(long)]
    pub short: bool,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Print the schema of files that sweeps include, rather than of sweep files
    #[arg(long)]
    pub included: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also run the engine's kernels on every adapter that passes, and compare all bytes with the CPU engine (seconds; in software minutes)
    #[arg(long)]
    pub engine: bool,
    /// With --engine: only the cases that have one of these words in their names, such as `dcqcn`. Kernels for few cases compile sooner
    #[arg(long, value_name = "WORD", value_delimiter = ',', requires = "engine")]
    pub cases: Vec<String>,
    /// One JSON object a line: one an adapter, then one with the machine
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The benchmark, or `gpu`: what a GPU does, by number of experiments [default: all benchmarks but `gpu`]
    pub name: Option<String>,
    /// Writes the lines of `gpu` to FILE as well, each as soon as it is measured
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// `gpu` starts no measurement that it expects to end after SECONDS
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<f64>,
    /// `gpu` measures adapter number N of `hyperfold doctor`
    #[arg(long, value_name = "N")]
    pub device: Option<usize>,
    /// List the benchmarks
    #[arg(long)]
    pub list: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// The suite: closed-forms, kernels, layers, collectives, training, memory or serving [default: all]
    pub suite: Option<String>,
    /// Sweeps and measured values of this folder, FOLDER/SUITE/NAME.toml and NAME.csv, in place of the program's own
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// One JSON object a line, one line a row
    #[arg(long)]
    pub json: bool,
    /// Collectives by closed form alone, which takes a second
    #[arg(long)]
    pub closed_forms: bool,
    /// Leaves out each measured table and prints how many of its rows lie within the error that is stated without it; with --folder, of the tables in that folder
    #[arg(long, conflicts_with = "json")]
    pub coverage: bool,
    /// Writes the errors of measured rows by class, from which results state theirs, to FILE: of the suites training and collectives
    #[arg(long, value_name = "FILE", conflicts_with_all = ["suite", "folder", "json", "coverage"])]
    pub write_classes: Option<PathBuf>,
    /// Print what tables come to, as Markdown
    #[arg(long, hide = true, conflicts_with = "json")]
    pub markdown: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// The command whose page is printed [default: the program's own page]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub command: Option<String>,
    /// Write all pages into this folder instead; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

pub(super) fn key_value(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() => Ok(text.to_string()),
        _ => Err("write KEY=VALUE, for example transport.cc=dcqcn".into()),
    }
}

/// Parses one of the names of `choices`, which help, completions and errors list.
pub(super) fn one_of<T: Copy + Send + Sync>(choices: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(choices.iter().map(|(name, _)| *name))
        .map(|given| choices.iter().find(|(name, _)| *name == given).expect("clap accepts only these names").1)
}

/// Values of `--engine`.
pub(super) const ENGINES: &[(&str, EngineChoice)] =
    &[("auto", EngineChoice::Auto), ("cpu", EngineChoice::Cpu), ("gpu", EngineChoice::Gpu)];

/// Values of `--gpu-dispatch`.
const DISPATCHES: &[(&str, GpuDispatch)] =
    &[("auto", GpuDispatch::Auto), ("fused", GpuDispatch::Fused), ("per-system", GpuDispatch::PerSystem)];
