//! Runs the sweeps of measured tables as `hyperfold run` runs them.
//!
//! Layer: validation.

use std::collections::HashMap;

use super::measured::MeasuredRow;
use super::row::ValidationRow;
use super::tables::MeasuredTable;
use hyperfold_config::spec::Config;
use hyperfold_host::programs::training;
use hyperfold_results::{ExperimentRecord, Status};
use hyperfold_session::{EngineChoice, Session, SessionError};
use hyperfold_validated::ExperimentClass;

/// Records of a run of a table's sweep, by `exp_id`.
pub(super) type Records = HashMap<u64, ExperimentRecord>;

/// Runs a table's sweep with keys set as `--set` does. It uses the CPU engine, because results are the same on every engine.
///
/// # Errors
/// A run of the sweep would be refused.
pub(super) fn records(table: &MeasuredTable, set: &[String]) -> Result<Records, SessionError> {
    let session = set.iter().fold(Session::new(EngineChoice::Cpu), |session, key| session.set(key));
    let mut records = Records::new();
    for result in session.run(&table.sweep)? {
        let record = result?.record;
        records.insert(record.exp_id, record);
    }
    Ok(records)
}

/// Class of a row's experiment. `None`: the row is not a time of the experiment.
pub(super) fn class(table: &MeasuredTable, row: &MeasuredRow) -> Option<ExperimentClass> {
    row.unit.time_error(1.0, 1.0)?;
    config(table, row).and_then(|config| ExperimentClass::of(&config))
}

/// GPU of the machine on which a row was measured. If a sweep describes the GPU by a table, it is the GPU that the table is based on.
pub(super) fn gpu(table: &MeasuredTable, row: &MeasuredRow) -> Option<String> {
    Some(training::gpu(&config(table, row)?.cluster.gpu).ok()?.kin)
}

fn config(table: &MeasuredTable, row: &MeasuredRow) -> Option<Config> {
    // In a whole sweep, the n-th experiment has the id n.
    let experiment = &table.sweep.experiments[row.experiment as usize];
    table.sweep.config(experiment).ok()
}

/// A measured row with the simulated value from a run.
pub(super) fn row(suite: &'static str, table: &str, r: &MeasuredRow, records: &Records) -> ValidationRow {
    let record = &records[&r.experiment];
    let simulated = r.unit.of(record).unwrap_or(f64::NAN);
    let refused = (record.status != Status::Ok).then(|| format!("{}: {}", record.status.as_str(), record.error));
    let note: Vec<String> =
        [refused.unwrap_or_default(), r.note.clone()].into_iter().filter(|n| !n.is_empty()).collect();
    ValidationRow::new(suite, table, r.used, &r.name, r.unit.as_str(), [r.value, simulated], &note.join("; "))
}

/// Rows of a table.
///
/// # Errors
/// Fails as [`records`] does.
pub(super) fn rows(suite: &'static str, table: &MeasuredTable) -> Result<Vec<ValidationRow>, SessionError> {
    let records = records(table, &[])?;
    let one = |r: &MeasuredRow| ValidationRow {
        class: class(table, r),
        gpu: gpu(table, r),
        ..row(suite, &table.name, r, &records)
    };
    Ok(table.rows.iter().map(one).collect())
}
