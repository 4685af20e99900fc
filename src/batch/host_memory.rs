//! Estimates of the host's memory that a batch takes.
//!
//! Layer: batch. Arithmetic over table sizes; measures nothing.

use crate::columns::OwnedTables;

/// What a row costs in the world beside itself: its experiment's id, the entity and its places, when its components were added and changed (measured).
const ENTITY_BYTES: usize = 96;

/// About how many bytes the world keeps beside an experiment's rows.
pub(super) fn world_bytes(t: &OwnedTables) -> u64 {
    let rows = t.nics.len() + t.ports.len() + t.switches.len() + t.flow_tx.len() + t.tasks.len();
    (rows * ENTITY_BYTES) as u64
}
