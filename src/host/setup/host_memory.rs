//! Estimates of the host memory that a batch takes.
//!
//! Layer: host. Arithmetic over table sizes; measures nothing.

use hyperfold_columns::OwnedTables;

/// Bytes per row in the world besides the row: its experiment's id, the entity and its places, and the ticks when its components were added and changed.
/// Measured.
pub(crate) const ENTITY_BYTES: usize = 96;

/// Estimates the bytes that the world keeps besides an experiment's rows.
pub(crate) fn world_bytes(t: &OwnedTables) -> u64 {
    let rows = t.nics.len() + t.ports.len() + t.switches.len() + t.flow_tx.len() + t.tasks.len();
    (rows * ENTITY_BYTES) as u64
}
