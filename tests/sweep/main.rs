//! Sweep files: expansion, transport parameters, search; and the topologies, flows and routes that they name.

mod corpus;
mod expansion;
mod net_corpus;
mod net_fuzz;
mod net_golden;
mod net_shapes;
mod optimize;
mod transport;

#[path = "../support/mod.rs"]
mod support;
