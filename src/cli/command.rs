//! The commands, declared once.
//!
//! Layer: cli. Parses; decides nothing.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

use hyperfold_base::nearest::nearest;

use super::args::{
    BenchArgs, CompletionsArgs, DoctorArgs, InitArgs, ManArgs, PlanArgs, RunArgs, SchemaArgs, ValidateArgs,
};

/// Batch simulator for the networks that train large language models.
#[derive(Debug, Parser)]
#[command(name = "hyperfold", version, max_term_width = 110, after_help = EXIT_CODES)]
pub struct Cli {
    /// Folder that must hold every file that a sweep names, links followed: for sweeps of other people
    #[arg(long, global = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 every experiment has a result; 1 some experiments failed; 2 bad usage or input; \
3 a --strict or --fail-if condition or a bound of validate or calibrate was hit; 130 Ctrl-C";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Expand, validate and simulate a sweep; write results as they finish
    Run(RunArgs),
    /// Do the same up to validation, and say what would run
    Plan(PlanArgs),
    /// Join the folders of shards into that of the whole run
    Merge(super::merge::MergeArgs),
    /// Salvage what a damaged folder of results still holds
    Recover(super::recover::RecoverArgs),
    /// Rank experiments, explain differences, and gate CI on them
    Compare(super::compare::CompareArgs),
    /// Write an annotated sweep file to start from
    Init(InitArgs),
    /// List GPU adapters, test each, and say what to install
    Doctor(DoctorArgs),
    /// Run the benchmarks
    Bench(BenchArgs),
    /// Write the timeline of one experiment for Perfetto
    Trace(super::trace::TraceArgs),
    /// Explain what folding did, why not more, and what it leaves to a GPU
    Fold(super::fold::FoldArgs),
    /// Show, check, write and draw networks, without simulating anything
    Topo(super::topo::TopoArgs),
    /// Inspect, convert and rescale workload files of other tools
    Workload(super::workload::WorkloadArgs),
    /// Run a sweep's shards on a SLURM cluster, or write the manifest that does on Kubernetes
    Submit(Box<super::submit_args::SubmitArgs>),
    /// Hold the model against published measurements, and print the error of every row
    Validate(ValidateArgs),
    /// Fit keys of a sweep to measurements of your cluster, or check that they still fit
    Calibrate(Box<super::calibrate::CalibrateArgs>),
    /// Make measured rows of the output of nccl-tests or PyTorch's profiler
    Measured(super::measured::MeasuredArgs),
    /// Write report.html of a folder of results: one page that any browser opens
    Report(super::report::ReportArgs),
    /// Follow a run from its folder, also on another machine
    Watch(super::watch::WatchArgs),
    /// Draw a figure of columns of a folder of results, as SVG or PNG
    Plot(super::plot::PlotArgs),
    /// Print the JSON Schema of sweep files, for editors
    Schema(SchemaArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print a man page, or write all of them
    Man(ManArgs),
}

/// Adds a suggestion for a mistyped command if the parser has none: the parser's measure does not find swapped letters in short words.
pub fn suggest(error: &mut clap::Error) {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) if error.get(ContextKind::SuggestedSubcommand).is_none() => typed.clone(),
        _ => return,
    };
    let command = Cli::command();
    if let Some(name) = nearest(&typed, command.get_subcommands().map(clap::Command::get_name)) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name.to_string()]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_command_is_told_the_nearest() {
        let mut error = Cli::try_parse_from(["hyperfold", "rnu"]).unwrap_err();
        suggest(&mut error);
        assert!(error.to_string().contains("'run'"), "{error}");
        let mut stranger = Cli::try_parse_from(["hyperfold", "xyzzyxyzzy"]).unwrap_err();
        suggest(&mut stranger);
        assert!(!stranger.to_string().contains("similar"), "{stranger}");
    }

    #[test]
    fn the_declaration_is_consistent() {
        Cli::command().debug_assert();
    }
}
