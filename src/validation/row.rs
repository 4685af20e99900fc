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
    /// What means are of, beside table, use and unit: of a collective what carried it, and whether it is above 1 MiB. Empty elsewhere.
    pub group: String,
    /// Of a collective as packets, what its closed form says, in the row's unit.
    pub closed_form: Option<f64>,
    /// The class of experiments to whose error it belongs: of times of a whole experiment.
    #[serde(skip)]
    pub class: Option<ExperimentClass>,
    /// The GPU that was measured, as the assets name it.
    #[serde(skip)]
    pub gpu: Option<String>,
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
            group: String::new(),
            closed_form: None,
            class: None,
            gpu: None,
        }
    }

    /// Whether means are over both.
    pub(super) fn is_like(&self, other: &ValidationRow) -> bool {
        (self.used, &self.table, &self.unit, &self.group) == (other.used, &other.table, &other.unit, &other.group)
    }

    /// How far packets are from the closed form, relative to it.
    pub fn difference(&self) -> Option<f64> {
        Some(self.simulated? / self.closed_form? - 1.0)
    }
}
