//! Hyperfold: thousands of packet-level experiments on the networks that train large language models,
//! in one run, on a GPU or a CPU, with identical bits.
//!
//! Layers, top down; a module imports only from those above it (`tests/docs/layers.rs` enforces it):
//! `units` → `spec`, `sweep`, `transport`, `columns` → `topology`, `routing`, `model`, `collective` → `compute`, `cost` → `memory` →
//! `workload` → `engine` → `batch` →
//! `results` → `compare`, `optimize`, `trace`, `submit` → `report` → `session` → `cli`. ARCHITECTURE.md says what each is for.

pub mod units;

pub mod columns;
pub mod spec;
pub mod sweep;
pub mod transport;

pub mod collective;
pub mod model;
pub mod routing;
pub mod topology;

pub mod compute;
pub mod cost;

pub mod memory;

pub mod workload;

pub mod engine;

pub mod batch;

pub mod results;

pub mod compare;
pub mod optimize;
pub mod submit;
pub mod trace;

pub mod report;

pub mod session;

pub mod cli;
