//! Folding: the CPU engine, but it simulates only what is neither known nor steady.
//!
//! An experiment is divided into *partitions*: NICs, ports and queue pairs that active flows connect. Each partition steps by itself. One that starts like another
//! that was simulated before is looked up instead, and a steady one may be skipped ahead.
//!
//! Its folders, each of which imports only from those before it: `rows` → `memo` → `steady` → `run`.
//!
//! | folder | content |
//! |---|---|
//! | `rows` | the rows of a partition: keys, snapshots, message streams, proofs about buffers |
//! | `memo` | what partitions did before: nodes, ids, claims, encoding |
//! | `steady` | detecting steady partitions, and plans for skipping them |
//! | `run` | the state of a folded run, and what happens in a turn |
//!
//! The module [`beside_device`] runs folding on the host, and a device engine for all that skips nothing.
//!
//! Every bit of every result is that of the unfolded engine, unless the experiment lets steady phases be skipped, as it does by default. Where exactness cannot be
//! proven while it runs, the experiment starts over. It knows columns and numbers only.
//!
//! Start with `docs/explanation/folding.md` for what it does, `docs/internals/folding.md` for how, and then `run`.

#![deny(unsafe_code)]

mod balance;
pub mod beside_device;
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
pub use run::hand_over::HandOver;
