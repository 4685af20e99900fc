//! Finds axes that move collectives between two cost models: measured times inside servers, and a network where software costs nothing.
//!
//! Layer: session. It reads configurations and simulates nothing.

use std::collections::{BTreeMap, BTreeSet};

use hyperfold_config::spec::{
    Analytic, Config, PoolLayout, ProgramSpec, Source, TopologyKind, Training, WorkloadSection,
};
use hyperfold_config::sweep::{Experiment, Sweep};
use hyperfold_results::NotCompared;

use crate::experiment::config;

/// Keys that decide which ranks of a group are in one server.
const MOVERS: [&str; 9] = [
    GPUS,
    "cluster.gpus_per_server",
    SERVER,
    "workload.tp",
    "workload.cp",
    "workload.dp",
    "workload.ep",
    "workload.pp",
    "workload.prefill_tp",
];
const GPUS: &str = "cluster.gpus";
const SERVER: &str = "cluster.server";
/// Maximum number of experiments that are looked at. Our choice: they take about a tenth of a second.
const MAX_EXAMINED: usize = 4096;

/// Groups of ranks, by name and size.
type Groups = BTreeSet<(&'static str, u64)>;

/// How the collectives of an experiment get their times.
struct Costs {
    /// Groups whose times include what software costs.
    calibrated: Groups,
    /// Whether other groups use the network, where software costs nothing.
    bare: bool,
    /// Whether every experiment does the same work on any number of GPUs.
    is_training: bool,
}

impl Costs {
    /// `None`: the experiment has no program, or nothing says which GPUs share a server.
    fn of(config: &Config) -> Option<Costs> {
        let WorkloadSection::Program(program) = &config.workload else { return None };
        if config.jobs.is_some() || matches!(config.topology.kind, TopologyKind::File { .. }) {
            return None;
        }
        let cluster = &config.cluster;
        let by_links = cluster.nvlink_bps > 0 && !cluster.nvlink_packets;
        let is_training = matches!(program.source, Source::Model(_));
        let mut costs = Costs { calibrated: Groups::new(), bare: false, is_training };
        for group in groups(config, program).into_iter().filter(|group| group.ranks > 1) {
            let inside = by_links && group.span <= u64::from(cluster.gpus_per_server);
            if inside || group.analytic || program.communication.measured_overhead {
                costs.calibrated.insert((group.name, group.ranks));
            } else {
                costs.bare = true;
            }
        }
        Some(costs)
    }
}

/// A kind of groups in which ranks have collectives.
struct Group {
    name: &'static str,
    ranks: u64,
    /// Number of consecutive GPUs from its first rank to its last.
    span: u64,
    /// Whether closed forms give its times wherever it is.
    analytic: bool,
}

fn groups(config: &Config, program: &ProgramSpec) -> Vec<Group> {
    let analytic = &program.communication.analytic;
    match &program.source {
        Source::Model(training) => of_training(training, analytic),
        Source::Inference(serving) => {
            let prefill = serving.prefill.iter().flat_map(|pool| of_pool("prefill", pool, analytic));
            of_pool("decode", &serving.decode, analytic).into_iter().chain(prefill).collect()
        }
        Source::Collective { ranks, .. } => {
            let ranks = u64::from(ranks.or(config.cluster.gpus).unwrap_or(0));
            vec![Group { name: "all", ranks, span: ranks, analytic: analytic.other }]
        }
        Source::File { .. } => Vec::new(),
    }
}

fn of_training(t: &Training, analytic: &Analytic) -> Vec<Group> {
    let [tp, cp, dp, ep] = [t.tp, t.cp, t.dp, t.ep].map(u64::from);
    let of_experts = if t.etp == 0 { tp } else { u64::from(t.etp) };
    vec![
        Group { name: "tp", ranks: tp, span: tp, analytic: analytic.tp },
        Group { name: "cp", ranks: cp, span: tp * cp, analytic: analytic.cp },
        Group { name: "dp", ranks: dp, span: tp * cp * dp, analytic: analytic.dp },
        Group { name: "ep", ranks: ep, span: of_experts * ep, analytic: analytic.ep },
    ]
}

fn of_pool(name: &'static str, pool: &PoolLayout, analytic: &Analytic) -> Vec<Group> {
    let [tp, pp, ep] = [pool.tp, pool.pp, pool.ep].map(u64::from);
    vec![
        Group { name, ranks: tp, span: tp, analytic: analytic.tp },
        Group { name: "experts", ranks: ep, span: tp * pp * ep, analytic: analytic.ep },
    ]
}

/// Groups with calibrated times, by the value of an axis.
type GroupsByValue = BTreeMap<String, BTreeSet<Groups>>;

/// Experiments that are looked at: all that can run, or some of very many.
pub(crate) fn examined(sweep: &Sweep) -> impl Iterator<Item = &Experiment> {
    let able: Vec<_> = sweep.experiments.iter().filter(|e| sweep.cannot_run(e).is_none()).collect();
    // An odd step meets all values of axes with two, four or eight of them.
    let step = if able.len() > MAX_EXAMINED { able.len().div_ceil(MAX_EXAMINED) | 1 } else { 1 };
    able.into_iter().step_by(step)
}

/// The reason why values of these axes are not compared, with the key that makes them comparable.
const WHY: &str = "collectives inside servers take measured times, with what software costs; over the network software costs nothing \
                   (workload.collective_overhead = \"none\"). workload.collective_overhead = \"measured\" makes them comparable";

/// Returns a warning about axes that [`not_compared`] found.
pub(crate) fn warning(axes: &[NotCompared]) -> Option<String> {
    let keys: Vec<&str> = axes.iter().map(|axis| axis.key.as_str()).collect();
    (!keys.is_empty()).then(|| format!("this sweep is no judge of {}: {WHY}", keys.join(", ")))
}

/// Returns axes whose values would be compared across two cost models.
pub(crate) fn not_compared(sweep: &Sweep) -> Vec<NotCompared> {
    let is_mover = |key: &String| MOVERS.contains(&key.as_str());
    if !sweep.axes.iter().any(is_mover) {
        return Vec::new();
    }
    // By the values of all other axes, by axis and by its value: which groups have calibrated times.
    let mut found: BTreeMap<Vec<String>, BTreeMap<usize, GroupsByValue>> = BTreeMap::new();
    let (mut calibrated, mut bare) = (false, false);
    let same_overhead = !sweep.axes.iter().any(|key| key == SERVER || key == "workload.collective_overhead");
    for experiment in examined(sweep) {
        let config = config(sweep, experiment);
        let Some(costs) = Costs::of(&config) else { continue };
        if same_overhead && matches!(&config.workload, WorkloadSection::Program(p) if p.communication.measured_overhead)
        {
            return Vec::new();
        }
        calibrated |= !costs.calibrated.is_empty();
        bare |= costs.bare;
        let values: Vec<String> = sweep.axis_values(experiment).iter().map(ToString::to_string).collect();
        let others = values.iter().zip(&sweep.axes).filter(|(_, key)| !is_mover(key)).map(|(v, _)| v.clone()).collect();
        let by_axis = found.entry(others).or_default();
        for (axis, key) in sweep.axes.iter().enumerate().filter(|(_, key)| is_mover(key)) {
            // Other work grows with the GPUs, so that numbers of them are not compared.
            if key != GPUS || costs.is_training {
                let by_value = by_axis.entry(axis).or_default();
                by_value.entry(values[axis].clone()).or_default().insert(costs.calibrated.clone());
            }
        }
    }
    let differ = |by_value: &BTreeMap<String, BTreeSet<Groups>>| by_value.values().collect::<BTreeSet<_>>().len() > 1;
    let moves = |axis: usize| found.values().any(|by_axis| by_axis.get(&axis).is_some_and(differ));
    if !(calibrated && bare) {
        return Vec::new();
    }
    let moved = (0..sweep.axes.len()).filter(|&axis| moves(axis));
    moved.map(|axis| NotCompared { key: sweep.axes[axis].clone(), why: WHY.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use hyperfold_config::sweep::{self, SetOverrides};

    fn told(cluster: &str, workload: &str, axes: &str) -> Option<String> {
        let text = format!(
            "name = \"two\"\n[base]\ncluster = {{ gpus = 16, {cluster} }}\nworkload = {{ {workload} }}\n[axes]\n{axes}\n"
        );
        let sweep =
            sweep::parse(&text, Path::new("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"));
        warning(&not_compared(&sweep))
    }

    const COLLECTIVE: &str = "kind = \"collective\", op = \"all-reduce\"";
    const MODEL: &str = "kind = \"model\", model = \"gpt2-medium\", microbatch = 1, global_batch = 16";
    const PER_SERVER: &str = "\"cluster.gpus_per_server\" = [8, 16]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\"]";

    #[test]
    fn an_axis_between_two_cost_models_is_no_judge() {
        for (workload, axes, named) in [
            (COLLECTIVE.to_string(), PER_SERVER, "no judge of cluster.gpus_per_server: "),
            (format!("{MODEL}, tp = 8"), "\"cluster.gpus_per_server\" = [2, 8, 16]", "cluster.gpus_per_server: "),
            (MODEL.to_string(), "\"workload.tp\" = [1, 8]", "no judge of workload.tp: "),
        ] {
            let text = told("nics_per_server = 1", &workload, axes).unwrap_or_else(|| panic!("{workload} {axes}"));
            assert!(text.contains(named), "{text}");
            assert!(text.contains("workload.collective_overhead = \"measured\" makes them comparable"), "{text}");
        }
    }

    #[test]
    fn one_cost_model_is_comparable() {
        let measured = format!("{COLLECTIVE}, collective_overhead = \"measured\"");
        let closed = format!("{MODEL}, analytic = \"all\"");
        for (cluster, workload, axes) in [
            ("nics_per_server = 1", measured.as_str(), PER_SERVER),
            ("nics_per_server = 1, nvlink = \"packet\"", COLLECTIVE, PER_SERVER),
            ("gpus_per_server = 8", closed.as_str(), "\"workload.tp\" = [1, 8]"),
            ("server = \"dgx-h100\"", MODEL, "\"workload.tp\" = [1, 8]"),
            ("gpus_per_server = 8", COLLECTIVE, "\"transport.cc\" = [\"hpcc\", \"dcqcn\"]"),
            ("gpus_per_server = 8", COLLECTIVE, "\"workload.bytes\" = [1000000, 2000000]"),
        ] {
            assert_eq!(told(cluster, workload, axes), None, "{cluster} {workload} {axes}");
        }
    }
}
