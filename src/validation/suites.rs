//! The validation suites: their measurements, their bounds, and their rows.
//!
//! Layer: validation.

use std::path::Path;

use super::collectives;
use super::components;
use super::row::ValidationRow;
use super::run;
use super::tables::{self, TableError};
use hyperfold_host::estimates::closed_forms::ClosedFormError;
use hyperfold_session::SessionError;
use hyperfold_validated::{Use, WorkloadClass};

/// A suite of `hyperfold validate`.
pub struct Suite {
    /// Name on the command line.
    pub name: &'static str,
    /// The two sides of the comparison, in one line.
    pub about: &'static str,
    /// Bounds of the mean absolute relative error of each of its tables: for fitted rows, and for checked rows.
    bounds: [f64; 2],
    parts: Parts,
}

/// Source of a suite's rows.
enum Parts {
    /// Sweep files with measured values, in the folder with the suite's name.
    Sweeps,
    /// Sweep files in the same form, of inference.
    Serving,
    /// Sweep files in the same form, run as packets and by closed form.
    Collectives,
    /// Rows that are not experiments, and sweep files with measured values.
    Both(fn() -> Vec<ValidationRow>),
    /// Rows that are not experiments.
    Components(fn() -> Result<Vec<ValidationRow>, ClosedFormError>),
}

/// Why a suite has no rows.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A folder of measurements has no sweep with measured values.
    #[error(
        "{file} has no sweeps with measured values; the suite `{suite}` looks for {file}/*.toml, each with a .csv of its name"
    )]
    Empty {
        /// Name of the suite.
        suite: &'static str,
        /// Folder in which it looked.
        file: String,
    },
    /// A table of the suite cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A sweep of the suite cannot run.
    #[error(transparent)]
    Session(Box<SessionError>),
    /// A value has no closed form.
    #[error(transparent)]
    ClosedForm(#[from] ClosedFormError),
}

/// All suites, in the order in which they are printed.
pub static SUITES: [Suite; 7] = [
    Suite {
        name: "closed-forms",
        about: "collectives and pipelines against their formulas",
        bounds: [0.005, 0.005],
        parts: Parts::Components(components::closed_forms),
    },
    Suite {
        name: "kernels",
        about: "times of single kernels against published measurements",
        bounds: [0.15, 0.15],
        parts: Parts::Components(|| Ok(components::kernels())),
    },
    Suite {
        name: "layers",
        about: "times of transformer layers against published measurements",
        bounds: [0.1, 0.1],
        parts: Parts::Components(|| Ok(components::layers())),
    },
    Suite {
        name: "collectives",
        about: "collective operations against runs of nccl-tests, as packets and by closed form",
        bounds: [0.08, 0.08],
        parts: Parts::Collectives,
    },
    Suite {
        name: "training",
        about: "training steps against published measurements",
        bounds: [0.05, 0.08],
        parts: Parts::Sweeps,
    },
    Suite {
        name: "memory",
        about: "memory of training against published measurements",
        bounds: [0.03, 0.03],
        parts: Parts::Both(components::memory),
    },
    Suite {
        name: "serving",
        about: "throughput and latencies of inference against published measurements",
        bounds: [0.1, 0.15],
        parts: Parts::Serving,
    },
];

impl Suite {
    /// Whether its rows are whole experiments, whose times have a class.
    pub fn has_classes(&self) -> bool {
        matches!(self.parts, Parts::Sweeps | Parts::Collectives | Parts::Serving)
    }

    /// Whether the suite's rows are of this kind of work.
    pub fn is_of(&self, workload: WorkloadClass) -> bool {
        match workload {
            WorkloadClass::Training => matches!(self.parts, Parts::Sweeps),
            WorkloadClass::Collective => matches!(self.parts, Parts::Collectives),
            WorkloadClass::Serving => matches!(self.parts, Parts::Serving),
        }
    }

    /// Bound of the mean absolute error of rows like this one. `None`: doubtful rows, and predictions without their own run, have no bound.
    pub fn bound(&self, row: &ValidationRow) -> Option<f64> {
        match (row.used, &self.parts) {
            (Use::Doubtful, _) => None,
            (_, Parts::Collectives) => collectives::bound(&row.group),
            (Use::Fitted, _) => Some(self.bounds[0]),
            (Use::Checked, _) => Some(self.bounds[1]),
        }
    }

    /// Rows of the suite, by table. The sweeps are those of the program, or those in `folder/NAME`. With `closed_forms`, collectives are computed only by
    /// closed form, which is much faster.
    ///
    /// # Errors
    /// The folder has no sweeps, or they cannot be run.
    pub fn rows(&self, folder: Option<&Path>, closed_forms: bool) -> Result<Vec<ValidationRow>, SuiteError> {
        match &self.parts {
            Parts::Components(rows) => Ok(rows()?),
            Parts::Both(_) | Parts::Sweeps | Parts::Serving | Parts::Collectives => {
                let tables = tables::tables(self.name, folder)?;
                let mut rows = match self.parts {
                    Parts::Both(components) => components(),
                    _ => Vec::new(),
                };
                if let (true, true, Some(folder)) = (tables.is_empty(), rows.is_empty(), folder) {
                    let file = folder.join(self.name).display().to_string();
                    return Err(SuiteError::Empty { suite: self.name, file });
                }
                for table in &tables {
                    let of_table = match self.parts {
                        Parts::Collectives => collectives::rows(self.name, table, closed_forms),
                        _ => run::rows(self.name, table),
                    };
                    rows.extend(of_table.map_err(|e| SuiteError::Session(Box::new(e)))?);
                }
                Ok(rows)
            }
        }
    }
}
