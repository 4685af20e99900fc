//! `hyperfold plot`: draws a figure of columns.
//!
//! Layer: cli. [`hyperfold_report::plot`] draws it.

use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use hyperfold_report::plot::{
    ColumnFigure, DISTRIBUTIONS, DistributionFigure, Figure, OVER_TIME, OverTimeFigure, PlotError, figure_of_columns,
    figure_of_distribution, figure_over_time, keep_rows,
};
use hyperfold_results::RunColumns;

use super::exit::{CliError, Exit};
use super::output::write_out;
use super::{tell, tell_losses};

#[derive(Debug, Args)]
pub struct PlotArgs {
    /// Folder of results, as `hyperfold run --out` wrote it
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Column along the x axis: an axis of the sweep or any other of results.csv; the last part of an axis' name suffices
    #[arg(long, value_name = "COLUMN", required_unless_present_any = ["cdf", "over_time"])]
    pub x: Option<String>,
    /// Column along the y axis, with numbers
    #[arg(long, value_name = "COLUMN", required_unless_present_any = ["cdf", "over_time"])]
    pub y: Option<String>,
    /// Instead of x and y: how completion times (fct), slowdowns (slowdown) or sizes (bytes) of flows, or sampled round-trip times (rtt) are distributed
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["x", "y", "log_y", "points"], value_parser = DISTRIBUTIONS)]
    pub cdf: Option<String>,
    /// Instead of x and y: this column of series_links.csv or series_flows.csv over time
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["x", "y", "cdf", "log_x", "log_y", "points"], value_parser = OVER_TIME)]
    pub over_time: Option<String>,
    /// With --over-time: only this link, such as 'leaf0->host3' (repeatable) [default: those with the largest values]
    #[arg(long, value_name = "LINK", requires = "over_time", conflicts_with_all = ["x", "y", "cdf"])]
    pub link: Vec<String>,
    /// With --over-time: only this flow, by its flow_id (repeatable) [default: those with the largest values]
    #[arg(long, value_name = "FLOW", requires = "over_time", conflicts_with_all = ["x", "y", "cdf"])]
    pub flow: Vec<u32>,
    /// A series for each value of this column (repeatable)
    #[arg(long, value_name = "COLUMN")]
    pub by: Vec<String>,
    /// Only the experiments for which this condition over columns holds, such as 'transport.cc == "hpcc" && drops == 0' (repeatable: all must hold)
    #[arg(long = "where", value_name = "CONDITION")]
    pub conditions: Vec<String>,
    /// File to write, replaced if it is there: .svg or .png [default: SVG on standard output]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Logarithmic x axis
    #[arg(long)]
    pub log_x: bool,
    /// Logarithmic y axis
    #[arg(long)]
    pub log_y: bool,
    /// A mark for every experiment, without means and lines
    #[arg(long)]
    pub points: bool,
    /// Title [default: the sweep's name and the columns']
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// File format of a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Svg,
    Png,
}

/// Draws the figure.
///
/// # Errors
/// The folder has no results or damaged ones, a column does not exist, or the file cannot be written.
pub fn execute(args: &PlotArgs) -> Result<Exit, CliError> {
    let form = args.out.as_deref().map_or(Ok(Form::Svg), form)?;
    if args.out.is_none() && std::io::stdout().is_terminal() {
        return Err(CliError::bad_input(anyhow!(
            "an SVG file is nothing to read on a terminal; name a file (-o figure.svg or -o figure.png), or send the output to one"
        )));
    }
    let mut run = RunColumns::open(&args.dir).map_err(CliError::bad_input)?;
    tell_losses(&args.dir);
    if let Some(why) = run.incomplete() {
        tell(&format!("warning: {}: {why}", args.dir.display()));
    }
    keep_rows(&mut run, &args.conditions).map_err(CliError::bad_input)?;
    let mut figure = figure(&run, args).map_err(CliError::bad_input)?;
    figure.add_note(&args.conditions.iter().map(|c| format!("where {c}")).collect::<Vec<_>>().join("; "));
    let bytes = match form {
        Form::Svg => figure.to_svg(),
        Form::Png => figure.to_png().map_err(CliError::broken)?,
    };
    match &args.out {
        None => write_out(&bytes),
        Some(path) => {
            std::fs::write(path, bytes).map_err(|e| {
                let why = anyhow!("-o {}: {e}", path.display());
                if e.kind() == ErrorKind::NotFound { CliError::bad_input(why) } else { CliError::broken(why) }
            })?;
            super::say(&format!("figure: {}", path.display()));
        }
    }
    Ok(Exit::Ok)
}

fn figure(run: &RunColumns, args: &PlotArgs) -> Result<Figure, PlotError> {
    if let Some(column) = &args.over_time {
        let asked = OverTimeFigure {
            of: column.clone(),
            links: args.link.clone(),
            flows: args.flow.clone(),
            by: args.by.clone(),
            title: args.title.clone(),
        };
        return figure_over_time(run, &asked);
    }
    match (&args.cdf, &args.x, &args.y) {
        (Some(distribution), ..) => figure_of_distribution(
            run,
            &DistributionFigure {
                of: distribution.clone(),
                by: args.by.clone(),
                log_x: args.log_x,
                title: args.title.clone(),
            },
        ),
        (None, x, y) => figure_of_columns(
            run,
            &ColumnFigure {
                x: x.clone().unwrap_or_default(),
                y: y.clone().unwrap_or_default(),
                by: args.by.clone(),
                log_x: args.log_x,
                log_y: args.log_y,
                points: args.points,
                title: args.title.clone(),
            },
        ),
    }
}

/// File format by the extension of a path.
fn form(path: &Path) -> Result<Form, CliError> {
    let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("svg") => Ok(Form::Svg),
        Some("png") => Ok(Form::Png),
        _ => Err(CliError::bad_input(anyhow!("-o {}: a figure's file ends in .svg or .png", path.display()))),
    }
}
