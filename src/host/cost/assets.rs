//! Prices and powers of parts, from `assets/costs.toml`.
//!
//! Layer: cost. The asset gives the source of each number.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

const ASSET: &str = include_str!("../../../assets/costs.toml");

/// Why a price is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// The tables have no price and power of a GPU.
    #[error(
        "there is no price and power of the GPU {gpu}; set cost.gpu_usd and cost.gpu_watts, or say in its table which GPU it is `like` (known: {known})"
    )]
    Gpu {
        /// Name of the GPU.
        gpu: String,
        /// Names of the GPUs that they have.
        known: String,
    },
}

/// Price and power of one part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PartCost {
    pub usd: f64,
    pub watts: f64,
}

/// A part whose price and power grow with its rate.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ByRate {
    usd: f64,
    usd_per_gbps: f64,
    watts: f64,
    watts_per_gbps: f64,
    source: String,
}

impl ByRate {
    /// Price and power of one part with this rate.
    pub(super) fn cost(&self, gbps: f64) -> PartCost {
        PartCost { usd: self.usd + self.usd_per_gbps * gbps, watts: self.watts + self.watts_per_gbps * gbps }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gpu {
    usd: f64,
    watts: f64,
    source: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    gpus: u32,
    usd: f64,
    watts: f64,
    source: String,
    #[serde(default)]
    names: Vec<String>,
}

/// The content of the asset.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Costs {
    gpu: BTreeMap<String, Gpu>,
    server: BTreeMap<String, Server>,
    pub nic: ByRate,
    pub switch: ByRate,
    pub link: ByRate,
    pub circuit_port: ByRate,
}

impl Costs {
    /// The asset, parsed once.
    pub(super) fn shipped() -> &'static Costs {
        static SHIPPED: OnceLock<Costs> = OnceLock::new();
        SHIPPED.get_or_init(|| toml::from_str(ASSET).expect("the asset is part of the program and a test reads it"))
    }

    /// Price and power of a GPU by its canonical name.
    pub(super) fn gpu(&self, name: &str) -> Result<PartCost, CostError> {
        match self.gpu.get(name) {
            Some(g) => Ok(PartCost { usd: g.usd, watts: g.watts }),
            None => Err(CostError::Gpu {
                gpu: name.to_string(),
                known: self.gpu.keys().cloned().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Price and power of a server for `gpus` GPUs, without them. It is the named server if the asset has it, else the default one.
    pub(super) fn server(&self, name: Option<&str>, gpus: f64) -> PartCost {
        let named = self.server.values().find(|s| name.is_some_and(|n| s.names.iter().any(|m| m == n)));
        let s = named.unwrap_or_else(|| &self.server["default"]);
        let share = gpus / f64::from(s.gpus);
        PartCost { usd: s.usd * share, watts: s.watts * share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_config::spec::SERVERS;

    #[test]
    fn every_number_has_a_source_and_every_name_exists() {
        let c = Costs::shipped();
        assert!(c.gpu.values().all(|g| !g.source.is_empty() && g.usd > 0.0 && g.watts > 0.0));
        assert!(c.server.values().all(|s| !s.source.is_empty() && s.gpus > 0));
        assert!([&c.nic, &c.switch, &c.link, &c.circuit_port].iter().all(|p| !p.source.is_empty()));
        let unknown: Vec<&String> =
            c.server.values().flat_map(|s| &s.names).filter(|n| !SERVERS.contains(&n.as_str())).collect();
        assert!(unknown.is_empty() && c.server.contains_key("default"), "{unknown:?}");
    }

    #[test]
    fn a_dgx_draws_what_its_guide_says() {
        let c = Costs::shipped();
        let dgx =
            c.server(Some("dgx-h100"), 8.0).watts + 8.0 * (c.gpu("h100-sxm").unwrap().watts + c.nic.cost(400.0).watts);
        assert_eq!(dgx, 10_200.0);
        let a100 = c.server(Some("dgx-a100"), 8.0).watts + 8.0 * (c.gpu("a100-80g-sxm").unwrap().watts + 20.0);
        assert_eq!(a100, 6_500.0);
    }

    #[test]
    fn an_unknown_gpu_says_which_keys_help() {
        let e = Costs::shipped().gpu("mine").unwrap_err().to_string();
        assert!(e.contains("cost.gpu_usd") && e.contains("h100-sxm"), "{e}");
    }
}
