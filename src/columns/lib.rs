//! The tables of the simulation: every row type, declared once.
//!
//! Layer: beside `spec`; knows nothing above numbers. The engine (Rust and WGSL), the world and the parity tests all work on these. A row holds the
//! columns of one archetype's access class side by side, because a system that touches a packet or a port touches nearly all of it: one cache line
//! instead of eight. WGSL struct declarations are generated from the Rust ones ([`wgsl::declarations`]); in a test naga checks offsets and sizes.

#![deny(unsafe_code)]

mod claims;
mod column;
mod index;
mod registry;
mod row;
pub mod rows;
pub mod tables;
pub mod wgsl;

pub use claims::{ClaimTable, Claims};
pub use column::{Column, MessageRow};
pub use index::{EndOwner, FlowIdx, LinkEndIdx, NONE, NicIdx, PacketIdx, PortIdx, SwitchIdx, TaskIdx};
pub use row::{Field, Row};
pub use rows::*;
pub use tables::{
    Columns, EngineTables, FoldHints, FoldTrace, N_TABLES, OwnedTables, Span, TABLES, Table, Tables, View,
};

/// "Never": the time of an empty clock, in ps.
pub const NEVER: u64 = u64::MAX;
