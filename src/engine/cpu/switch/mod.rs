//! The work of a switch in a step: arrivals, marking, the shared buffer, forwarding.
//!
//! Layer: engine. One file for each system (`plan`, `classify`, `forward`, `forward_joint`), and what they share: `egress` (a port's queue, where ECN marks)
//! `mmu` (the shared buffer), `port_queue` (queues in its place), `class_port` (traffic classes), `adaptive`
//! (the choice of an egress port), `averages` (of queues, for marking), `watchdog` (pauses that last too long)
//! and `cut_through` (when a packet on a wire can be handled; NICs ask it too). Knows no NICs.

pub mod adaptive;
pub mod averages;
pub mod class_port;
pub mod classify;
pub mod cut_through;
pub mod egress;
pub mod forward;
pub mod forward_joint;
pub mod mmu;
pub mod plan;
pub mod port_queue;
pub mod watchdog;
pub mod whole_switch;
