//! `hyperfold calibrate`: fits keys of a sweep to measurements, or checks that they still fit.
//!
//! Layer: cli. It prints what the layer `calibrate` finds, and writes the overlay.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use sha2::{Digest, Sha256};

use super::args::key_value;
use super::exit::{CliError, Exit};
use super::interrupt::may_end_at_once;
use super::measured::{read, save};
use super::table::{TextTable, number};
use super::{say, say_json, tell};
use hyperfold_config::sweep::{SetOverrides, Sweep, load};
use hyperfold_session::{EngineChoice, Interrupt, Session};
use hyperfold_validation::calibrate::{
    CalibrateError, Calibration, CalibrationRow, Evaluator, FitParameter, FitSettings, FittedRow, OverlaySource,
    RowChange, RowErrors, RowWeights, calibration_rows, fit, overlay,
};

#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Measured values, CSV: experiments by keys (workload.bytes) or by `experiment`, with value and unit
    pub measured: PathBuf,
    /// The sweep file that has these experiments
    pub sweep: PathBuf,
    /// A key to fit (repeatable); without bounds they follow from the sweep's value and its server
    #[arg(
        long,
        value_name = "KEY[=MIN..MAX][,log|linear]",
        required_unless_present = "check",
        conflicts_with = "check"
    )]
    pub fit: Vec<String>,
    /// Fit nothing: compare the sweep, with what it includes, to the measured values; exit code 3 where the mean error is above --bound
    #[arg(long)]
    pub check: bool,
    /// Largest mean absolute error of --check, per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, requires = "check", value_parser = per_cent)]
    pub bound: f64,
    /// The overlay to write [default: none is written]
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub out: Option<PathBuf>,
    /// Overwrite what is there
    #[arg(long)]
    pub force: bool,
    /// Set a key of the sweep file, by its dotted name (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<String>,
    /// Fit to the other rows and only check each N-th; `use = checked` says so of a row itself
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub hold_back: Option<u64>,
    /// Parts of cross-validation; 0: none
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=1000))]
    pub folds: u64,
    /// Searches, each from another start
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub restarts: u64,
    /// Weight of each row: its own columns weight or error, the same for all, the square root of its time, its time, its size in bytes [default: own, else root-time]
    #[arg(long, value_name = "BY", value_parser = row_weights())]
    pub weights: Option<RowWeights>,
    /// Stop after so long, as 90s, 10m or 2h, and keep the best so far; Ctrl-C does the same
    #[arg(long, value_name = "TIME", conflicts_with = "check", value_parser = duration)]
    pub budget: Option<Duration>,
    /// Weight of the order of rows beside squared errors; 0: none
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.1, value_parser = weight)]
    pub order_weight: f64,
    /// Seed of starts, parts and resampling
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// CPU threads; no result depends on them [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

fn per_cent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(x) if (0.0..=1e6).contains(&x) => Ok(x),
        _ => Err("a number of per cent would be right, such as 10".to_string()),
    }
}

fn row_weights() -> impl TypedValueParser<Value = RowWeights> {
    let named = |name: String| {
        RowWeights::ALL.iter().find(|(n, _)| *n == name).map_or(RowWeights::Equal, |(_, weights)| *weights)
    };
    PossibleValuesParser::new(RowWeights::ALL.map(|(name, _)| name)).map(named)
}

fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let seconds =
        |(unit, seconds): &(&str, f64)| text.strip_suffix(unit)?.trim().parse::<f64>().ok().map(|n| n * seconds);
    match units.iter().find_map(seconds).filter(|s| *s > 0.0 && *s <= 1e8) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err("a number with s, m or h would be right, such as 90s or 10m".to_string()),
    }
}

fn weight(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..=1e6).contains(&x) => Ok(x),
        _ => Err("a number from 0 would be right, such as 0.1".to_string()),
    }
}

impl From<CalibrateError> for CliError {
    fn from(error: CalibrateError) -> CliError {
        match error {
            CalibrateError::Session(error) => (*error).into(),
            other => CliError::bad_input(other),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Rows, sweep or keys are wrong, or the overlay cannot be written.
pub fn execute(args: &CalibrateArgs, interrupt: &Interrupt) -> Result<Exit, CliError> {
    let bytes = read(&args.measured)?;
    let file = args.measured.display().to_string();
    let text = std::str::from_utf8(&bytes).map_err(|_| CliError::bad_input(anyhow!("{file}: it is not UTF-8 text")))?;
    let sweep = load(&args.sweep, &SetOverrides(args.set.clone())).map_err(CliError::bad_input)?;
    let rows = calibration_rows(text, &file, &sweep, args.hold_back.map(|n| n as usize))?;
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.jobs.map_or(all, |n| n as usize);
    if args.check {
        return check(args, &sweep, &rows, threads);
    }
    if let Some(out) = args.out.as_deref().filter(|out| !args.force && out.exists()) {
        return Err(CliError::bad_input(anyhow!(
            "{}: exists already; name another --out, or give --force",
            out.display()
        )));
    }
    // The folder is checked before the fit, which may take minutes.
    let folder = args.out.as_deref().and_then(Path::parent).filter(|p| !p.as_os_str().is_empty() && !p.is_dir());
    if let Some(folder) = folder {
        return Err(CliError::bad_input(anyhow!(
            "--out: {} is no folder; make it first, or name another",
            folder.display()
        )));
    }
    let parameters = args.fit.iter().map(|text| FitParameter::parse(text, &sweep)).collect::<Result<Vec<_>, _>>()?;
    let settings = FitSettings {
        weights: args.weights,
        order_weight: args.order_weight,
        restarts: args.restarts as usize,
        folds: args.folds as usize,
        seed: args.seed,
        threads,
    };
    let stop = interrupt.part();
    if let Some(budget) = args.budget {
        let ends = stop.clone();
        std::thread::spawn(move || {
            std::thread::sleep(budget);
            ends.request();
        });
    }
    may_end_at_once(false);
    let calibration = fit(&sweep, &rows, &parameters, &settings, &stop, &|text| tell(&format!("hyperfold: {text}")));
    may_end_at_once(true);
    let calibration = match calibration {
        Err(CalibrateError::Stopped) if interrupt.requested() => return Ok(Exit::Interrupted),
        other => other?,
    };
    for warning in &calibration.warnings {
        tell(&format!("warning: {warning}"));
    }
    if args.json {
        say_json(&serde_json::to_string(&calibration).expect("plain numbers and strings serialise"));
    } else {
        lines(&calibration).iter().for_each(|line| say(line));
    }
    if let Some(out) = &args.out {
        let digest = Session::new(EngineChoice::Cpu).plan(&sweep)?.digest;
        let source = OverlaySource {
            measured: &file,
            measured_sha256: &hex(&bytes),
            sweep: &args.sweep.display().to_string(),
            sweep_digest: &digest,
            seed: args.seed,
        };
        save_overlay(out, &overlay(&calibration, &source), args)?;
    }
    Ok(if interrupt.requested() { Exit::Interrupted } else { Exit::Ok })
}

fn save_overlay(out: &Path, text: &str, args: &CalibrateArgs) -> Result<(), CliError> {
    if args.json {
        return std::fs::write(out, text).map_err(|e| CliError::bad_input(anyhow!("{}: {e}", out.display())));
    }
    save(out, text, args.force)?;
    let name = out.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    say(&format!("a sweep beside it has these values with include = [{name:?}] at its top"));
    Ok(())
}

/// SHA-256 as hexadecimal text.
fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Runs `--check`.
fn check(args: &CalibrateArgs, sweep: &Sweep, rows: &[CalibrationRow], threads: usize) -> Result<Exit, CliError> {
    let said = Evaluator::new(sweep, rows, &[], Interrupt::default()).as_it_is(threads)?.predicted;
    let row = |(row, said): (&CalibrationRow, &f64)| FittedRow {
        held_back: false,
        ..FittedRow::new(row, *said, *said, row.weight)
    };
    let rows: Vec<FittedRow> = rows.iter().zip(&said).map(row).collect();
    let errors = RowErrors::of(&rows, false);
    let is_within = errors.mean[1] * 100.0 <= args.bound;
    if args.json {
        let json =
            serde_json::json!({ "rows": rows, "errors": errors, "bound": args.bound / 100.0, "within": is_within });
        say_json(&json.to_string());
    } else {
        let mut table = TextTable::new(["row", "unit", "measured", "simulated", "error"]);
        for r in &rows {
            table.row(vec![r.name.clone(), r.unit.clone(), number(r.measured), number(r.after), error(r.error_after)]);
        }
        table.lines().iter().for_each(|line| say(line));
        say("");
        for file in &sweep.included {
            let then = file.calibration.parse::<toml::Table>().ok();
            let then = then.as_ref().and_then(|t| t.get("mean_error")).and_then(toml::Value::as_float);
            let then = then.map_or(String::new(), |e| format!(", fitted to a mean error of {}", percent(e)));
            say(&format!("includes {}{then}", file.path.display()));
        }
        let verdict = if is_within { "within" } else { "BEYOND" };
        let (n, mean, p90) = (errors.rows, percent(errors.mean[1]), percent(errors.p90[1]));
        say(&format!(
            "{n} rows: mean error {mean}, 90th percentile {p90}; {verdict} the bound of {} %",
            number(args.bound)
        ));
    }
    Ok(if is_within { Exit::Ok } else { Exit::Condition })
}

/// Tables of a fit.
fn lines(c: &Calibration) -> Vec<String> {
    let header = ["row", "unit", "measured", "before", "error", "after", "error", "became", "weight", "use"];
    let mut table = TextTable::new(header);
    let all_weights = c.rows.iter().map(|r| r.weight).sum::<f64>();
    for r in &c.rows {
        table.row(vec![
            r.name.clone(),
            r.unit.clone(),
            number(r.measured),
            number(r.before),
            error(r.error_before),
            number(r.after),
            error(r.error_after),
            became(r),
            percent(r.weight / all_weights),
            if r.held_back { "held back" } else { "fitted" }.to_string(),
        ]);
    }
    let mut out = table.lines();
    out.push(String::new());
    let mut table = TextTable::new(["key", "before", "fitted", "95 % interval", "bounds", "note"]);
    for p in &c.parameters {
        table.row(vec![
            p.key.to_string(),
            number(p.before),
            number(p.value),
            format!("{} to {}", number(p.low), number(p.high)),
            format!("{} to {}", number(p.min), number(p.max)),
            p.note.clone(),
        ]);
    }
    out.extend(table.lines());
    out.push(String::new());
    let header = [
        "rows",
        "n",
        "better",
        "worse",
        "mean error before",
        "after",
        "by weight before",
        "after",
        "90th percentile before",
        "after",
    ];
    let mut table = TextTable::new(header);
    let mut add_row = |name: &str, e: &RowErrors| {
        if e.rows > 0 {
            let errors = [e.mean, e.weighted_mean, e.p90].concat();
            let counts = [e.rows, e.better, e.worse].map(|n| n.to_string());
            table.row([vec![name.to_string()], counts.to_vec(), errors.into_iter().map(percent).collect()].concat());
        }
    };
    add_row("fitted", &c.fitted);
    add_row("held back", &c.held_back);
    out.extend(table.lines());
    let cross = c.cross_validation.map(|e| {
        format!("cross-validation: mean error {} of rows by fits to the others, in {} parts", percent(e), c.folds)
    });
    out.extend(cross);
    out.push(format!("{} candidates were run; rows are weighted by: {}", c.candidates, c.weights));
    out
}

fn error(relative: f64) -> String {
    format!("{:+.1} %", relative * 100.0)
}

/// Whether a row got better or worse, and by how many percentage points.
fn became(r: &FittedRow) -> String {
    let points = format!("{:.1}", r.worse_by().abs() * 100.0);
    match r.change {
        RowChange::Better => format!("better by {points}"),
        RowChange::Worse => format!("worse by {points}"),
        RowChange::Same => String::new(),
    }
}

fn percent(x: f64) -> String {
    format!("{:.1} %", x * 100.0)
}
