//! What the documents promise, held against the code: layers, dependencies, links, names, columns, the sweeps to start from.

#![forbid(unsafe_code)]

mod circles;
mod columns;
mod dependencies;
mod experiments;
mod layers;
mod pages;
mod presets;
mod registries;
mod type_names;
mod unsafe_code;
mod words;

#[path = "../support/mod.rs"]
mod support;
