//! Flow level: the packet engine's tables, with max-min fair rates of flows in place of packets.
//!
//! It simulates the experiments of a batch whose header has `mode::FLOW`.
//!
//! | module | content |
//! |---|---|
//! | `engine` | experiments in parallel, next to the packet engine |
//! | `run` | one experiment's events in order of time |
//! | `maxmin` | fair rates over links with capacities; only what a change reaches is solved again |
//! | `carriers` | queue pairs that cross the same links share one rate per flow |
//! | `changes` | links that fail, come back or have other rates, and flows that move to other paths |
//! | `crossings` | the links that a queue pair crosses |
//! | `joined` | queue pairs that are one flow, and the duration of their collectives without other traffic |
//! | `latency` | what a message takes besides its transmission |
//! | `tasks` | ends of tasks release waiting tasks, gates and servers |
//!
//! It knows columns and numbers only, and simulates no packet, queue or congestion control. `docs/how-to/flow-mode.md` says what that leaves out.
//! Start with `run.rs`, then `maxmin.rs`.

#![forbid(unsafe_code)]

mod carriers;
mod changes;
mod crossings;
mod engine;
mod joined_flows;
mod latency;
pub mod maxmin;
mod run;
mod tasks;

pub use engine::{FlowEngine, advance_beside, expected_bytes, is_flow_level, is_flow_level_of, run_to_end};
pub use joined_flows::{CollectiveAlone, join};
pub use latency::{AloneTimes, Hop, PacketSizes};
