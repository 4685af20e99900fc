//! Folding: exact where it must be, close where it may be, and the memo on disk.

mod graphs;
mod memo_store;
mod runs;

#[path = "../support/mod.rs"]
mod support;
