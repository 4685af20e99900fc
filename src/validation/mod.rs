//! The model held against published measurements.
//!
//! Layer: validation, between the session and the command line. A measured row is an experiment of a sweep file and a value; sweeps run as `hyperfold run` runs them.
//! What is no experiment, such as a single kernel, comes from the layer that predicts it. Prints nothing, fits nothing.

mod classes;
mod collectives;
mod components;
mod measured;
mod row;
mod run;
mod suites;
mod summary;
mod tables;

pub use classes::{classes, classes_toml};
pub use measured::{MeasuredRow, Unit};
pub use row::ValidationRow;
pub use suites::{SUITES, Suite, SuiteError};
pub use summary::ErrorSummary;
pub use tables::{MeasuredTable, TableError};
