//! Decides which keys change the work that experiments do ("ask another question"), and which only change how it is done.
//!
//! Layer: compare. Experiments that do different work are never ranked against each other. It reads sweeps and judges no results.

use std::collections::{BTreeMap, BTreeSet};

use super::unmodelled::RECOVERY;
use hyperfold_results::NotCompared;

/// Keys of `[base.workload]` that say what work is done, not how. Experiments that differ in them are not ranked against each other.
const QUESTIONS: &[&str] = &[
    "kind",
    "path",
    "pattern",
    "bytes",
    "fan_in",
    "receivers",
    "stride",
    "load",
    "cdf",
    "duration_ns",
    "every_us",
    "transfer",
    "op",
    "ranks",
    "model",
    "seq",
    "global_batch",
    "bytes_scale",
    "iterations",
    "seed",
    "start_unit",
    "expert_skew",
    "compute_jitter",
    "straggler_ranks",
    "straggler_slowdown",
    "compute_scale",
    "gemm_scale",
    "attention_scale",
    "memory_bound_scale",
    "requests",
    "request_count",
    "request_rate",
    "burstiness",
    "lengths",
    "prompt_tokens",
    "output_tokens",
    "length_spread",
    "ttft_bound_ms",
    "tpot_bound_ms",
];

/// Further keys of `[[job]]` tables that say what work is done: when a job arrives, and how many jobs like it there are.
const OF_A_JOB: &[&str] = &["start_us", "arrival_us", "background", "weight"];

/// Keys of a cluster in job mode that say which jobs arrive, what fails, and how much jobs are assumed to lose by their placement.
const OF_A_CLUSTER: &[&str] = &[
    "jobs.source",
    "jobs.path",
    "jobs.count",
    "jobs.load",
    "jobs.min_gpus",
    "jobs.max_gpus",
    "jobs.min_hours",
    "jobs.max_hours",
    "jobs.users",
    "jobs.high_share",
    "jobs.comm_share",
    "jobs.compute_s",
    "jobs.comm_mib",
    "jobs.simulated_hours",
    "jobs.seed",
    "scheduler.slowdown",
    "checkpoint.writes_share",
    "failures.model",
    "failures.path",
    "failures.weibull_shape",
    "failures.gpu_mtbf_h",
    "failures.host_mtbf_h",
    "failures.link_mtbf_h",
    "failures.switch_mtbf_h",
    "failures.straggler_mtbf_h",
    "failures.straggler_h",
    "failures.straggler_slowdown",
    "failures.drain_risk",
    "failures.seed",
];

/// Keys that say what a network goes through.
const OF_A_NETWORK: &[&str] = &["topology.outages"];

/// Prefixes of keys that choose how to simulate, what to write or which costs to assume, not what to build.
const OF_THE_MODEL: &[&str] = &["fidelity.", "scheduler.iterations", "limits.", "output.", "cost."];

/// Keys of `[base.workload]` that choose how to simulate.
const WORKLOAD_MODEL: &[&str] = &[
    "analytic",
    "analytic_cost",
    "collective_overhead",
    "flow_weights",
    "kernels",
    "latency_scale",
    "leave_out_run",
    "memory_check",
    "memory_fragmentation",
    "memory_margin",
    "memory_reserve_gib",
    "rendezvous_ns",
    "slowdown",
    "slowdown_scale",
    "warmup",
];

/// Keys of other sections that choose how to simulate.
const OTHER_MODEL: &[&str] = &["cluster.nvlink", "transport.clock", "transport.seed"];

/// The key of `[base.workload]` in a dotted name. The name may be that of a job.
fn workload_leaf(key: &str) -> Option<&str> {
    let of_job = key.strip_prefix("job.").and_then(|rest| rest.split_once('.')).map(|(_, leaf)| leaf);
    key.strip_prefix("workload.").or(of_job)
}

/// The work of a study's experiments, as far as it decides which other keys change the work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Questions {
    kinds: BTreeSet<String>,
    patterns: BTreeSet<String>,
    /// Values of `transport.loss_recovery` that sweeps fix.
    recoveries: BTreeSet<String>,
    /// Axes whose values are not compared, with reasons.
    not_compared: BTreeMap<String, String>,
}

/// The congestion controls that come with receivers that take packets in any order.
const ULTRA_ETHERNET: [&str; 2] = ["nscc", "rccc"];

impl Questions {
    /// Takes a sweep into account. `varied` returns the values of an axis, and an empty list for a key that is no axis.
    pub fn add(&mut self, sweep: Option<&toml::Table>, varied: impl Fn(&str) -> Vec<String>) {
        let base = |section: &str, leaf: &str| Some(sweep?.get("base")?.get(section)?.get(leaf)?.as_str()?.to_string());
        let values = |leaf: &str| varied(&format!("workload.{leaf}")).into_iter().chain(base("workload", leaf));
        self.recoveries.extend(base("transport", "loss_recovery"));
        let of_cc = base("transport", "cc").filter(|cc| ULTRA_ETHERNET.contains(&cc.as_str()));
        self.recoveries.extend(of_cc.map(|_| "uec".to_string()));
        self.kinds.extend(values("kind"));
        self.patterns.extend(values("pattern"));
    }

    /// The value of `transport.loss_recovery` of an outcome, where its axes tell: by that key, or by a congestion control that brings its own.
    pub fn recovery_of<'v>(axis: impl Fn(&str) -> Option<&'v str>) -> Option<&'v str> {
        axis(RECOVERY).or_else(|| axis("transport.cc").filter(|cc| ULTRA_ETHERNET.contains(cc)).map(|_| "uec"))
    }

    /// Whether receivers take packets that were overtaken for lost. `of_axis` is the value of `transport.loss_recovery` where it is an axis.
    pub fn goes_back_n(&self, of_axis: Option<&str>) -> bool {
        let takes_any_order = |value: &str| matches!(value, "selective" | "uec");
        match of_axis {
            Some(value) => !takes_any_order(value),
            None => self.recoveries.is_empty() || self.recoveries.iter().any(|value| !takes_any_order(value)),
        }
    }

    /// Takes axes into account whose values a run says are not compared.
    pub fn add_not_compared(&mut self, axes: &[NotCompared]) {
        self.not_compared.extend(axes.iter().map(|axis| (axis.key.clone(), axis.why.clone())));
    }

    /// Why values of an axis are not compared although they are designs. `None`: they are, or they are no designs.
    pub fn why_not_compared(&self, key: &str) -> Option<&str> {
        self.not_compared.get(key).map(String::as_str)
    }

    /// Whether experiments that differ in this key have their times from different models: it chooses the model, or its values are not compared.
    pub fn is_way(&self, key: &str) -> bool {
        Questions::is_of_the_model(key) || self.not_compared.contains_key(key)
    }

    /// Whether a key chooses how to simulate and not what to build: the level of detail, what replaces packets, or the assumed prices.
    pub fn is_of_the_model(key: &str) -> bool {
        OF_THE_MODEL.iter().any(|section| key.starts_with(section))
            || OTHER_MODEL.contains(&key)
            || workload_leaf(key).is_some_and(|leaf| WORKLOAD_MODEL.contains(&leaf))
    }

    /// Whether experiments that differ in this key do different work. The batch of a model is the same on any number of GPUs, but traffic, collectives and
    /// programs grow with them. A load is a share of the links' rate, so faster links carry more of it.
    pub fn asks(&self, key: &str) -> bool {
        match key {
            // How an experiment is simulated is not a property of a design: the best design by packets is the best only among packet simulations.
            _ if self.is_way(key) => true,
            "cluster.gpus" => self.kinds.iter().any(|k| k != "model"),
            _ if OF_A_CLUSTER.contains(&key) || OF_A_NETWORK.contains(&key) => true,
            "topology.link_gbps" => self.kinds.contains("traffic") && self.patterns.contains("poisson"),
            _ => workload_leaf(key).is_some_and(|leaf| {
                QUESTIONS.contains(&leaf) || (!key.starts_with("workload.") && OF_A_JOB.contains(&leaf))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_config::spec;

    #[test]
    fn questions_are_known_keys() {
        for q in QUESTIONS {
            assert!(spec::find(&format!("workload.{q}")).is_some(), "{q}");
        }
        for q in OF_A_JOB {
            assert!(spec::find(&format!("job.{q}")).is_some(), "{q}");
        }
        for q in OF_A_CLUSTER.iter().chain(OF_A_NETWORK) {
            assert!(spec::find(q).is_some() && Questions::default().asks(q), "{q}");
        }
        assert!(!Questions::default().asks("failures.hot_spares"));
    }

    #[test]
    fn keys_that_choose_how_to_simulate_are_known() {
        for leaf in WORKLOAD_MODEL {
            assert!(spec::find(&format!("workload.{leaf}")).is_some(), "{leaf}");
            assert!(Questions::default().asks(&format!("job.a.{leaf}")), "{leaf}");
        }
        assert!(OTHER_MODEL.iter().all(|key| spec::find(key).is_some() && Questions::default().asks(key)));
        assert!(Questions::default().asks("cost.gpu_usd") && !Questions::default().asks("workload.tp"));
    }

    /// Every key of `[fidelity]` and all `scheduler.iterations...`: the simulator's accuracy is nothing that a user could deploy.
    #[test]
    fn accuracy_of_the_simulator_is_no_design() {
        let asked = Questions::default();
        let keys: Vec<&str> = spec::KEYS
            .iter()
            .map(|k| k.name)
            .filter(|p| p.starts_with("fidelity.") || p.contains(".iterations_"))
            .collect();
        assert!(keys.len() > 5, "{keys:?}");
        assert!(keys.iter().all(|k| asked.asks(k)));
        assert!(!asked.asks("scheduler.policy") && !asked.asks("workload.max_sequences"));
    }

    #[test]
    fn values_that_a_run_sets_apart_are_ways_and_no_designs() {
        let mut asked = Questions::default();
        assert!(!asked.asks("cluster.gpu") && !asked.is_way("cluster.gpu"));
        asked.add_not_compared(&[NotCompared { key: "cluster.gpu".into(), why: "links of another".into() }]);
        assert!(asked.asks("cluster.gpu") && asked.is_way("cluster.gpu") && !asked.asks("workload.tp"));
        assert_eq!(asked.why_not_compared("cluster.gpu"), Some("links of another"));
        assert!(asked.is_way("fidelity.mode") && asked.why_not_compared("fidelity.mode").is_none());
    }

    #[test]
    fn jobs_ask_what_workloads_ask() {
        let asked = Questions::default();
        assert!(asked.asks("job.a.bytes") && asked.asks("job.a-1.op") && asked.asks("job.a.weight"));
        assert!(!asked.asks("job.a.placement") && !asked.asks("job.a.algorithm") && !asked.asks("job.bytes"));
    }

    #[test]
    fn what_the_workload_grows_with_is_asked() {
        let asked_of = |base: &str, axis: &[&str]| {
            let sweep = format!("[base.workload]\n{base}").parse().unwrap();
            let mut q = Questions::default();
            q.add(Some(&sweep), |key| {
                if key == "workload.pattern" { axis.iter().map(|p| p.to_string()).collect() } else { Vec::new() }
            });
            ["cluster.gpus", "topology.link_gbps", "workload.bytes", "transport.cc"].map(|key| q.asks(key))
        };
        assert_eq!(asked_of("kind = \"model\"", &[]), [false, false, true, false]);
        assert_eq!(asked_of("kind = \"traffic\"\npattern = \"poisson\"", &[]), [true, true, true, false]);
        assert_eq!(asked_of("kind = \"traffic\"", &["ring", "incast"]), [true, false, true, false]);
        assert_eq!(asked_of("kind = \"traffic\"", &["ring", "poisson"]), [true, true, true, false]);
        assert_eq!(asked_of("kind = \"collective\"", &[]), [true, false, true, false]);
    }
}
