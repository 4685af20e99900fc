//! Records of the memo on disk: what is saved, how it is encoded, and the store that keeps it.
//!
//! Layer: fold. Knows no files; the store is the caller's.

pub(crate) mod backing_store;
pub(crate) mod codec;
pub(crate) mod codec_checkpoint;
pub(crate) mod unsaved;
