//! One row of an error table.
//!
//! Layer: cli.

use serde::Serialize;

/// One measured quantity and what the model says it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidationRow {
    pub suite: &'static str,
    /// The published table; means and bounds are per table.
    #[serde(skip)]
    pub table: String,
    /// Begins with the table where the suite has several.
    pub name: String,
    pub unit: String,
    pub measured: f64,
    pub simulated: f64,
    /// (simulated - measured) / measured; nothing where the measured value is 0.
    pub rel_error: Option<f64>,
    /// Why it is off, or what it was predicted from.
    pub note: String,
    /// Whether the row counts for the mean, the maximum and the bound.
    #[serde(skip)]
    pub counts: bool,
}

impl ValidationRow {
    /// A row that counts.
    pub fn new(
        suite: &'static str,
        table: &str,
        name: &str,
        unit: &str,
        [measured, simulated]: [f64; 2],
        note: &str,
    ) -> ValidationRow {
        let rel_error = (measured != 0.0).then(|| (simulated - measured) / measured).filter(|e| e.is_finite());
        let [name, unit, note, table] = [name, unit, note, table].map(str::to_string);
        ValidationRow { suite, table, name, unit, measured, simulated, rel_error, note, counts: true }
    }
}
