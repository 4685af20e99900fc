//! What was lost in networks whose optical circuits change, for a warning at the end of a run.
//!
//! Layer: session. Adds up; prints nothing.

use hyperfold_base::units::counted;
use hyperfold_config::spec::{Config, TopologyKind};
use hyperfold_network::topology::FabricShape;

/// What is known of the experiments whose circuits change and that lost packets.
#[derive(Debug, Default)]
pub(crate) struct DarkLosses {
    experiments: u64,
    most: Option<MostLost>,
}

/// The experiment that lost most.
#[derive(Clone, Copy, Debug)]
struct MostLost {
    exp_id: u64,
    drops: u64,
    drain_ps: u64,
    /// Time in ps that a circuit takes to send as much as a switch can hold.
    full_queue_ps: u64,
}

impl DarkLosses {
    /// Adds an experiment that lost packets. One whose circuits stay is none of these.
    pub(crate) fn add(&mut self, exp_id: u64, drops: u64, config: &Config) {
        let TopologyKind::Generated { shape: FabricShape::Optical(optical), .. } = &config.topology.kind else {
            return;
        };
        let Some(drain_ps) = optical.plan.shortest_drain_ps() else { return };
        self.experiments += 1;
        if self.most.is_some_and(|most| (most.drops, exp_id) >= (drops, most.exp_id)) {
            return;
        }
        let buffer_bytes = config.topology.tier_buffers.map_or(config.topology.buffer_bytes, |tiers| tiers.leaf);
        let bits = u128::from(buffer_bytes) * 8 * 1_000_000_000_000;
        let full_queue_ps = (bits / u128::from(config.topology.uplink_bps.max(1))) as u64;
        self.most = Some(MostLost { exp_id, drops, drain_ps, full_queue_ps });
    }

    /// Returns a warning if packets were lost.
    pub(crate) fn warning(&self) -> Option<String> {
        let MostLost { exp_id, drops, drain_ps, full_queue_ps } = self.most?;
        let us = |ps: u64| ps as f64 / 1e6;
        let longest = match full_queue_ps {
            0 => String::new(),
            ps => format!(
                " (topology.buffer_mib over uplink_gbps is {:.0} us, the most for one queue; max_queue_bytes has the longest that there was)",
                us(ps)
            ),
        };
        Some(format!(
            "{} lost packets while circuits changed (topology.circuits), experiment {exp_id} most, {drops} with a drain of {} us: what waits for a circuit, or is on its way \
             over another one first, must go through in that time{longest}; flows without another path lose packets with any drain",
            counted(self.experiments, "experiment"),
            us(drain_ps)
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hyperfold_config::sweep::{self, SetOverrides};

    use super::*;

    #[test]
    fn the_drain_stands_beside_the_time_of_a_full_queue() {
        let text = "name = \"t\"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\nworkload = { kind = \"traffic\", pattern = \"ring\" }\n\
                    topology = { kind = \"optical\", hosts_per_leaf = 1, spines = 2, uplink_gbps = 100, buffer_mib = 1 }\n\
                    [axes]\n\"topology.circuits\" = [\"mesh\", \"rotate every 1ms dark 20us drain 30us until 20ms\", \"rotate every 1ms dark 20us until 20ms\"]\n";
        let sweep = sweep::parse(text, Path::new("s.toml"), &SetOverrides::default()).expect("it is right");
        let mut losses = DarkLosses::default();
        for (experiment, drops) in sweep.experiments.iter().zip([9, 7, 7]) {
            losses.add(experiment.exp_id, drops, &sweep.config(experiment).expect("it is right"));
        }
        let told = losses.warning().expect("two of them lost packets while circuits changed");
        for words in ["2 experiments lost packets", "experiment 1 most, 7 with a drain of 30 us", "is 84 us, the most"]
        {
            assert!(told.contains(words), "{words}: {told}");
        }
        assert_eq!(DarkLosses::default().warning(), None);
    }
}
