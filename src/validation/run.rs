//! Measured tables run as `hyperfold run` runs them.
//!
//! Layer: validation.

use std::collections::HashMap;

use super::row::ValidationRow;
use super::tables::MeasuredTable;
use crate::results::{ExperimentRecord, Status};
use crate::session::{EngineChoice, Session, SessionError};
use crate::validated::ExperimentClass;

/// Runs a table's sweep and holds its results against what was measured. Results are the same on every engine, so it takes the CPU's.
///
/// # Errors
/// What a run of the sweep would be refused for.
pub(super) fn rows(suite: &'static str, table: &MeasuredTable) -> Result<Vec<ValidationRow>, SessionError> {
    let mut records: HashMap<u64, ExperimentRecord> = HashMap::new();
    for result in Session::new(EngineChoice::Cpu).run(&table.sweep)? {
        let record = result?.record;
        records.insert(record.exp_id, record);
    }
    let row = |r: &super::MeasuredRow| {
        let record = &records[&r.experiment];
        let simulated = r.unit.of(record).unwrap_or(f64::NAN);
        let refused = (record.status != Status::Ok).then(|| format!("{}: {}", record.status.as_str(), record.error));
        let note: Vec<String> =
            [refused.unwrap_or_default(), r.note.clone()].into_iter().filter(|n| !n.is_empty()).collect();
        let values = [r.value, simulated];
        let row = ValidationRow::new(suite, &table.name, r.used, &r.name, r.unit.as_str(), values, &note.join("; "));
        // The n-th of a whole sweep has the id n.
        let config = table.sweep.config(&table.sweep.experiments[r.experiment as usize]);
        let class = config.ok().and_then(|c| ExperimentClass::of(&c)).filter(|_| r.unit.time_error(1.0, 1.0).is_some());
        ValidationRow { class, ..row }
    };
    Ok(table.rows.iter().map(row).collect())
}
