//! Switch chips by name: what `topology.switch` may be, with capacities and buffers of `assets/switches.toml`.
//!
//! Layer: spec. Which chip a switch of a network has, `host` finds out once the network is built.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::applies_when::job_mode;
use super::key_id::KeyId;
use super::scale::scaled;
use super::value::Values;

/// Buffer of a switch whose chip is not known, or whose chip has no published buffer, in MiB: that of the reference's switches.
pub const DEFAULT_BUFFER_MIB: f64 = 32.0;

/// A switch chip with one packet buffer for all its ports.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchChip {
    /// Name, as `topology.switch` has it.
    #[serde(skip)]
    pub name: &'static str,
    /// Sum of the rates of all ports in one direction, Gbit/s.
    pub capacity_gbps: u64,
    /// Shared packet buffer, millions of bytes; `None`: it is not published.
    buffer_mb: Option<u64>,
    /// Most ports, whatever their rate.
    pub max_ports: u64,
    /// Rate of the fastest port, Gbit/s.
    pub max_port_gbps: u64,
    /// Where these figures are published.
    pub source: String,
}

impl SwitchChip {
    /// Whether its buffer is published. If not, switches with it have [`DEFAULT_BUFFER_MIB`].
    pub fn has_known_buffer(&self) -> bool {
        self.buffer_mb.is_some()
    }

    /// The buffer as `topology.buffer_mib` has it: MiB, in whole thousandths, rounded down.
    pub fn buffer_mib(&self) -> f64 {
        self.buffer_mb.map_or(DEFAULT_BUFFER_MIB, |mb| ((mb * 1_000_000 * 1_000) >> 20) as f64 / 1_000.0)
    }

    /// Shared packet buffer of a switch with this chip, in bytes: what `buffer_mib` says.
    pub fn buffer_bytes(&self) -> u64 {
        scaled(self.buffer_mib(), (1u64 << 20) as f64)
    }

    /// Whether one chip has so many ports, with this sum of rates and none faster than the last.
    pub fn holds(&self, n_ports: u64, sum_bps: u64, fastest_bps: u64) -> bool {
        const GBPS: u64 = 1_000_000_000;
        n_ports <= self.max_ports && sum_bps <= self.capacity_gbps * GBPS && fastest_bps <= self.max_port_gbps * GBPS
    }
}

/// What `topology.switch` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchChoice {
    /// All switches have this chip.
    Chip(&'static SwitchChip),
    /// The switches of each tier have the smallest chip that holds their ports.
    ByRate,
}

impl SwitchChoice {
    /// The choice of an experiment. A cluster over days has no packets that its switches hold.
    pub(super) fn of(v: &Values) -> Option<SwitchChoice> {
        match v.text(KeyId::Switch) {
            _ if job_mode(v) => None,
            "by-rate" => Some(SwitchChoice::ByRate),
            name => find_switch(name).map(SwitchChoice::Chip),
        }
    }
}

/// Values of `topology.switch`. Chips stand in ascending order of capacity, those that "by-rate" prefers first.
pub static SWITCHES: [&str; 10] = [
    "none",
    "by-rate",
    "tomahawk-2",
    "spectrum-2",
    "tomahawk-3",
    "spectrum-3",
    "tomahawk-4",
    "tomahawk-5",
    "spectrum-4",
    "tomahawk-6",
];

/// All chips, in the order of [`SWITCHES`].
pub fn switch_chips() -> &'static [SwitchChip] {
    static CHIPS: OnceLock<Vec<SwitchChip>> = OnceLock::new();
    CHIPS.get_or_init(|| {
        let mut asset: BTreeMap<String, SwitchChip> = toml::from_str(include_str!("../../../assets/switches.toml"))
            .expect("the asset is part of the program and a test reads it");
        SWITCHES[2..].iter().filter_map(|name| Some(SwitchChip { name, ..asset.remove(*name)? })).collect()
    })
}

/// The chip with this name.
fn find_switch(name: &str) -> Option<&'static SwitchChip> {
    switch_chips().iter().find(|chip| chip.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_asset_has_every_choice_and_no_more() {
        let names: Vec<&str> = switch_chips().iter().map(|chip| chip.name).collect();
        assert_eq!(names, SWITCHES[2..]);
        let asset: toml::Table = include_str!("../../../assets/switches.toml").parse().unwrap();
        assert_eq!(asset.len(), names.len());
        assert!(switch_chips().is_sorted_by_key(|chip| chip.capacity_gbps), "by-rate takes the first that fits");
        assert!(switch_chips().iter().all(|chip| !chip.source.is_empty()));
        for chip in switch_chips() {
            let at_full_rate = chip.capacity_gbps / chip.max_port_gbps;
            assert!(at_full_rate * chip.max_port_gbps == chip.capacity_gbps && at_full_rate <= chip.max_ports);
        }
    }

    #[test]
    fn a_chip_holds_ports_up_to_its_number_its_capacity_and_its_fastest_port() {
        const GBPS: u64 = 1_000_000_000;
        let chip = find_switch("tomahawk-5").unwrap();
        assert!(chip.holds(64, 51_200 * GBPS, 800 * GBPS) && chip.holds(256, 51_200 * GBPS, 200 * GBPS));
        assert!(!chip.holds(65, 52_000 * GBPS, 800 * GBPS), "more than its capacity");
        assert!(!chip.holds(257, 257 * GBPS, GBPS), "more ports");
        assert!(!chip.holds(1, 1600 * GBPS, 1600 * GBPS), "a faster port");
        let largest = find_switch("tomahawk-6").unwrap();
        assert!(largest.holds(64, 102_400 * GBPS, 1600 * GBPS) && largest.holds(512, 102_400 * GBPS, 200 * GBPS));
        assert_eq!((largest.has_known_buffer(), largest.buffer_bytes()), (false, 32 << 20));
        assert_eq!(chip.buffer_mib(), 157.356, "165 MB");
        assert_eq!(chip.buffer_bytes(), 164_999_725);
        assert_eq!(find_switch("none"), None);
    }
}
