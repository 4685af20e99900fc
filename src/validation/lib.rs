//! Compares the model with published measurements.
//!
//! Layer: validation, between the session and the command line. A measured row is an experiment of a sweep file and a value. Sweeps run as `hyperfold run`
//! runs them. Rows that are not experiments, such as single kernels, come from the layers that predict them. It prints nothing and fits nothing.

#![forbid(unsafe_code)]

pub mod calibrate;
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
