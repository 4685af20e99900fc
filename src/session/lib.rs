//! A run from a sweep to a folder of results: planning, running, resuming, merging, searching, tracing.
//!
//! | part | content |
//! |---|---|
//! | `run`, `settings` | [`Session`]: what the command line and other programs call |
//! | `planning` | what would run, what cannot, how long it takes |
//! | `running` | experiments, clusters and searches are simulated; jobs alone; axes' effects |
//! | `records` | outcomes become records of `hyperfold-results` |
//! | [`folders`] | a folder is opened, resumed, merged, read back |
//! | `builders` | sweeps, networks, flows and programs made in code |
//! | [`trace`] | one experiment again, as a timeline |
//!
//! It parses no arguments and prints nothing: the caller receives plans, events and errors.
//! Start with `run.rs`.

#![forbid(unsafe_code)]

mod builders;
mod error;
mod experiment;
pub mod folders;
mod memo;
mod planning;
mod records;
mod run;
mod running;
mod settings;
pub mod trace;

pub use builders::flow_list::{FlowList, FlowSpec};
pub use builders::program_builder::{ProgramBuilder, ProgramStep};
pub use builders::sweep_builder::SweepBuilder;
pub use builders::topology_builder::{NodeId, TopologyBuilder};
pub use error::SessionError;
pub use folders::merge::{Merged, merge};
pub use folders::run_records::RunRecords;
pub use planning::excluded::{Excluded, ExcludedGroup};
pub use planning::forecast::{MemoryForecast, SLOWED_BY_PAUSES, TimeForecast};
pub use planning::plan::LoadedSweep;
pub use planning::planned::{PlanProgress, Planned, SearchPlan, SweepRequest};
pub use run::{ResultStream, RunSummary, Session};
pub use running::interrupt::Interrupt;
pub use running::simulate::BuiltIn;
pub use running::simulator::Simulator;
pub use running::update::{EngineUsed, Known, Update, UpdateSink};
pub use settings::{EngineChoice, GpuDispatch, MemoChoice, RunSettings};
