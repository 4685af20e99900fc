//! The CPU engine: against golden cases, against an independent oracle, against formulas; and that nothing but the case decides its result.

#![forbid(unsafe_code)]

mod closed_forms;
mod cores;
mod cut_through;
mod determinism;
mod golden;
mod graphs;
mod oracle;
mod oracle_engine;
mod oracle_golden;
mod oracle_random;
mod oracle_tasks;
mod paused_times;
mod reached;
mod series;
mod traffic_classes;

#[path = "../support/mod.rs"]
mod support;
