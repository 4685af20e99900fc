//! Folding: exact where it must be, close where it may be, and the memo on disk.

#![forbid(unsafe_code)]

mod cores;
mod explained;
mod graphs;
mod hand_over;
mod memo_cases;
mod memo_file;
mod memo_store;
mod memo_writers;
mod pauses;
mod rates;
mod runs;
mod same_bytes;

#[path = "../support/mod.rs"]
mod support;
