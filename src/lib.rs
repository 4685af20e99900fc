//! Hyperfold: thousands of packet-level experiments on the networks that train large language models,
//! in one run, on a GPU or a CPU, with identical bits.
//!
//! A sweep is loaded or made in code, a session runs it, results come in order:
//!
//! ```
//! use hyperfold::{EngineChoice, Session, Sweep};
//!
//! # fn study() -> Result<(), hyperfold::SessionError> {
//! let sweep = Sweep::load("study.toml")?;
//! for result in Session::new(EngineChoice::Auto).run(&sweep)? {
//!     println!("{:?}", result?.record);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | what | how |
//! |---|---|
//! | a sweep from a file, or made in code | [`Sweep::load`], [`SweepBuilder`] |
//! | a network of one's own | [`TopologyBuilder`], [`SweepBuilder::topology`] |
//! | a collective algorithm of one's own | [`ProgramBuilder`], [`SweepBuilder::program`] |
//! | keys whose values are checked by the compiler | [`keys`] |
//! | a scheduler, placement, failure model or routing policy of one's own, by name | [`Session::scheduler`] and the like |
//! | flows, with routes of one's own | [`FlowList`], [`FlowList::route_by`] |
//! | results while they come | [`Session::run`], [`ResultStream`] |
//! | a folder with the files that `hyperfold run` writes | [`Session::run_into`], [`merge()`] |
//! | a folder read back | [`RunRecords`] (typed records), [`RunColumns`] (columns by name) |
//!
//! A congestion control cannot be registered at run time: each one runs on the GPU as well, so it is a Rust module and a WGSL module of the
//! same name. Parameters of the built-in ones can be set and swept (`transport.hpcc.eta`).
//!
//! # Stability
//! What this page shows is the interface; nothing else of this crate can be reached. The command line is a part of the program, `src/main.rs`.
//!
//! # Crates
//! The rest of hyperfold stands in crates of this workspace, each in a folder of `src`. ARCHITECTURE.md has a map of them. They may change at any time.

#![warn(missing_docs, unreachable_pub)]
#![forbid(unsafe_code)]

/// Test: the programs of this page compile.
#[cfg(doctest)]
#[doc = include_str!("../docs/how-to/from-rust.md")]
struct PageFromRust;

/// Test: the programs of this page compile and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/how-to/own-scheduler.md")]
struct PageOwnScheduler;

pub use hyperfold_base::budget::CountingAllocator;
pub use hyperfold_cluster::{
    Behind, ClusterJob, FailureModel, GpuShare, Placement, QueueKey, Request, Scheduler, ServerUse, Servers,
};
pub use hyperfold_config::keys;
pub use hyperfold_config::spec::SpecError;
pub use hyperfold_config::sweep::{Shard, Sweep};
pub use hyperfold_engine::gpu::DeviceChoice;
pub use hyperfold_network::routing::{FlowKey, FlowPaths, RouteError, Router, RoutingPolicy};
pub use hyperfold_results::{
    Axis, Cell, ColumnInfo, ColumnKind, ColumnRole, ExperimentRecord, Finished, FlowMeasures, FlowRecord,
    FlowSampleRecord, FoldingRecord, InputFile, JobRecord, LinkEnds, LinkPackets, LinkPauses, LinkRecord,
    LinkSampleRecord, Manifest, MeanRttRecord, Micro, Outcome, Outputs, Ps, ReadError, ResultsError, RttRecord,
    RunColumns, RunIdentity, StatsRecord, Status,
};
pub use hyperfold_session::{
    EngineChoice, EngineUsed, FlowList, FlowSpec, Interrupt, MemoChoice, Merged, NodeId, Planned, ProgramBuilder,
    ProgramStep, ResultStream, RunRecords, RunSummary, SearchPlan, Session, SessionError, SweepBuilder,
    TopologyBuilder, merge,
};
