//! Congestion controls, in integers (twins: `shaders/cc/`). docs/explanation/model-semantics.md gives formats and rules.

pub mod dcqcn;
pub mod dctcp;
pub mod hpcc;
pub mod nscc;
pub mod swift;
pub mod timely;
