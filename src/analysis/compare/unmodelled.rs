//! Finds axes that the experiments' level of detail does not simulate, so that equal results say nothing about them.
//!
//! Layer: compare. It judges by results only, and reads neither sweeps nor the key table.

use std::collections::BTreeMap;

/// Kind of traffic that crossed links of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossed {
    Nothing,
    /// Flows with fair rates.
    Flows,
    Packets,
}

/// Outcome of a configuration, as far as it decides whether an axis was simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedOutcome {
    /// Index of its value on each axis, among the values that occur.
    pub values: Vec<u32>,
    pub config_key: String,
    pub crossed: Crossed,
    /// Its time. `None`: it has none.
    pub time: Option<f64>,
}

/// Kind of traffic that crossed the network, from columns of a result. Flow level counts no packets.
pub fn crossed(packet_hops: Option<f64>, max_link_utilisation: Option<f64>) -> Crossed {
    let used = max_link_utilisation.unwrap_or(0.0) > 0.0;
    match packet_hops {
        Some(hops) if hops > 0.0 => Crossed::Packets,
        None if used => Crossed::Flows,
        _ => Crossed::Nothing,
    }
}

/// Keys of the transport that also affect flows: the payload of a packet, and how many acknowledgements there are.
const OF_FLOWS: [&str; 3] = ["transport.payload_bytes", "transport.ack_interval_bytes", "transport.ack_chunk_bytes"];

/// Whether a key affects only packets: how senders, switches and their buffers treat them.
fn is_of_packets(key: &str) -> bool {
    (key.starts_with("transport.") && !OF_FLOWS.contains(&key))
        || (key.starts_with("topology.") && key.ends_with("buffer_mib"))
}

/// Sections whose keys describe the network between servers.
const NETWORK: [&str; 3] = ["topology.", "routing.", "transport."];

/// Why an axis was not simulated, as a clause. `None`: it was simulated, or the results do not show it.
pub fn why_not_simulated(key: &str, axis: usize, outcomes: &[ComparedOutcome]) -> Option<&'static str> {
    let done: Vec<&ComparedOutcome> = outcomes.iter().filter(|o| o.time.is_some()).collect();
    let mut blocks: BTreeMap<Vec<u32>, Vec<&ComparedOutcome>> = BTreeMap::new();
    for outcome in &done {
        let others = [&outcome.values[..axis], &outcome.values[axis + 1..]].concat();
        blocks.entry(others).or_default().push(outcome);
    }
    // An axis can be judged only in blocks that contain different values of it.
    blocks.retain(|_, block| block.iter().any(|o| o.values[axis] != block[0].values[axis]));
    if blocks.is_empty() {
        return None;
    }
    let in_all_blocks = |same: &dyn Fn(&ComparedOutcome, &ComparedOutcome) -> bool| {
        blocks.values().all(|block| block.iter().all(|o| same(block[0], o)))
    };
    if in_all_blocks(&|a, b| a.config_key == b.config_key) {
        return Some("these experiments do not read it, so its values are one configuration");
    }
    let of_flows = done.iter().all(|o| o.crossed == Crossed::Flows);
    if of_flows && is_of_packets(key) {
        return Some("flows have fair rates: no congestion control, no queue and no pause acts on them");
    }
    let of_network = NETWORK.iter().any(|section| key.starts_with(section));
    if of_network && done.iter().all(|o| o.crossed == Crossed::Nothing) && in_all_blocks(&|a, b| a.time == b.time) {
        return Some("no packet and no flow crossed the network: communication took what closed forms say");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Crossed = Crossed::Nothing;
    const PACKETS: Crossed = Crossed::Packets;

    fn outcome(values: [u32; 2], key: &str, crossed: Crossed, time: f64) -> ComparedOutcome {
        ComparedOutcome { values: values.to_vec(), config_key: key.into(), crossed, time: Some(time) }
    }

    #[test]
    fn a_network_that_nothing_crossed_was_not_simulated() {
        let grid = |crossed: Crossed| {
            [([0, 0], "a", 5.0), ([1, 0], "b", 5.0), ([0, 1], "c", 7.0), ([1, 1], "d", 7.0)]
                .map(|(values, key, time)| outcome(values, key, crossed, time))
        };
        assert!(why_not_simulated("topology.kind", 0, &grid(NOTHING)).is_some_and(|why| why.contains("closed forms")));
        assert_eq!(why_not_simulated("topology.link_gbps", 1, &grid(NOTHING)), None, "closed forms read the rate");
        assert_eq!(why_not_simulated("workload.tp", 0, &grid(NOTHING)), None, "no key of the network");
        assert_eq!(why_not_simulated("topology.kind", 0, &grid(PACKETS)), None, "it does not matter, as packets say");
    }

    /// Headers differ by congestion control, so times do; still none acted.
    #[test]
    fn flow_level_has_no_congestion_control() {
        let outcomes_of = |last: Crossed| [outcome([0, 0], "a", Crossed::Flows, 5.0), outcome([1, 0], "b", last, 5.2)];
        assert!(
            why_not_simulated("transport.cc", 0, &outcomes_of(Crossed::Flows))
                .is_some_and(|why| why.contains("fair rates"))
        );
        assert_eq!(why_not_simulated("topology.kind", 0, &outcomes_of(Crossed::Flows)), None);
        assert_eq!(why_not_simulated("transport.payload_bytes", 0, &outcomes_of(Crossed::Flows)), None);
        assert_eq!(why_not_simulated("transport.cc", 0, &outcomes_of(PACKETS)), None);
        assert_eq!(crossed(None, Some(0.5)), Crossed::Flows);
        assert_eq!([crossed(Some(0.0), None), crossed(None, None)], [NOTHING; 2]);
    }

    #[test]
    fn an_axis_that_makes_no_other_configuration_was_not_simulated() {
        let outcomes_of = |last: &str| [outcome([0, 0], "a", PACKETS, 5.0), outcome([1, 0], last, PACKETS, 5.0)];
        assert!(
            why_not_simulated("transport.cc", 0, &outcomes_of("a")).is_some_and(|why| why.contains("do not read it"))
        );
        assert_eq!(why_not_simulated("transport.cc", 0, &outcomes_of("b")), None);
        assert_eq!(why_not_simulated("transport.cc", 1, &outcomes_of("a")), None, "it takes one value");
    }
}
