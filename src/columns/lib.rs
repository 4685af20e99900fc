//! The tables of the simulation: every row type, declared once, for Rust, the bevy world and WGSL.
//!
//! | module | content |
//! |---|---|
//! | [`rows`] | the row types: what a NIC, port, switch, queue pair, task, packet and experiment are made of |
//! | [`tables`] | the tables of one experiment: borrowed from a batch ([`Tables`]) or standing alone ([`OwnedTables`]) |
//! | [`wgsl`] | WGSL's declarations, made from the Rust ones |
//! | `registry`, `table_list` | one line for each table: its row type, and where it lives; what is made of it |
//! | `spans` | which rows of which table belong to which experiment |
//! | `network_changes` | links that fail and new paths, which the host brings in between two steps |
//! | `series` | samples over time, which the host takes between two steps |
//! | `index` | row indices, one type for each table |
//! | `claims`, `column` | rows lent to threads, one writer each |
//!
//! A row holds side by side the columns that the same systems read: a system that touches a packet or a port touches nearly all of it.
//!
//! This crate computes nothing, and knows no network and no sweep file. Start with `rows.rs`.

#![deny(unsafe_code)]

pub mod bits;
mod claims;
mod column;
mod index;
mod network_changes;
mod registry;
mod row;
pub mod rows;
mod series;
mod spans;
mod table_list;
pub mod tables;
pub mod wgsl;

pub use bits::*;
pub use claims::{ClaimTable, Claims};
pub use column::{Column, MessageRow};
pub use index::{EndOwner, FlowIdx, LinkEndIdx, NONE, NicIdx, PacketIdx, PortIdx, SwitchIdx, TaskIdx};
pub use network_changes::{
    AVERAGE_WORDS, FLOWLET_WORDS, FLOWS_LEFT, HANDED_OVER, HOLDS, LINK_DOWN, LINK_DROPS, LINK_LOSES, LINK_TROUBLE,
    LOSS_WORDS, NO_FLOW, NetworkChanges, PathSpan, QueueReports, REMOTE_DOWN, RateColumns, TableChange, WATCH_WORDS,
    Watchdog, average, flowlet, loss, watch,
};
pub use row::{Field, Row};
pub use rows::*;
pub use series::{EndSample, FlowSample, SeriesSample, TimeSeries};
pub use spans::{ColumnRow, Spans};
pub use table_list::{N_TABLES, TABLES, Table};
pub use tables::{Columns, EngineTables, FoldHints, FoldTrace, OwnedTables, Tables, View};

/// "Never": the time of an empty clock, in ps.
pub const NEVER: u64 = u64::MAX;
