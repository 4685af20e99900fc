//! The folder of a run, and folders of shards made one.

pub mod folder;
pub(crate) mod identity;
pub mod merge;
pub(crate) mod merge_manifest;
pub(crate) mod run_records;
