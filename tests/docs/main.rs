//! What the documents promise, held against the code: layers, dependencies, links, names, columns, the sweeps to start from.

mod circles;
mod columns;
mod dependencies;
mod experiments;
mod layers;
mod pages;
mod presets;

#[path = "../support/mod.rs"]
mod support;
