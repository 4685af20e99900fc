//! Flow level: the same tables as the packet engine's, with max-min fair rates of flows instead of packets.
//!
//! Layer: flow level. Knows columns and numbers only. It simulates the experiments that the packet engine does not: those whose header has `mode::FLOW`.
//!
//! - `maxmin`: fair rates over links with capacities; only affected rates are solved again.
//! - `carriers`: queue pairs that cross the same links share a carrier, with one rate per flow.
//! - `crossings`: the links that a queue pair crosses.
//! - `joined`: queue pairs that are one flow, and the duration of their collectives without other traffic.
//! - `latency`: the latency of a message besides its transmission.
//! - `run`: one experiment's events in order of time.
//! - `tasks`: ends of tasks release waiting tasks, gates and servers.
//! - `engine`: experiments in parallel, next to the packet engine.

#![forbid(unsafe_code)]

mod carriers;
mod crossings;
mod engine;
mod joined;
mod latency;
pub mod maxmin;
mod run;
mod tasks;

pub use engine::{FlowEngine, advance_beside, expected_bytes, is_flow_level, run_to_end};
pub use joined::{CollectiveAlone, join};
pub use latency::{AloneTimes, Hop, PacketSizes};
