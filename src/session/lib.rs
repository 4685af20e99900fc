//! A run from a sweep to a folder of results: planning, running, resuming, merging, searching, tracing.
//!
//! Layer: session, between the results and the command line. The command line calls it, and so may any program. Parses no arguments and prints nothing: the
//! caller receives plans, events and errors.

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
pub use planning::forecast::{MemoryForecast, TimeForecast};
pub use planning::plan::LoadedSweep;
pub use planning::planned::{PlanProgress, Planned, SearchPlan, SweepRequest};
pub use run::{ResultStream, RunSummary, Session};
pub use running::interrupt::Interrupt;
pub use running::simulate::BuiltIn;
pub use running::simulator::Simulator;
pub use running::update::{EngineUsed, Known, Update, UpdateSink};
pub use settings::{EngineChoice, GpuDispatch, MemoChoice, RunSettings};
