//! The CPU engine: the twin of the WGSL kernels. It runs one experiment at a time, and only rows that have something to do.
//!
//! | file or folder | holds |
//! |---|---|
//! | `switch` | the systems of switches: arrivals, marking, the shared buffer, forwarding |
//! | `nic`, `sending`, `task` | system `nic`: what happens at a NIC in time order, how it sends, and the tasks of its rank |
//! | `loss` | packets that get lost on their way over a link |
//! | `classes`, `class_turns` | traffic classes: which one sends next, at a port or at a NIC |
//! | `transport`, `cc` | queue pairs and their rates; one file for each congestion control |
//! | `schedule`, `analytical`, `advance` | the systems with one row per experiment: gates, what is no packet, the next event |
//! | `key`, `lists`, `math` | the order of events, packet lists, integers |
//! | `whole_step`, `engine`, `parallel` | a step of all rows on one thread; the engine's interface; how threads are shared |

pub mod advance;
pub mod analytical;
pub mod cc;
pub mod class_turns;
pub mod classes;
pub mod engine;
pub mod key;
pub mod lists;
pub mod loss;
pub mod math;
pub mod moved_pairs;
pub mod nic;
pub mod parallel;
pub mod schedule;
pub mod sending;
pub mod switch;
pub mod task;
pub mod transport;
pub mod whole_step;

pub use whole_step::{run, step};
