//! Fits keys of a sweep to a user's own measurements.
//!
//! Layer: calibrate, between validation and the command line. Candidates run as `hyperfold run` runs them; there is no other path. Readers convert output of
//! other tools to measured rows. It opens no files for writing and prints nothing.

mod calibration;
mod error;
mod evaluate;
mod fit;
mod objective;
mod overlay;
mod parameter;
mod readers;
mod resample;
mod rows;
mod simplex;
mod weights;

pub use calibration::{Calibration, FittedParameter, FittedRow, RowChange, RowErrors};
pub use error::CalibrateError;
pub use evaluate::{Evaluator, SweepAsItIs};
pub use fit::{FitSettings, fit};
pub use overlay::{OverlaySource, overlay};
pub use parameter::FitParameter;
pub use readers::nccl_tests::{NcclTestsLog, nccl_operations, nccl_tests};
pub use readers::profiler::{ProfilerRows, profiler_rows};
pub use readers::statistic::ProfilerStatistic;
pub use rows::{CalibrationRow, calibration_rows};
pub use weights::RowWeights;
