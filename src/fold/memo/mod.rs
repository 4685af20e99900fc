//! The memo: a record of what partitions did before, in this process and in earlier runs.
//!
//! Layer: above `rows`, below `steady`. Simulates nothing.

pub(super) mod admission;
pub(super) mod cursor;
pub(super) mod in_flight;
pub(super) mod keys;
pub(super) mod lock;
pub(super) mod node;
pub(super) mod node_id;
pub(super) mod outcome;
pub(super) mod owner;
pub(super) mod skip_choice;
pub(super) mod skip_plan;
pub(super) mod stored;
pub(super) mod table;
