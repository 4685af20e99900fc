//! Flow level: the same tables as the packet engine's, with max-min fair rates of flows in place of packets.
//!
//! Layer: flow level. Knows columns and numbers only. Steps what the packet engine does not: experiments whose header has `mode::FLOW`.
//!
//! - `maxmin`: fair rates over links with capacities; only what a change reaches is solved anew.
//! - `carriers`: queue pairs that cross the same links are one carrier, with one rate a flow.
//! - `crossings`: the links that a queue pair crosses.
//! - `joined`: queue pairs that are one flow, and what their collectives take alone.
//! - `latency`: what a message takes beside its transmission.
//! - `run`: one experiment's events in the order of time.
//! - `tasks`: what ends releases what waits, gates and servers among them.
//! - `engine`: experiments in parallel, beside the packet engine.

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
