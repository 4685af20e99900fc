//! The store of records from earlier runs, found by node ids.
//!
//! Layer: fold/memo. Only the trait: `hyperfold_host::memo_store` implements it.

use crate::memo::node_id::MemoNodeId;

/// A store of the records that earlier runs left.
pub trait BackingStore: Send + Sync {
    /// Every record of the root or snapshot with this id, as [`super::unsaved::Unsaved`] had them, oldest first. Empty if there is none.
    fn fetch(&self, root: &MemoNodeId) -> Vec<Vec<u8>>;
}
