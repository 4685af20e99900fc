//! Finds axes whose values are GPUs in servers that have other links than those GPUs.
//!
//! Layer: session. It reads configurations and simulates nothing.

use std::collections::BTreeSet;

use hyperfold_config::sweep::Sweep;
use hyperfold_results::NotCompared;

use crate::experiment::config;
use crate::planning::two_models::examined;

/// Keys that decide which GPU is in which server.
const DECIDE: [&str; 2] = ["cluster.gpu", "cluster.server"];
/// Further keys that decide whether a GPU takes its links from its server.
const MATTER: [&str; 5] =
    ["cluster.gpus_per_server", "cluster.nvlink_gbps", "cluster.server_xml", "topology.kind", "workload.kind"];

/// Returns the axes that put GPUs into servers which have other links.
pub(crate) fn not_compared(sweep: &Sweep) -> Vec<NotCompared> {
    let places_of = |keys: &[&str]| -> Vec<usize> {
        (0..sweep.axes.len()).filter(|&axis| keys.contains(&sweep.axes[axis].as_str())).collect()
    };
    let deciding = places_of(&DECIDE);
    if deciding.is_empty() {
        return Vec::new();
    }
    let read: Vec<usize> = deciding.iter().copied().chain(places_of(&MATTER)).collect();
    let mut seen: BTreeSet<Vec<String>> = BTreeSet::new();
    let mut wrong: BTreeSet<String> = BTreeSet::new();
    for experiment in examined(sweep) {
        let values = sweep.axis_values(experiment);
        let known = !seen.insert(read.iter().map(|&axis| values[axis].to_string()).collect());
        if !known && hyperfold_validated::takes_links_of_another(&config(sweep, experiment)) {
            wrong.insert(deciding.iter().map(|&axis| values[axis].to_string()).collect::<Vec<_>>().join(" in "));
        }
    }
    if wrong.is_empty() {
        return Vec::new();
    }
    let wrong: Vec<String> = wrong.into_iter().collect();
    let why = format!("GPUs take their links from a server that has other ones: {}", wrong.join(", "));
    deciding.iter().map(|&axis| NotCompared { key: sweep.axes[axis].clone(), why: why.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use hyperfold_config::sweep::{self, SetOverrides};

    fn found(base: &str, axes: &str) -> Vec<(String, String)> {
        let text = format!("name = \"links\"\n[base]\ncluster.gpus = 16\n{base}\n[axes]\n{axes}\n");
        let sweep =
            sweep::parse(&text, Path::new("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"));
        not_compared(&sweep).into_iter().map(|axis| (axis.key, axis.why)).collect()
    }

    #[test]
    fn gpus_with_links_of_another_server_are_not_compared() {
        let collective = "cluster.server = \"dgx-h100\"\nworkload = { kind = \"collective\", op = \"all-reduce\" }";
        let gpus =
            "\"cluster.gpu\" = [\"h100\", \"h200\", \"l40s\", \"a100\"]\n\"transport.cc\" = [\"hpcc\", \"none\"]";
        let of_gpus = found(collective, gpus);
        assert_eq!(of_gpus.len(), 1);
        assert_eq!(of_gpus[0].0, "cluster.gpu");
        assert!(of_gpus[0].1.ends_with("a server that has other ones: a100, l40s"), "{of_gpus:?}");
        assert!(found(collective, "\"cluster.gpu\" = [\"h100\", \"h200\"]").is_empty());
        let traffic = "cluster.server = \"dgx-h100\"\nworkload = { kind = \"traffic\", pattern = \"ring\" }";
        assert!(found(traffic, gpus).is_empty(), "nothing takes time inside servers");
        let own = "workload = { kind = \"collective\", op = \"all-reduce\" }";
        assert!(found(own, gpus).is_empty(), "links follow the GPU");
    }
}
