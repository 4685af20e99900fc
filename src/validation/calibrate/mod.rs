//! Fits keys of a sweep to a user's own measurements.
//!
//! Layer: calibrate, between validation and the command line. Candidates run as `hyperfold run` runs them; there is no other path. Readers convert output of
//! other tools to measured rows. It opens no files for writing and prints nothing.

mod calibration;
mod error;
mod evaluate;
mod fit;
mod kernel_rows;
mod nccl_tests;
mod objective;
mod overlay;
mod parameter;
mod profiler;
mod profiler_trace;
mod resample;
mod rows;
mod simplex;
mod statistic;
mod weights;

pub use calibration::{Calibration, FittedParameter, FittedRow, RowChange, RowErrors};
pub use error::CalibrateError;
pub use evaluate::{Evaluator, SweepAsItIs};
pub use fit::{FitSettings, fit};
pub use nccl_tests::{NcclTestsLog, nccl_operations, nccl_tests};
pub use overlay::{OverlaySource, overlay};
pub use parameter::FitParameter;
pub use profiler::{ProfilerRows, profiler_rows};
pub use rows::{CalibrationRow, calibration_rows};
pub use statistic::ProfilerStatistic;
pub use weights::RowWeights;
