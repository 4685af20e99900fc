//! The host side of a run: from resolved experiments to tables, through the engine, to outcomes.
//!
//! Layer: batch. Knows every layer above it; formats nothing and prints nothing.

mod alike;
pub mod breakdown;
pub mod build;
mod build_tasks;
pub mod closed_forms;
pub mod conserve;
pub mod diagnose;
pub mod estimate;
pub mod fleet;
pub mod job;
pub mod memo_keeper;
pub mod memo_store;
mod memo_store_file;
pub mod outcome;
mod planner;
pub mod prepare;
pub mod runner;
pub mod servers;
mod shared_jobs;
mod shared_rows;
pub mod timeline;
pub mod training;
mod walk;
pub mod world;

pub use estimate::estimate;
pub use fleet::{Worker, run_fleet};
pub use outcome::{Ending, FlowOutcome, Iteration, LinkOutcome, Outcome};
pub use prepare::{PrepareError, Prepared, fits, prepare};
pub use runner::{News, RunOptions, Task, run};
pub use training::{SetupError, TrainingSetup};
pub use world::{Batch, Ended, Limits};
