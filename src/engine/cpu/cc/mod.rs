//! Congestion controls, in integers (twins: `shaders/cc/`). ARCHITECTURE.md, "Congestion control", gives formats and rules.

pub mod dcqcn;
pub mod dctcp;
pub mod hpcc;
pub mod timely;
