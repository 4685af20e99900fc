//! The memo: what partitions did before, in this process and in earlier runs.
//!
//! Layer: above `rows`, below `steady`. Simulates nothing.

pub mod backing_store;
pub mod codec;
pub mod codec_checkpoint;
pub mod cursor;
pub mod in_flight;
pub mod keys;
pub mod lock;
pub mod node;
pub mod node_id;
pub mod outcome;
pub mod owner;
pub mod skip_plan;
pub mod table;
pub mod unsaved;
