//! `[base.cost]`: the user's own prices and powers.
//!
//! Layer: spec. `None` leaves a figure to `assets/costs.toml`, which `cost` reads.

use super::key_id::KeyId;
use super::value::{Value, Values};

/// Price in dollars and power in watts of one part of each kind, if the user gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CostKeys {
    /// Price and power of a GPU.
    pub gpu: (Option<f64>, Option<f64>),
    /// Price and power of a server without its GPUs and NICs.
    pub server: (Option<f64>, Option<f64>),
    /// Price and power of a NIC.
    pub nic: (Option<f64>, Option<f64>),
    /// Price and power of a switch.
    pub switch: (Option<f64>, Option<f64>),
    /// Price and power of a link with both ends and the cable.
    pub link: (Option<f64>, Option<f64>),
    /// Price and power of a port of an optical circuit switch.
    pub circuit_port: (Option<f64>, Option<f64>),
    /// Years over which the price counts in `usd_per_mtoken`.
    pub years: f64,
    /// Value of `cost.usd_per_kwh`.
    pub usd_per_kwh: f64,
}

impl CostKeys {
    pub(super) fn new(v: &Values) -> CostKeys {
        let own = |k: KeyId| (*v.get(k) != Value::Unset).then(|| v.float(k));
        CostKeys {
            gpu: (own(KeyId::CostGpuUsd), own(KeyId::CostGpuWatts)),
            server: (own(KeyId::CostServerUsd), own(KeyId::CostServerWatts)),
            nic: (own(KeyId::CostNicUsd), own(KeyId::CostNicWatts)),
            switch: (own(KeyId::CostSwitchUsd), own(KeyId::CostSwitchWatts)),
            link: (own(KeyId::CostLinkUsd), own(KeyId::CostLinkWatts)),
            circuit_port: (own(KeyId::CostCircuitPortUsd), own(KeyId::CostCircuitPortWatts)),
            years: v.float(KeyId::CostYears),
            usd_per_kwh: v.float(KeyId::CostUsdPerKwh),
        }
    }
}
