//! The packet engine: the same systems in Rust (`cpu`) and WGSL (`gpu`), over the tables of `columns`.
//!
//! Layer: knows columns and numbers only; no TOML, no topology generator, no entity.

pub mod cpu;
pub mod gpu;
pub mod grow;
