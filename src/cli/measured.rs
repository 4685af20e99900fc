//! `hyperfold measured`: converts output of other tools to measured rows, for `hyperfold calibrate` and `workload.kernels`.
//!
//! Layer: cli. It reads with `calibrate`, and writes only the files that options name.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

use super::args::one_of;
use super::exit::{CliError, Exit};
use super::output::write_out;
use super::{say, tell};
use hyperfold_base::{budget, input};
use hyperfold_config::spec::{SERVERS, find_server};
use hyperfold_validation::calibrate::{ProfilerRows, ProfilerStatistic, nccl_operations, nccl_tests, profiler_rows};

#[derive(Debug, Args)]
pub struct MeasuredArgs {
    #[command(subcommand)]
    pub command: MeasuredCommand,
}

#[derive(Debug, Subcommand)]
pub enum MeasuredCommand {
    /// Rows of a log of nccl-tests (all_reduce_perf and its like)
    NcclTests(NcclTestsArgs),
    /// Rows of a trace of PyTorch's profiler (export_chrome_trace)
    Pytorch(PytorchArgs),
}

/// The file that rows are written to.
#[derive(Debug, Args)]
pub struct MeasuredOutput {
    /// The CSV to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Overwrite what is there
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct NcclTestsArgs {
    /// File of what nccl-tests printed
    pub log: PathBuf,
    /// The operation, where the log does not name its program
    #[arg(long, value_name = "OP", value_parser = PossibleValuesParser::new(nccl_operations()))]
    pub op: Option<String>,
    /// Times in place instead of out of place
    #[arg(long)]
    pub in_place: bool,
    /// File for a sweep of the log's sizes on servers of --server, by closed form
    #[arg(long, value_name = "FILE", requires = "server")]
    pub sweep: Option<PathBuf>,
    /// The server of that sweep, a name of cluster.server
    #[arg(long, value_name = "NAME", requires = "sweep")]
    pub server: Option<String>,
    /// GPUs of that sweep, where the log does not list its ranks
    #[arg(long, value_name = "N", requires = "sweep", value_parser = clap::value_parser!(u32).range(2..=1 << 20))]
    pub gpus: Option<u32>,
    #[command(flatten)]
    pub output: MeasuredOutput,
}

#[derive(Debug, Args)]
pub struct PytorchArgs {
    /// The trace, JSON
    pub trace: PathBuf,
    /// Events of the trace that become rows
    #[arg(long, value_enum, default_value_t = RowsOf::Steps)]
    pub rows: RowsOf,
    /// Statistic that is taken of several times of the same
    #[arg(long, value_parser = one_of(STATISTICS), default_value = "median")]
    pub statistic: ProfilerStatistic,
    /// The GPU of --rows kernels, a name of cluster.gpu
    #[arg(long, value_name = "NAME")]
    pub gpu: Option<String>,
    #[command(flatten)]
    pub output: MeasuredOutput,
}

/// Events of a trace that become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowsOf {
    /// The time of a step: one row
    Steps,
    /// The time of a step in which kernels run that are not NCCL's: one row
    Compute,
    /// NCCL's kernels by operation, bytes and ranks
    Collectives,
    /// Matrix products by shape, for workload.kernels
    Kernels,
}

/// Values of `--statistic`.
const STATISTICS: &[(&str, ProfilerStatistic)] =
    &[("median", ProfilerStatistic::Median), ("min", ProfilerStatistic::Min), ("mean", ProfilerStatistic::Mean)];

/// Runs the command.
///
/// # Errors
/// The input is not valid, or a file to write exists already.
pub fn execute(args: &MeasuredArgs) -> Result<Exit, CliError> {
    match &args.command {
        MeasuredCommand::NcclTests(a) => of_nccl_tests(a),
        MeasuredCommand::Pytorch(a) => of_pytorch(a),
    }
}

fn of_nccl_tests(args: &NcclTestsArgs) -> Result<Exit, CliError> {
    let file = args.log.display().to_string();
    // NCCL's own lines may have any bytes.
    let bytes = read(&args.log)?;
    let text = String::from_utf8_lossy(&bytes);
    let log = nccl_tests(&text, &file, args.op.as_deref(), args.in_place).map_err(CliError::bad_input)?;
    log.notes.iter().for_each(|note| tell(&format!("hyperfold: note: {note}")));
    let sweep = match (&args.sweep, &args.server) {
        (Some(path), Some(server)) => {
            let Some(model) = find_server(server) else {
                let known = SERVERS.join(", ");
                return Err(CliError::bad_input(anyhow!(
                    "--server: no server is called \"{server}\"; there are {known}"
                )));
            };
            let gpus = model.gpus as u32;
            if let Some(n) = args.gpus.filter(|n| *n > gpus && n % gpus != 0) {
                let (fewer, more) = (n / gpus * gpus, n.div_ceil(gpus) * gpus);
                return Err(CliError::bad_input(anyhow!(
                    "--gpus: {n} are no whole servers; {server} has {gpus} GPUs, so {fewer} or {more} would be right"
                )));
            }
            if let (Some(ranks), Some(servers)) = (log.ranks, log.servers)
                && ranks != servers * gpus
            {
                tell(&format!(
                    "hyperfold: note: the log is of {ranks} ranks on {servers} hosts, and {server} has {gpus} GPUs: check cluster.gpus_per_server in the sweep"
                ));
            }
            let name = path.file_stem().map_or_else(|| "measured".to_string(), |s| s.to_string_lossy().into_owned());
            let text =
                log.sweep(&name, server, args.gpus).map_err(|why| CliError::bad_input(anyhow!("{file}: {why}")))?;
            Some((path, text))
        }
        _ => None,
    };
    write(&args.output, &log.csv(&file))?;
    if let Some((path, text)) = sweep {
        save(path, &text, args.output.force)?;
    }
    Ok(Exit::Ok)
}

fn of_pytorch(args: &PytorchArgs) -> Result<Exit, CliError> {
    let file = args.trace.display().to_string();
    let rows = match (args.rows, &args.gpu) {
        (RowsOf::Kernels, None) => {
            return Err(CliError::bad_input(anyhow!("--rows kernels needs --gpu NAME, the GPU that the trace is of")));
        }
        (RowsOf::Kernels, Some(gpu)) => ProfilerRows::Kernels(gpu),
        (_, Some(_)) => {
            return Err(CliError::bad_input(anyhow!("--gpu is read by --rows kernels alone; leave it out")));
        }
        (RowsOf::Steps, None) => ProfilerRows::Steps,
        (RowsOf::Compute, None) => ProfilerRows::Compute,
        (RowsOf::Collectives, None) => ProfilerRows::Collectives,
    };
    let max_bytes = input::MAX_BYTES.min(budget::total() / 4);
    let bytes = input::read_anywhere(&args.trace, max_bytes)
        .map_err(|e| CliError::bad_input(anyhow!("{}: {e}", args.trace.display())))?;
    let text = String::from_utf8_lossy(&bytes);
    let csv = profiler_rows(&text, &file, rows, args.statistic).map_err(CliError::bad_input)?;
    write(&args.output, &csv)?;
    Ok(Exit::Ok)
}

/// Bytes of a log or a table that the user names.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    input::read_anywhere(path, input::max_table_bytes())
        .map_err(|e| CliError::bad_input(anyhow!("{}: {e}", path.display())))
}

fn write(output: &MeasuredOutput, csv: &str) -> Result<(), CliError> {
    match &output.out {
        Some(path) => save(path, csv, output.force),
        None => {
            // On a terminal, control characters of names are shown as codes. A file or another program gets the exact bytes.
            match std::io::stdout().is_terminal() {
                true => csv.lines().for_each(say),
                false => write_out(csv.as_bytes()),
            }
            Ok(())
        }
    }
}

/// Writes a file and prints its name. An existing file is kept unless `force`.
pub(super) fn save(path: &Path, text: &str, force: bool) -> Result<(), CliError> {
    if !force && path.exists() {
        return Err(CliError::bad_input(anyhow!(
            "{}: exists already; name another file, or give --force",
            path.display()
        )));
    }
    fs::write(path, text).map_err(|e| CliError::bad_input(anyhow!("{}: {e}", path.display())))?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}
