//! One row of an error table.
//!
//! Layer: validation.

use serde::Serialize;

use crate::validated::{ExperimentClass, Use};

/// One measured quantity and what the model says it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidationRow {
    pub suite: &'static str,
    /// The published table; means and bounds are per table.
    pub table: String,
    #[serde(rename = "use")]
    pub used: Use,
    pub name: String,
    pub unit: String,
    pub measured: f64,
    /// `None`: there is no such result; the note says why.
    pub simulated: Option<f64>,
    /// (simulated - measured) / measured; nothing where there is no such number.
    pub rel_error: Option<f64>,
    /// Why it is off, or what it was predicted from.
    pub note: String,
    /// Whether the row counts for means and bounds.
    #[serde(skip)]
    pub counts: bool,
    /// The class of experiments to whose error it belongs: of times of a whole experiment.
    #[serde(skip)]
    pub class: Option<ExperimentClass>,
}

impl ValidationRow {
    /// A row that counts.
    pub fn new(
        suite: &'static str,
        table: &str,
        used: Use,
        name: &str,
        unit: &str,
        [measured, simulated]: [f64; 2],
        note: &str,
    ) -> ValidationRow {
        let simulated = Some(simulated).filter(|s| s.is_finite());
        let rel_error = simulated.filter(|_| measured != 0.0).map(|s| (s - measured) / measured);
        let [name, unit, note, table] = [name, unit, note, table].map(str::to_string);
        ValidationRow {
            suite,
            table,
            used,
            name,
            unit,
            measured,
            simulated,
            rel_error,
            note,
            counts: true,
            class: None,
        }
    }
}
