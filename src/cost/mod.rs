//! What a cluster costs and draws: GPUs, servers, NICs, switches, links.
//!
//! Layer: cost. Counts parts on the network's graph and prices them by `assets/costs.toml`, or by what `[base.cost]` says. Knows no workload: power is that of full load,
//! whatever runs. Cooling, buildings, storage and people are not in it.

mod assets;
mod bill;

pub use assets::CostError;
pub use bill::{Bill, Parts, bill, parts, usd_per_mtoken};
