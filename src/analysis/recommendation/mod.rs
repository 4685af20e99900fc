//! The recommendations of one folder of results: the designs that it compares, which is best for each kind of work and for all, and what another choice costs.
//!
//! Layer: recommendation, above compare. It reads a folder as texts ([`sheet`]), so that a page shows exact decimals, and puts nothing into words: the command line
//! and the report do. Start with `recommend.rs`.

pub mod design;
pub mod load;
pub mod metric;
pub mod recommend;
pub mod samples;
pub mod sheet;
pub mod verdict;
