//! A run from a sweep to a folder of results: planning, running, resuming, merging, searching, tracing.
//!
//! Layer: session, between the results and the command line. The command line calls it, and so may any program. Parses no arguments and prints nothing: the
//! caller receives plans, events and errors.

#![forbid(unsafe_code)]

mod alone;
mod audits;
mod axis_effects;
mod candidates;
mod clusters;
mod convert;
mod convert_cluster;
mod convert_iteration;
mod convert_jobs;
mod convert_serving;
mod devices;
mod error;
mod excluded;
mod experiment;
mod flow_list;
pub mod folder;
mod forecast;
mod identity;
mod interrupt;
mod memo;
pub mod merge;
mod merge_manifest;
mod moment;
mod plan;
mod planned;
mod probe;
mod program_builder;
mod run;
mod search;
mod settings;
mod simulate;
mod simulator;
mod speed_class;
mod stored;
mod survey;
mod sweep_builder;
mod topology_builder;
pub mod trace;
mod two_models;
mod update;
mod work_done;
mod workers;

pub use error::SessionError;
pub use excluded::{Excluded, ExcludedGroup};
pub use flow_list::{FlowList, FlowSpec};
pub use forecast::{MemoryForecast, TimeForecast};
pub use interrupt::Interrupt;
pub use merge::{Merged, merge};
pub use plan::LoadedSweep;
pub use planned::{PlanProgress, Planned, SearchPlan, SweepRequest};
pub use program_builder::{ProgramBuilder, ProgramStep};
pub use run::{Results, RunSummary, Session};
pub use settings::{EngineChoice, GpuDispatch, MemoChoice, RunSettings};
pub use simulate::BuiltIn;
pub use simulator::Simulator;
pub use stored::StoredResults;
pub use sweep_builder::SweepBuilder;
pub use topology_builder::{NodeId, TopologyBuilder};
pub use update::{EngineUsed, Known, Update, UpdateSink};
