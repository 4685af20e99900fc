//! The price and power of a cluster: GPUs, servers, NICs, switches, links, ports of circuit switches.
//!
//! Layer: cost. Parts are counted on the network's graph and priced by `assets/costs.toml` or `[base.cost]`. It knows no workload: power is that of full load,
//! whatever runs. Cooling, buildings, storage and people are not included.

mod assets;
mod bill;

pub use assets::CostError;
pub use bill::{Bill, Parts, bill, circuit_ports, parts, usd_per_mtoken};
