//! `hyperfold workload`: inspects, converts and rescales workload files.
//!
//! Layer: cli. It reads with `workload::import` and writes with `workload::export`. Files are written only where `--out` says.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand, ValueEnum};

use super::exit::{CliError, Exit};
use super::table::{TextTable, time};
use super::{say, say_json, tell};
use hyperfold_llm::workload::critical_path::free_makespan;
use hyperfold_llm::workload::export;
use hyperfold_llm::workload::import::{self, ImportOptions, Imported, WorkloadFormat, chakra::GROUPS_FILE};
use hyperfold_llm::workload::inspect::{Summary, summary};
use hyperfold_llm::workload::program::Workload;
use hyperfold_llm::workload::rescale::{Factor, rescale};

/// Maximum number of operations, over all ranks, for which `inspect` computes the free makespan: a few seconds.
const MAX_INSPECTED: u64 = 20_000_000;

#[derive(Debug, Args)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    pub command: WorkloadCommand,
}

#[derive(Debug, Subcommand)]
pub enum WorkloadCommand {
    /// Say what is in a workload: ranks, operations, bytes, compute time
    Inspect(InspectArgs),
    /// Write a workload in another form
    Convert(ConvertArgs),
    /// Write a workload with other sizes, durations or ranks
    Rescale(RescaleArgs),
}

/// The workload to read.
#[derive(Debug, Args)]
pub struct Input {
    /// A file; for Chakra a folder or a prefix of `.et` files, for Kineto and flight recorders a folder of `.json` files
    pub path: PathBuf,
    /// Form of the file [default: by its name and beginning]
    #[arg(long, value_enum)]
    pub format: Option<InputFormat>,
    /// Ranks, where the file leaves them open: SimAI text, a single file of Chakra, Kineto or a flight recorder
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,
    /// Speed of a GPU, for trace nodes with num_ops and no duration
    #[arg(long, value_name = "GFLOP/S", default_value_t = 0)]
    pub gflops: u32,
    /// Memory bandwidth of a GPU, for trace nodes with tensor_size and no duration
    #[arg(long, value_name = "GB/S", default_value_t = 0)]
    pub memory_gbps: u32,
    /// Let ranks wait for each call of a flight recorder's dump, as workload.wait_for_calls does
    #[arg(long)]
    pub wait_for_calls: bool,
}

#[derive(Debug, Args)]
pub struct InspectArgs {
    #[command(flatten)]
    pub input: Input,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Form and file of the output.
#[derive(Debug, Args)]
pub struct WorkloadOutput {
    /// Form to write
    #[arg(long, value_enum)]
    pub to: OutputFormat,
    /// The file to write; for Chakra the folder
    #[arg(long)]
    pub out: PathBuf,
    /// Overwrite what is there
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct ConvertArgs {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub output: WorkloadOutput,
}

#[derive(Debug, Args)]
pub struct RescaleArgs {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub output: WorkloadOutput,
    /// Multiply the bytes of all communication, for example by 2, 0.5 or 1/3
    #[arg(long, value_name = "FACTOR")]
    pub bytes: Option<Factor>,
    /// Multiply the durations of all compute
    #[arg(long, value_name = "FACTOR")]
    pub compute: Option<Factor>,
}

/// Forms that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// SimAI and AICB workload text
    Simai,
    /// Chakra execution traces
    Chakra,
    /// htsim connection matrix
    Htsim,
    /// GOAL text
    Goal,
    /// Traces of PyTorch's profiler
    Kineto,
    /// Dumps of PyTorch's flight recorder
    FlightRecorder,
}

/// Forms that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// SimAI workload text
    Simai,
    /// Chakra execution traces, one a rank
    Chakra,
    /// ns-3 flow file
    Ns3,
}

impl From<InputFormat> for WorkloadFormat {
    fn from(f: InputFormat) -> WorkloadFormat {
        match f {
            InputFormat::Simai => WorkloadFormat::Simai,
            InputFormat::Chakra => WorkloadFormat::Chakra,
            InputFormat::Htsim => WorkloadFormat::Htsim,
            InputFormat::Goal => WorkloadFormat::Goal,
            InputFormat::Kineto => WorkloadFormat::Kineto,
            InputFormat::FlightRecorder => WorkloadFormat::FlightRecorder,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The file is not valid, the form cannot express the workload, or something exists at `--out`.
pub fn execute(args: &WorkloadArgs) -> Result<Exit, CliError> {
    match &args.command {
        WorkloadCommand::Inspect(a) => inspect(a),
        WorkloadCommand::Convert(a) => {
            let imported = read(&a.input)?.1;
            write(&imported.workload, &a.output)
        }
        WorkloadCommand::Rescale(a) => {
            if a.bytes.is_none() && a.compute.is_none() && a.input.ranks.is_none() {
                return Err(CliError::bad_input(anyhow!("nothing to rescale; give --bytes, --compute or --ranks")));
            }
            let mut workload = read(&a.input)?.1.workload;
            rescale(&mut workload, a.bytes.unwrap_or(Factor::ONE), a.compute.unwrap_or(Factor::ONE))
                .map_err(CliError::bad_input)?;
            write(&workload, &a.output)
        }
    }
}

/// Reads the input. Notes are printed on standard error.
fn read(input: &Input) -> Result<(WorkloadFormat, Imported), CliError> {
    let guessed = || {
        import::guess(&input.path).ok_or_else(|| {
            let path = input.path.display();
            if input.path.is_file() || input.path.is_dir() {
                CliError::bad_input(anyhow!("{path}: it looks like no workload that can be read; say which with --format simai|chakra|htsim|goal|kineto|flight-recorder"))
            } else {
                CliError::bad_input(anyhow!("{path}: there is no such file, and no `.et` files begin with that name"))
            }
        })
    };
    let format = input.format.map_or_else(guessed, |f| Ok(f.into()))?;
    let options = ImportOptions {
        ranks: input.ranks,
        flops_per_s: u64::from(input.gflops) * 1_000_000_000,
        memory_bytes_per_s: u64::from(input.memory_gbps) * 1_000_000_000,
        wait_for_calls: input.wait_for_calls,
    };
    let imported = import::read(&input.path, format, &options).map_err(CliError::bad_input)?;
    for note in &imported.notes {
        tell(&format!("hyperfold: note: {note}"));
    }
    Ok((format, imported))
}

fn inspect(args: &InspectArgs) -> Result<Exit, CliError> {
    let (format, imported) = read(&args.input)?;
    let s = summary(&imported.workload);
    let makespan = match s.ops {
        0..=MAX_INSPECTED => Some(free_makespan(&imported.workload).map_err(CliError::bad_input)?),
        _ => None,
    };
    if args.json {
        say_json(&json(&args.input.path, format, &imported, &s, makespan).to_string());
    } else {
        print(format, &s, makespan);
    }
    Ok(Exit::Ok)
}

/// Name of a dimension, phase or operation in messages.
fn word(value: impl std::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

fn json(
    path: &Path,
    format: WorkloadFormat,
    imported: &Imported,
    s: &Summary,
    makespan: Option<u64>,
) -> serde_json::Value {
    let communication = s.collective_bytes.iter().map(|((dim, op), a)| (word(dim), word(op), a));
    let messages = s.message_bytes.iter().map(|(dim, a)| (word(dim), "send".to_string(), a));
    let rows: Vec<_> = communication
        .chain(messages)
        .map(|(dim, op, a)| serde_json::json!({"dim": dim, "op": op, "count": a.count, "bytes": a.bytes as u64}))
        .collect();
    let phases: serde_json::Map<String, serde_json::Value> =
        s.phase_ps.iter().map(|(p, &ps)| (word(p), ps.into())).collect();
    serde_json::json!({
        "path": path.display().to_string(), "format": format.name(), "ranks": s.ranks, "programs": s.programs, "groups": s.groups,
        "iterations": s.iterations, "ops": s.ops, "computes": s.computes, "collectives": s.collectives, "sends": s.sends, "recvs": s.recvs,
        "joins": s.joins, "communication": rows, "compute_ps": s.compute_ps, "compute_ps_by_phase": phases,
        "critical_path_ops": s.critical_ops, "critical_path_compute_ps": s.critical_ps, "free_makespan_ps": makespan, "notes": imported.notes,
    })
}

fn print(format: WorkloadFormat, s: &Summary, makespan: Option<u64>) {
    say(&format!("form           {}", format.name()));
    say(&format!(
        "ranks          {} running {} program(s) in {} group(s), {} iteration(s)",
        s.ranks, s.programs, s.groups, s.iterations
    ));
    say(&format!(
        "operations     {}: {} compute, {} sends, {} receives, {} joins, the rest {} collectives seen by each member",
        s.ops, s.computes, s.sends, s.recvs, s.joins, s.collectives
    ));
    let phases: Vec<String> = s.phase_ps.iter().map(|(p, &ps)| format!("{} {}", word(p), time(ps))).collect();
    say(&format!("compute        {} on the busiest rank ({})", time(s.compute_ps), phases.join(", ")));
    say(&format!(
        "critical path  {} operations, {} of compute, within one rank and with free communication",
        s.critical_ops,
        time(s.critical_ps)
    ));
    let shown = makespan.map_or_else(|| format!("not computed for more than {MAX_INSPECTED} operations"), time);
    say(&format!("free makespan  {shown}, across ranks: waiting for each other included, communication free"));
    let mut table = TextTable::new(["dimension", "operation", "count", "bytes"]);
    for ((dim, op), a) in &s.collective_bytes {
        table.row(vec![word(dim), word(op), a.count.to_string(), a.bytes.to_string()]);
    }
    for (dim, a) in &s.message_bytes {
        table.row(vec![word(dim), "send".to_string(), a.count.to_string(), a.bytes.to_string()]);
    }
    table.lines().iter().for_each(|line| say(line));
}

fn write(w: &Workload, output: &WorkloadOutput) -> Result<Exit, CliError> {
    let text = match output.to {
        OutputFormat::Simai => export::simai::text(w),
        OutputFormat::Ns3 => export::flows::text(w),
        OutputFormat::Chakra => return write_traces(w, output),
    };
    let text = text.map_err(CliError::bad_input)?;
    refuse_to_overwrite(&output.out, output.force)?;
    save(&output.out, text.as_bytes())?;
    say(&format!("wrote {}", output.out.display()));
    Ok(Exit::Ok)
}

/// Writes one `.et` file per rank, named after the folder, and the members of groups.
fn write_traces(w: &Workload, output: &WorkloadOutput) -> Result<Exit, CliError> {
    let folder = &output.out;
    let name = folder.file_name().map_or_else(|| "trace".to_string(), |n| n.to_string_lossy().into_owned());
    // A workload that cannot be written is refused before anything is written.
    for rank in first_of_each_program(w) {
        export::chakra::trace(w, rank).map_err(CliError::bad_input)?;
    }
    if fs::read_dir(folder).is_ok_and(|mut d| d.next().is_some()) {
        refuse_to_overwrite(folder, output.force)?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string()).map_err(CliError::bad_input)?;
    for rank in 0..w.ranks.len() as u32 {
        let bytes = export::chakra::trace(w, rank).map_err(CliError::bad_input)?;
        save(&folder.join(format!("{name}.{rank}.et")), &bytes)?;
    }
    if let Some(groups) = export::chakra::groups_file(w) {
        save(&folder.join(GROUPS_FILE), groups.as_bytes())?;
    }
    say(&format!("wrote {} traces to {}", w.ranks.len(), folder.display()));
    Ok(Exit::Ok)
}

fn first_of_each_program(w: &Workload) -> Vec<u32> {
    (0..w.programs.len() as u32).filter_map(|p| w.ranks.iter().position(|r| r.program == p)).map(|r| r as u32).collect()
}

fn refuse_to_overwrite(path: &Path, force: bool) -> Result<(), CliError> {
    if !force && path.exists() {
        return Err(CliError::bad_input(anyhow!(
            "{}: exists already; name another --out, or give --force",
            path.display()
        )));
    }
    Ok(())
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    fs::write(path, bytes).with_context(|| path.display().to_string()).map_err(CliError::bad_input)
}
