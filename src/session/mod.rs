//! What a run is, from a sweep to a folder of results: planning, running, resuming, merging, searching, tracing.
//!
//! Layer: session, between the results and the command line. The command line calls it, and so may any program. Parses no arguments and
//! prints nothing: whoever calls it takes plans, events and errors.

mod audits;
mod axis_effects;
mod candidates;
mod convert;
mod devices;
mod error;
mod experiment;
pub(crate) mod folder;
mod identity;
mod interrupt;
mod memo;
pub(crate) mod merge;
mod merge_manifest;
mod plan;
mod planned;
mod search;
mod settings;
mod simulate;
mod simulator;
mod survey;
pub(crate) mod trace;
mod update;
mod workers;

pub use error::SessionError;
pub use interrupt::Interrupt;
pub use plan::Loaded;
pub use planned::{Planned, SearchPlan, SweepRequest};
pub use settings::{EngineChoice, GpuDispatch, MemoChoice, RunSettings};
pub use simulate::BuiltIn;
pub use simulator::Simulator;
pub use update::{EngineUsed, Known, Update, UpdateSink};
