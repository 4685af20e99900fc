//! Folding: the CPU engine, but it simulates only what is needed. An experiment is divided into *partitions*: NICs, ports and queue pairs that active
//! flows connect. Each partition steps by itself. A partition equivalent to one that was simulated before is looked up instead, and a steady
//! partition may be skipped ahead.
//!
//! Layer: engine; columns and numbers only. Exact: every bit of every result is that of the unfolded engine, unless the experiment asks for steady
//! phases to be skipped. Where exactness cannot be proven while it runs (a shared buffer that may pause or drop), the experiment starts over
//! unfolded. `docs/explanation/folding.md` explains why.
//!
//! Its own layers, each of which imports only from those before it: `rows` → `memo` → `steady` → `run`.
//!
//! | folder | content |
//! |---|---|
//! | `rows` | the rows of a partition: keys, snapshots, message streams, proofs about buffers |
//! | `memo` | what partitions did before: nodes, ids, claims, encoding |
//! | `steady` | detecting steady partitions, and plans for skipping them |
//! | `run` | the state of a folded run, and what happens in a turn |

#![deny(unsafe_code)]

pub mod beside;
mod memo;
mod rows;
mod run;
mod steady;

pub use memo::node_id::MemoNodeId;
pub use memo::owner::Recorder;
pub use memo::stored::backing_store::BackingStore;
pub use memo::stored::codec::{SEMANTICS, Version, is_record, version};
pub use memo::stored::unsaved::Unsaved;
pub use memo::table::Memo;
pub use rows::key_parts::{KeyPart, KeyPartSet};
pub use run::engine::{BATCH_PER_THREAD, FoldEngine};
pub use run::explanations::explanation::{CauseCount, FoldCause, FoldExplanation};
