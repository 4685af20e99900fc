//! Estimates of the host's memory that a batch takes.
//!
//! Layer: batch. Arithmetic over table sizes; measures nothing.

use crate::columns::Tables;

/// What a row costs in the world beside itself: its experiment's id, the entity and its places, when its components were added and changed (measured).
const ENTITY_BYTES: usize = 96;

/// About how many bytes an experiment's rows take in the world.
pub(super) fn world_bytes(t: &Tables) -> u64 {
    fn rows<T>(rows: &[T]) -> usize {
        rows.len() * (size_of::<T>() + ENTITY_BYTES)
    }
    (rows(&t.nics) + rows(&t.ports) + rows(&t.switches) + rows(&t.flow_tx) + size_of_val(&*t.flow_rx) + rows(&t.tasks))
        as u64
}
