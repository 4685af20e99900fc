//! Finds axes that the experiments' level of detail does not simulate, so that equal results say nothing about them.
//!
//! Layer: compare. It judges by results only, and reads neither sweeps nor the key table.

use std::collections::BTreeMap;

use hyperfold_network::routing::{PolicyKeys, routing_policy};

/// Kind of traffic that crossed links of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossed {
    /// No traffic: times come from formulas, or nothing is sent.
    Nothing,
    /// Flows with fair rates.
    Flows,
    /// Packets, one by one.
    Packets,
    /// Iterations of a cluster's jobs over days, as flows or as packets.
    Iterations,
    /// A cluster over days was simulated without iterations: jobs took the time that they were given.
    GivenTimes,
}

/// Outcome of a configuration, as far as it decides whether an axis was simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedOutcome {
    /// Index of its value on each axis, among the values that occur.
    pub values: Vec<u32>,
    /// Key of the configuration: the column `config_key`.
    pub config_key: String,
    /// Traffic that crossed its network.
    pub crossed: Crossed,
    /// Whether packets of a flow take several paths.
    pub sprays: bool,
    /// Whether receivers take packets that were overtaken for lost.
    pub goes_back_n: bool,
    /// Whether packets take several paths, receivers take overtaken ones for lost, and something was sent again.
    pub resent: bool,
    /// Its time, or what it says of a cluster over days. Empty if it did not complete.
    pub measures: Vec<f64>,
}

/// Columns of a cluster over days in which a design could differ.
const OF_DAYS: [&str; 8] = [
    "cluster_hours",
    "utilisation",
    "goodput",
    "waiting_mean_s",
    "turnaround_mean_s",
    "down_share",
    "checkpoint_share",
    "write_slowdown",
];

impl ComparedOutcome {
    /// Reads an outcome from columns of a result. `policy` is its value of the axis [`POLICY`], if there is that axis.
    pub fn of(
        values: Vec<u32>,
        config_key: &str,
        policy: Option<&str>,
        goes_back_n: bool,
        column: impl Fn(&str) -> Option<f64>,
    ) -> ComparedOutcome {
        // A cluster over days has no makespan.
        let time = column("makespan_ns");
        let days = if time.is_none() { column("cluster_hours") } else { None };
        let crossed = match days {
            None => crossed(column("packet_hops"), column("max_link_utilisation")),
            Some(_) if column("iteration_sets").is_some() => Crossed::Iterations,
            Some(_) => Crossed::GivenTimes,
        };
        let of_days = || OF_DAYS.iter().filter(|_| days.is_some()).filter_map(|name| column(name)).collect();
        let sprays = policy.is_some_and(sprays);
        ComparedOutcome {
            values,
            config_key: config_key.to_string(),
            crossed,
            sprays,
            goes_back_n,
            resent: sprays && goes_back_n && column("retransmissions").is_some_and(|n| n > 0.0),
            measures: time.map_or_else(of_days, |time| vec![time]),
        }
    }
}

/// Key that chooses the paths of flows.
pub const POLICY: &str = "routing.policy";

/// Key that says how receivers take packets that were overtaken.
pub const RECOVERY: &str = "transport.loss_recovery";

/// Whether packets of one flow take several paths with this routing policy, so that they can overtake each other.
pub fn sprays(policy: &str) -> bool {
    routing_policy(policy, PolicyKeys { seed: 1, max_paths: 2 }).is_some_and(|policy| policy.sprays())
}

/// Kind of traffic that crossed the network, from columns of a result. Flow level counts no packets.
fn crossed(packet_hops: Option<f64>, max_link_utilisation: Option<f64>) -> Crossed {
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
        || key == "topology.switch"
}

/// Sections whose keys describe the network between servers.
const NETWORK: [&str; 3] = ["topology.", "routing.", "transport."];

/// Keys of a cluster that decide which jobs fit, so that job mode simulates them.
const OF_SIZE: [&str; 2] = ["cluster.gpus", "cluster.gpus_per_server"];

/// Axes that were not simulated, for each way of simulating. Experiments that differ only in `fidelity.mode`, for example, are simulated in two ways.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unmodelled {
    /// For each axis and each way, why it was not simulated there, as a clause. `None`: it was, or the results do not show it.
    in_ways: Vec<Vec<Option<&'static str>>>,
    /// For each axis, why no way simulated it. `None`: one did, or the results do not show it.
    everywhere: Vec<Option<&'static str>>,
    /// Index of the way of each configuration.
    way: Vec<usize>,
}

impl Unmodelled {
    /// Judges axes by the outcomes of all configurations. `keys` has the key of each axis, or `None` for an axis that is not judged. `way` has the index of
    /// the way of each configuration.
    ///
    /// A routing policy is judged apart by how receivers take overtaken packets, as if these were two ways: one may be a judge of spraying where the other is not.
    pub fn of(keys: &[Option<&str>], outcomes: &[ComparedOutcome], way: Vec<usize>) -> Unmodelled {
        let n_ways = 2 * way.iter().max().map_or(0, |last| last + 1);
        let way: Vec<usize> = way.iter().zip(outcomes).map(|(w, o)| 2 * w + usize::from(o.goes_back_n)).collect();
        let of_way = |w: usize, key: &str| -> Vec<&ComparedOutcome> {
            let belongs = |own: usize| if key == POLICY { own == w } else { own / 2 == w / 2 };
            outcomes.iter().zip(&way).filter(|&(_, &own)| belongs(own)).map(|(outcome, _)| outcome).collect()
        };
        let of_axis = |(axis, key): (usize, &Option<&str>)| -> Vec<Option<Option<&'static str>>> {
            (0..n_ways).map(|w| key.and_then(|key| judged(key, axis, &of_way(w, key)))).collect()
        };
        let judged: Vec<Vec<_>> = keys.iter().enumerate().map(of_axis).collect();
        // Ways in which an axis takes one value say nothing of it.
        let everywhere = |of_axis: &Vec<Option<Option<&'static str>>>| {
            let all: Option<Vec<&'static str>> = of_axis.iter().flatten().copied().collect();
            all.and_then(|whys| whys.first().copied())
        };
        Unmodelled {
            everywhere: judged.iter().map(everywhere).collect(),
            in_ways: judged.iter().map(|of_axis| of_axis.iter().map(|why| why.flatten()).collect()).collect(),
            way,
        }
    }

    /// Why an axis was not simulated in any way. `None`: it was, or the results do not show it.
    pub fn everywhere(&self, axis: usize) -> Option<&'static str> {
        self.everywhere[axis]
    }

    /// Why an axis was not simulated in the way of a configuration. `None`: it was, or the results do not show it.
    pub fn why(&self, axis: usize, configuration: usize) -> Option<&'static str> {
        self.everywhere[axis].or(self.in_ways[axis][self.way[configuration]])
    }

    /// Whether an axis was simulated in some ways only.
    pub fn is_partial(&self, axis: usize) -> bool {
        self.everywhere[axis].is_none() && self.in_ways[axis].iter().any(Option::is_some)
    }

    /// Whether effects of an axis are taken from a configuration: all are where no way simulated it, and else those whose way did.
    pub fn shows(&self, axis: usize, configuration: usize) -> bool {
        self.everywhere[axis].is_some() || self.why(axis, configuration).is_none()
    }
}

/// Why an axis was not simulated in one way of simulating, as a clause, or `Some(None)`: it was, or the results do not show it. `None`: no two experiments
/// differ in it alone.
fn judged(key: &str, axis: usize, outcomes: &[&ComparedOutcome]) -> Option<Option<&'static str>> {
    let done: Vec<&ComparedOutcome> = outcomes.iter().copied().filter(|o| !o.measures.is_empty()).collect();
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
        return Some(Some("these experiments do not read it, so its values are one configuration"));
    }
    let all = |crossed: Crossed| done.iter().all(|o| o.crossed == crossed);
    let without_packets = done.iter().all(|o| matches!(o.crossed, Crossed::Flows | Crossed::Nothing));
    let of_flows = without_packets && !all(Crossed::Nothing);
    if of_flows && is_of_packets(key) {
        return Some(Some("flows have fair rates: no congestion control, no queue and no pause acts on them"));
    }
    if key == POLICY && done.iter().any(|o| !o.sprays) {
        if of_flows && done.iter().any(|o| o.sprays && o.goes_back_n) {
            return Some(Some("flows have no packets that overtake each other, so they are no judge of spraying"));
        }
        if done.iter().any(|o| o.sprays && o.resent && o.crossed == Crossed::Packets) {
            return Some(Some(
                "receivers are go-back-N and take overtaken packets for loss, which adapters made for spraying do not",
            ));
        }
    }
    let same_outcomes = || in_all_blocks(&|a, b| a.measures == b.measures);
    let of_network = NETWORK.iter().any(|section| key.starts_with(section));
    if of_network && all(Crossed::Nothing) && same_outcomes() {
        return Some(Some("no packet and no flow crossed the network: communication took what closed forms say"));
    }
    let of_servers = key.starts_with("cluster.") && !OF_SIZE.contains(&key);
    if (of_network || of_servers) && all(Crossed::GivenTimes) && same_outcomes() {
        return Some(Some(
            "jobs took the time that they were given, as no iteration was simulated (scheduler.iterations_at)",
        ));
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Crossed = Crossed::Nothing;
    const PACKETS: Crossed = Crossed::Packets;

    fn outcome(values: [u32; 2], key: &str, crossed: Crossed, time: f64) -> ComparedOutcome {
        let (values, config_key, measures) = (values.to_vec(), key.into(), vec![time]);
        ComparedOutcome { values, config_key, crossed, sprays: false, goes_back_n: true, resent: false, measures }
    }

    fn why_not_simulated(key: &str, axis: usize, outcomes: &[ComparedOutcome]) -> Option<&'static str> {
        let mut keys = [None, None];
        keys[axis] = Some(key);
        Unmodelled::of(&keys, outcomes, vec![0; outcomes.len()]).everywhere(axis)
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

    #[test]
    fn jobs_that_take_given_times_say_nothing_of_network_and_gpus() {
        let outcomes_of = |crossed: Crossed| [outcome([0, 0], "a", crossed, 5.0), outcome([1, 0], "b", crossed, 5.0)];
        for key in ["topology.kind", "cluster.gpu"] {
            let why = why_not_simulated(key, 0, &outcomes_of(Crossed::GivenTimes));
            assert!(why.is_some_and(|why| why.contains("iterations_at")), "{key}");
            assert_eq!(why_not_simulated(key, 0, &outcomes_of(Crossed::Iterations)), None, "{key}");
        }
        for key in ["scheduler.policy", "cluster.gpus"] {
            assert_eq!(why_not_simulated(key, 0, &outcomes_of(Crossed::GivenTimes)), None, "{key}");
        }
        let days = |name: &str| matches!(name, "cluster_hours" | "goodput").then_some(0.5);
        let read = ComparedOutcome::of(vec![0], "a", None, true, days);
        assert_eq!((read.crossed, read.measures), (Crossed::GivenTimes, vec![0.5; 2]));
    }

    #[test]
    fn neither_flows_nor_go_back_n_judge_spraying() {
        let grid = |crossed: Crossed, resent: bool| {
            let sprayed = ComparedOutcome { sprays: true, resent, ..outcome([1, 0], "b", crossed, 4.0) };
            [outcome([0, 0], "a", crossed, 5.0), sprayed]
        };
        let why = |crossed, resent| why_not_simulated(POLICY, 0, &grid(crossed, resent));
        assert!(why(Crossed::Flows, false).is_some_and(|why| why.contains("overtake")));
        assert!(why(PACKETS, true).is_some_and(|why| why.contains("go-back-N")));
        assert_eq!(why(PACKETS, false), None, "nothing was overtaken");
        // Receivers that take any order are a judge beside others that are none.
        let any_order = grid(Crossed::Packets, false).map(|o| ComparedOutcome { goes_back_n: false, ..o });
        let both: Vec<ComparedOutcome> = grid(Crossed::Packets, true).into_iter().chain(any_order).collect();
        let unmodelled = Unmodelled::of(&[Some(POLICY)], &both, vec![0; 4]);
        assert!(unmodelled.everywhere(0).is_none() && unmodelled.is_partial(0));
        assert!(unmodelled.why(0, 1).is_some() && unmodelled.why(0, 3).is_none());
        assert!(sprays("spray") && !sprays("ecmp"));
    }

    #[test]
    fn an_axis_may_be_simulated_in_one_way_only() {
        let of_level =
            |way: u32, crossed: Crossed| [0, 1].map(|cc| outcome([way, cc], &format!("{way}{cc}"), crossed, 5.0));
        let outcomes = [of_level(0, PACKETS), of_level(1, Crossed::Flows)].concat();
        let both = Unmodelled::of(&[None, Some("transport.cc")], &outcomes, vec![0, 0, 1, 1]);
        assert_eq!(both.everywhere(1), None);
        assert!(both.is_partial(1) && !both.is_partial(0));
        assert_eq!([0, 1, 2, 3].map(|c| both.shows(1, c)), [true, true, false, false]);
        assert!(both.why(1, 2).is_some_and(|why| why.contains("fair rates")));
        let flows = Unmodelled::of(&[None, Some("transport.cc")], &outcomes[2..], vec![0, 0]);
        assert!(flows.everywhere(1).is_some() && !flows.is_partial(1) && flows.shows(1, 0));
    }
}
