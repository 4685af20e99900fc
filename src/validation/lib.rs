//! Compares the model with published measurements, and fits keys to a user's own.
//!
//! | part | content |
//! |---|---|
//! | `suites`, `tables`, `measured`, `row` | measured rows: experiments of sweep files, each with a value |
//! | `run`, `summary` | rows are run as `hyperfold run` runs them, and summed up |
//! | `components`, `collectives` | rows that are no experiments, such as single kernels |
//! | `classes` | errors by table and class, for `hyperfold-validated` |
//! | `calibrate` | keys of a sweep fitted to measurements |
//!
//! It prints nothing, and simulates through `hyperfold-session` alone. Start with `suites.rs`.

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

pub use classes::{classes, classes_toml, errors_by_class};
pub use measured::{MeasuredRow, Unit};
pub use row::ValidationRow;
pub use suites::{SUITES, Suite, SuiteError};
pub use summary::ErrorSummary;
pub use tables::{MeasuredTable, TableError};
