//! Sweep files: expansion, transport parameters, search; and the topologies, flows and routes that they name.

#![forbid(unsafe_code)]

mod corpus;
mod expansion;
mod fuzz_targets;
mod include;
mod net_corpus;
mod net_fabrics;
mod net_forms;
mod net_fuzz;
mod net_golden;
mod net_shapes;
mod optimize;
mod rows;
mod schema;
mod transport;

#[path = "../support/mod.rs"]
mod support;
