//! The GPU engine: parity with the CPU engine, its arithmetic and its kernels' text. Needs an adapter (`scripts/setup-vulkan.sh`).

#![forbid(unsafe_code)]

mod devices;
mod fused;
mod kernel_check;
mod math;
mod rates;
mod systems;
mod wgsl;
mod wide_selects;

#[path = "../support/mod.rs"]
mod support;
