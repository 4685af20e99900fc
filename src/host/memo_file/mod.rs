//! The memo on disk.

pub mod memo_keeper;
pub mod memo_store;
pub(crate) mod memo_store_file;
