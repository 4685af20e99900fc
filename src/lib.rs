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
//! | a sweep from a file, or made in code | [`Sweep::load`], [`SweepBuilder`] |
//! | a network of one's own | [`TopologyBuilder`], [`SweepBuilder::topology`] |
//! | a collective algorithm of one's own | [`ProgramBuilder`], [`SweepBuilder::program`] |
//! | keys whose values are checked by the compiler | [`keys`] |
//! | a scheduler, placement, failure model or routing policy of one's own, by name | [`Session::scheduler`] and the like |
//! | flows, with routes of one's own | [`FlowList`], [`FlowList::route_by`] |
//! | results while they come | [`Session::run`], [`Results`] |
//! | a folder with the files that `hyperfold run` writes | [`Session::run_into`], [`merge()`] |
//! | a folder read back | [`StoredResults`] (typed records), [`RunResults`] (columns by name) |
//!
//! A congestion control cannot be registered at run time: each one runs on the GPU as well, so it is a Rust module and a WGSL module of the
//! same name. Parameters of those that there are can be set and swept (`transport.hpcc.eta`).
//!
//! # Stability
//! What this page shows is the interface. `cli` and `submit` are reachable for the program and for tests, are left out of this page, and may
//! change at any time.
//!
//! # Crates
//! The rest of hyperfold stands in crates of this workspace, each in a folder of `src`. ARCHITECTURE.md has a map of them. They may change at any time.

#![warn(missing_docs, unreachable_pub)]
#![forbid(unsafe_code)]
// Comments of the crate's own modules link to what is private: they are for those who read the code.
#![allow(rustdoc::private_intra_doc_links)]

#[doc(hidden)]
pub mod submit;

#[doc(hidden)]
pub mod cli;

/// Test: the programs of this page compile.
#[cfg(doctest)]
#[doc = include_str!("../docs/how-to/from-rust.md")]
struct PageFromRust;

/// Test: the programs of this page compile and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/how-to/own-scheduler.md")]
struct PageOwnScheduler;

/// The allocator of unit tests, which counts memory as the program does.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: hyperfold_base::budget::CountingAllocator = hyperfold_base::budget::CountingAllocator;

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
    Axis, Cell, ColumnInfo, ColumnKind, ColumnRole, ExperimentRecord, Finished, FlowRecord, FoldingRecord, InputFile,
    JobRecord, LinkPackets, LinkRecord, Manifest, Micro, Outcome, Outputs, Ps, ReadError, ResultsError, RttRecord,
    RunIdentity, RunResults, StatsRecord, Status,
};
pub use hyperfold_session::EngineChoice as Engine;
pub use hyperfold_session::MemoChoice as Memo;
pub use hyperfold_session::{
    EngineUsed, FlowList, FlowSpec, Interrupt, Merged, NodeId, Planned, ProgramBuilder, ProgramStep, Results,
    RunSummary, SearchPlan, Session, SessionError, StoredResults, SweepBuilder, TopologyBuilder, merge,
};
