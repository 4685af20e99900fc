//! Sweep files: what keys there are, what a file says, and the experiments that it expands to.
//!
//! | module | content |
//! |---|---|
//! | [`spec`] | every key with its unit, bounds, default and description, declared once; values that follow from others; errors with file and line |
//! | [`keys`] | a constant for each key, with the type of its values, for sweeps in code |
//! | [`sweep`] | axes, overlays, constraints and samples; expansion to experiments; shards |
//!
//! It never builds a network and never runs anything. Start with `spec/key_table.rs`: a new key is one entry there.

#![forbid(unsafe_code)]

pub mod keys;
pub mod spec;
pub mod sweep;
