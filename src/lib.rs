//! Hyperfold: thousands of packet-level experiments on the networks that train large language models,
//! in one run, on a GPU or a CPU, with identical bits.
//!
//! A sweep is loaded or made in code, a session runs it, results come in order:
//!
//! ```
//! use hyperfold::{Engine, Session, Sweep};
//!
//! # fn study() -> Result<(), hyperfold::SessionError> {
//! let sweep = Sweep::load("study.toml")?;
//! for result in Session::new(Engine::Auto).run(&sweep)? {
//!     println!("{:?}", result?.record);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | what | how |
//! |---|---|
//! | a sweep from a file, or made in code | [`Sweep::load`], [`Sweep::builder`] |
//! | a network of one's own | [`TopologyBuilder`], [`SweepBuilder::topology`] |
//! | a collective algorithm of one's own | [`ProgramBuilder`], [`SweepBuilder::program`] |
//! | flows, with routes or a routing policy of one's own | [`FlowList`], [`FlowList::route_by`] |
//! | results while they come | [`Session::run`], [`Results`] |
//! | a folder with the files that `hyperfold run` writes | [`Session::run_into`], [`merge`] |
//! | a folder read back | [`StoredResults`] (typed records), [`RunResults`] (columns by name) |
//!
//! A congestion control cannot be registered at run time: each one runs on the GPU as well, so it is a Rust module and a WGSL module of the
//! same name. Parameters of those that there are can be set and swept (`transport.hpcc.eta`). A routing policy is a closure, because routes
//! are decided before the simulation begins.
//!
//! # Stability
//! What this page shows is the interface. The modules of the crate are reachable for its own tests and tools, are left out of this page, and
//! may change at any time.
//!
//! # Layers
//! Top down; a module imports only from those above it (`tests/docs/layers.rs` enforces it):
//! `units` → `spec`, `sweep`, `transport`, `columns` → `topology`, `routing`, `model`, `collective` → `compute`, `cost` → `memory` →
//! `workload` → `engine` → `batch` →
//! `results` → `compare`, `optimize`, `trace`, `submit` → `report` → `session` → `cli`. ARCHITECTURE.md says what each is for.

#[doc(hidden)]
pub mod units;

#[doc(hidden)]
pub mod columns;
#[doc(hidden)]
pub mod spec;
#[doc(hidden)]
pub mod sweep;
#[doc(hidden)]
pub mod transport;

#[doc(hidden)]
pub mod collective;
#[doc(hidden)]
pub mod model;
#[doc(hidden)]
pub mod routing;
#[doc(hidden)]
pub mod topology;

#[doc(hidden)]
pub mod compute;
#[doc(hidden)]
pub mod cost;

#[doc(hidden)]
pub mod memory;

#[doc(hidden)]
pub mod workload;

#[doc(hidden)]
pub mod engine;

#[doc(hidden)]
pub mod batch;

#[doc(hidden)]
pub mod results;

#[doc(hidden)]
pub mod compare;
#[doc(hidden)]
pub mod optimize;
#[doc(hidden)]
pub mod submit;
#[doc(hidden)]
pub mod trace;

#[doc(hidden)]
pub mod report;

#[doc(hidden)]
pub mod session;

#[doc(hidden)]
pub mod cli;

pub use engine::gpu::DeviceChoice;
pub use results::{
    Axis, Cell, ColumnInfo, ExperimentRecord, Finished, FlowRecord, FoldingRecord, InputFile, Kind, LinkRecord,
    Manifest, Micro, Outcome, Outputs, Ps, ReadError, ResultsError, Role, RttRecord, RunIdentity, RunResults,
    StatsRecord, Status,
};
pub use session::EngineChoice as Engine;
pub use session::MemoChoice as Memo;
pub use session::{
    EngineUsed, FlowList, FlowSpec, Interrupt, Merged, NodeId, Planned, ProgramBuilder, Results, RunSummary,
    SearchPlan, Session, SessionError, Step, StoredResults, SweepBuilder, TopologyBuilder, merge,
};
pub use spec::SpecError;
pub use sweep::{Shard, Sweep};
