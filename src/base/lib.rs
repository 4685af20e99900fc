//! The base of every other crate of hyperfold: units, memory budgets, panics that end one experiment only, files that are read with limits.
//!
//! | module | content |
//! |---|---|
//! | [`units`] | picoseconds, bytes, bits per second; parsing and printing them |
//! | [`budget`] | the allocator that counts, and work under an allowance of memory |
//! | [`isolation`] | a panic or a stack overflow that ends one experiment and not the program |
//! | [`input`] | reading files and tables with limits, from inside the folders that are allowed |
//! | [`printable`] | text of others made safe for a terminal, joined and shortened for a message |
//! | [`nearest`] | what a misspelt word probably means |
//! | [`index_list`] | lists of numbers such as `0-3,8`, read and written |
//! | [`json_scalar`] | a value of somebody else's JSON, whatever its type |
//! | [`linear_equations`] | small systems of equations, as least squares give them |
//! | [`protobuf`] | messages of protocol buffers, written |
//! | [`registries`] | names of schedulers, placements, routing policies and failure models, one line each |
//! | [`prefetch`] | a hint to the processor that a row is needed soon |
//!
//! It never knows what a network, a flow or an experiment is. Start with [`units`], which everything uses.

#![deny(unsafe_code)]

pub mod budget;
pub mod index_list;
pub mod input;
pub mod isolation;
pub mod json_scalar;
pub mod linear_equations;
pub mod nearest;
pub mod prefetch;
pub mod printable;
pub mod protobuf;
pub mod registries;
pub mod units;

/// The allocator of unit tests, which counts memory as the program does.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: budget::CountingAllocator = budget::CountingAllocator;
