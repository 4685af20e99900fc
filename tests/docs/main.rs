//! What the documents promise, held against the code: layers, dependencies, links, names, columns, the sweeps to start from.

#![forbid(unsafe_code)]

mod circles;
mod columns;
mod crates;
mod dependencies;
mod experiments;
mod figures;
mod habits;
mod ledger;
mod pages;
mod presets;
mod registries;
mod tables;
mod twins;
mod type_names;
mod unsafe_code;
mod words;
mod worked_examples;
mod worked_tables;

#[path = "../support/mod.rs"]
mod support;
