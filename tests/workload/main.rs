//! Workloads: files of others, keys, collectives, training jobs, compute times and memory.

#![forbid(unsafe_code)]

mod classes;
mod collective;
mod command;
mod compute;
mod dag;
mod files;
mod fuzz;
mod gpu_links;
mod inputs;
mod jobs;
mod keys;
mod knobs;
mod memory;
mod nvswitches;
mod rails;
mod reducing_switches;
mod servers;
mod serving;
mod several_jobs;
mod split_backward;
mod training;
mod validation;

#[path = "../support/mod.rs"]
mod support;
