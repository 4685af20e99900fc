//! What earlier runs recorded, by node ids.
//!
//! Layer: fold/memo. The trait only: `batch::memo_store` implements it.

use crate::engine::fold::memo::node_id::MemoNodeId;

/// Records that earlier runs left.
pub trait BackingStore: Send + Sync {
    /// Every record of the root or snapshot with this id, as [`super::unsaved::Unsaved`] had them, the oldest first.
    /// Empty if there is none.
    fn fetch(&self, root: &MemoNodeId) -> Vec<Vec<u8>>;
}
