//! Experiments through the engines: batches, equal experiments, checks of what ends.

pub mod conserve;
pub(crate) mod dedup;
pub(crate) mod dedup_key;
pub mod device_share;
pub mod devices;
pub mod diagnose;
pub mod runner;
pub mod world;
pub(crate) mod world_rows;
