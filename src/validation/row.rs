//! A row of an error table.
//!
//! Layer: validation.

use serde::Serialize;

use hyperfold_validated::{ExperimentClass, Use};

/// One measured quantity and its simulated value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidationRow {
    /// Name of the suite.
    pub suite: &'static str,
    /// Published table. Means and bounds are per table.
    pub table: String,
    /// How the measured value was used: fitted, checked or doubtful.
    #[serde(rename = "use")]
    pub used: Use,
    /// Name of the value in its table.
    pub name: String,
    /// Unit of the measured and the simulated value.
    pub unit: String,
    /// Measured value, in `unit`.
    pub measured: f64,
    /// Simulated value. `None`: there is no result; the note says why.
    pub simulated: Option<f64>,
    /// (simulated - measured) / measured. `None`: there is no such number.
    pub rel_error: Option<f64>,
    /// Reason of the error, or what the value was predicted from.
    pub note: String,
    /// Group for means, in addition to table, use and unit. For a collective: what carried it, and whether it is above 1 MiB. Empty for other rows.
    pub group: String,
    /// Value by closed form in the row's unit, for a collective as packets.
    pub closed_form: Option<f64>,
    /// Class of experiments to whose error it belongs. Only for times of a whole experiment.
    #[serde(skip)]
    pub class: Option<ExperimentClass>,
    /// GPU that was measured, by its name in the assets.
    #[serde(skip)]
    pub gpu: Option<String>,
}

impl ValidationRow {
    /// Makes a row without group and class.
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

    /// Whether both rows belong to the same mean.
    pub(super) fn is_like(&self, other: &ValidationRow) -> bool {
        (self.used, &self.table, &self.unit, &self.group) == (other.used, &other.table, &other.unit, &other.group)
    }

    /// Difference of packets from the closed form, relative to the closed form.
    pub fn difference(&self) -> Option<f64> {
        Some(self.simulated? / self.closed_form? - 1.0)
    }
}
