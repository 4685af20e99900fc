//! Networks: who is connected to whom, which way packets go, and how senders behave.
//!
//! | module | content |
//! |---|---|
//! | [`topology`] | fat trees, Clos, rail-optimized and rail-only networks; files of other simulators; one [`Network`](topology::Network) of nodes and links |
//! | [`routing`] | routes between hosts, and the policies that choose among equal ones |
//! | [`changes`] | links that fail and come back while an experiment runs, and the paths and ports after that |
//! | [`transport`] | congestion control and loss recovery by name, with their parameters |
//!
//! It never simulates, and never reads a sweep file. A routing policy is one file in `routing/policy` and one line of the registry in `hyperfold_base::registries`.
//! Start with [`topology`]: everything else asks the network that it makes.

#![forbid(unsafe_code)]

pub mod changes;
mod port_moves;
mod routed_flow;
pub mod routing;
pub mod topology;
pub mod transport;
