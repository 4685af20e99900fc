//! Whole runs of stored experiments on a device, held against the ends that the CPU engine finds.
//!
//! Layer: host. A wrong kernel may never end an experiment, or leave tables that no host code can read. Both end as a difference.

use std::fmt;

use hyperfold_base::isolation::isolated;
use hyperfold_columns::OwnedTables;
use hyperfold_engine::EngineError;
use hyperfold_engine::gpu::{DispatchProgress, GpuEngine, Mode, Report, RunError};

use super::difference::difference;
use super::known::{KnownCase, PACKET_LIMIT};

/// Dispatches without a step after which a run is given up. A step that waits for packets needs two.
const IDLE_DISPATCHES: u32 = 16;

/// First place at which a device departs from the CPU engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongCase {
    /// Name of the case.
    pub case: String,
    /// The first value that differs, or what else is wrong.
    pub what: String,
}

impl fmt::Display for WrongCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case `{}`: {}", self.case, self.what)
    }
}

/// The ends of the cases on the device, in their order.
pub struct DeviceEnds {
    /// Tables that the device left. Empty if the host could not go on with them.
    pub tables: Vec<OwnedTables>,
    /// The first case that ended otherwise than on the CPU engine.
    pub wrong: Option<WrongCase>,
}

/// How messages name the kernels of a mode.
pub fn kernels_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Fused => "the fused kernel",
        Mode::PerSystem => "the kernels of single systems",
    }
}

/// Runs all cases side by side in one way of dispatching, and compares every byte of their tables.
///
/// # Errors
/// The device failed, or the run is to stop.
pub fn run(engine: &mut GpuEngine, mode: Mode, known: &[KnownCase]) -> Result<DeviceEnds, EngineError> {
    let mut tables: Vec<OwnedTables> = known.iter().map(|case| case.before.clone()).collect();
    let ran = isolated(|| run_to_end(engine, mode, known, &mut tables));
    let report = match ran {
        Ok(ran) => ran.inspect_err(|error| engine.abandon_after(error))?,
        Err(defect) => {
            let what = format!("the host cannot go on with the tables that the device left: {}", defect.message);
            let case = known.first().map(|case| case.name.clone()).unwrap_or_default();
            return Ok(DeviceEnds { tables: Vec::new(), wrong: Some(WrongCase { case, what }) });
        }
    };
    let wrong = (known.iter().zip(&tables).enumerate()).find_map(|(i, (case, got))| {
        let failure = report.failures.iter().find(|(place, _)| *place == i).map(|(_, why)| why.to_string());
        let what = failure.or_else(|| difference(got, &case.want))?;
        Some(WrongCase { case: case.name.clone(), what })
    });
    Ok(DeviceEnds { tables, wrong })
}

fn run_to_end(
    engine: &mut GpuEngine,
    mode: Mode,
    known: &[KnownCase],
    tables: &mut [OwnedTables],
) -> Result<Report, RunError> {
    let steps_of_all: u64 = known.iter().map(|case| case.want.exps[0].steps).sum();
    let (mut last, mut idle) = (0, 0);
    let mut go_on = |progress: &DispatchProgress| {
        idle = if progress.steps == last { idle + 1 } else { 0 };
        last = progress.steps;
        progress.steps <= steps_of_all && idle < IDLE_DISPATCHES
    };
    OwnedTables::with_views(tables, |batch| engine.run(batch, mode, PACKET_LIMIT, &mut go_on))
}
