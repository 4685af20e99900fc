//! The engine's own kernels on a device, checked against the CPU engine before a result of the device is believed.
//!
//! Layer: host. A driver may compile a large kernel wrongly although the small kernels of the self-test pass. So small experiments are simulated on both
//! engines, and all bytes of their tables are compared.
//!
//! | file | holds |
//! |---|---|
//! | `cases`, `graphs` | the stored experiments, without and with task graphs |
//! | `dumbbell`, `transports` | what they are made of |
//! | `known` | an experiment with the end that the CPU engine finds |
//! | `packets` | whole runs on a device against these ends |
//! | `steps` | step by step and system by system, to name what is wrong first |
//! | `rates` | the kernel that solves rates at flow level |
//! | `difference` | the first difference between two sets of tables, in words |
//! | `checked_engine` | the engine of a run, which checks its device at first use |
//! | `whole` | the whole check, for `hyperfold doctor --engine` |

pub mod cases;
mod checked_engine;
pub mod difference;
pub mod dumbbell;
mod graphs;
pub mod known;
pub mod packets;
pub mod rates;
pub mod steps;
pub mod transports;
pub mod whole;

pub use checked_engine::CheckedEngine;
