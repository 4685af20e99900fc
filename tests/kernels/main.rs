//! The kernels of the device, executed by an interpreter: every byte after every system against the CPU twin, races, and counts of what a packet-hop costs.
//! Needs neither a GPU nor a driver.

#![forbid(unsafe_code)]

mod counts;
mod executed;
mod faults;
mod fused;
mod systems;
mod text;

#[path = "../support/mod.rs"]
mod support;
