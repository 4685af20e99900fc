//! The host side of a run: from resolved experiments to tables, through the engine, to records.

pub mod build;
pub mod conserve;
pub mod diagnose;
