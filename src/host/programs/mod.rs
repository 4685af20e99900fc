//! The work of an experiment's GPUs: its programs, its collectives planned, its tasks.

pub(crate) mod benchmark;
pub(crate) mod class_program;
pub mod job;
pub(crate) mod job_cache;
pub(crate) mod job_key;
pub(crate) mod jobs;
pub(crate) mod join_graphs;
pub(crate) mod kernel_times;
pub(crate) mod peers;
pub(crate) mod plans;
pub mod serving;
pub(crate) mod traffic;
pub mod training;
