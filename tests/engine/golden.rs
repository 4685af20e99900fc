//! The CPU engine against the golden cases of `../shared`, with the reference's own spread as the measure. Skipped, with a printed line,
//! where they are absent.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use crate::support::golden::{self, Golden};
use crate::support::{Case, engine};
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_host::tables::build_tables::BuildOptions;

/// The reference's own spread of a case (SPREAD.md), in percent.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    mean: f64,
    max: f64,
    /// Median over flows of each flow's spread.
    flow: f64,
}

/// The rows of SPREAD.md whose kind is `kind`, by case.
fn spreads(root: &Path, kind: &str) -> HashMap<String, Spread> {
    let text = std::fs::read_to_string(root.join("SPREAD.md")).unwrap();
    let mut found = HashMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if cells.len() == 10 && cells[2] == kind {
            let percent =
                |i: usize| cells[i].parse().unwrap_or_else(|_| panic!("SPREAD.md: `{}` in `{line}`", cells[i]));
            found.insert(cells[1].to_string(), Spread { mean: percent(4), max: percent(6), flow: percent(7) });
        }
    }
    assert!(found.len() >= 10, "SPREAD.md has {} rows of kind {kind}", found.len());
    found
}

/// What a run of a case came to.
struct Got {
    /// ns, by flow, fractions cut off (there are none with the nanosecond clock).
    fct_ns: Vec<u64>,
    pauses: u64,
    hops: u64,
}

fn run(name: &str, case: &Case) -> Got {
    let built = engine::finish(name, case, BuildOptions::default());
    let fct_ns = engine::fct_ps(&built)
        .iter()
        .map(|f| f.expect("finish() asserts that all flows are complete") / 1000)
        .collect();
    Got { fct_ns, pauses: engine::pauses(&built.tables), hops: engine::packet_hops(&built.tables) }
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

fn largest(values: &[u64]) -> f64 {
    values.iter().copied().max().expect("there are flows") as f64
}

/// Relative error in percent.
fn error(got: f64, want: f64) -> f64 {
    (got / want - 1.0) * 100.0
}

#[test]
fn deterministic_cases_are_within_the_reference_s_spread() {
    let Some(root) = golden::root() else { return println!("no ../shared/golden here: nothing to compare with") };
    let spreads = spreads(&root, "jitter");
    let (mut n, mut with_cc, mut exact) = (0, 0, 0);
    let mut wrong = String::new();
    println!(
        "case                           flows  max |dFCT| ns   mean % (bound)    max % (bound)   pauses      packet-hops"
    );
    for name in golden::names() {
        let g = golden::load(&name);
        if !g.deterministic() {
            continue;
        }
        let got = run(&name, &g.case);
        let spread = spreads.get(&name).copied();
        let bound = |of: fn(&Spread) -> f64| spread.as_ref().map_or(0.0, |s| 2.0 * of(s)).max(1.0);
        let (mean_bound, max_bound) = (bound(|s| s.mean), bound(|s| s.max));
        let mean_error = error(mean(&got.fct_ns), mean(&g.fct_ns));
        let max_error = error(largest(&got.fct_ns), largest(&g.fct_ns));
        let pairs = || got.fct_ns.iter().copied().zip(g.fct_ns.iter().copied());
        let worst = pairs().map(|(a, b)| a.abs_diff(b)).max().expect("there are flows");
        println!(
            "{name:30} {:5} {worst:14} {mean_error:+9.4} ({mean_bound:4.2}) {max_error:+9.4} ({max_bound:4.2}) {:5}/{:<5} {:>9}/{}",
            got.fct_ns.len(),
            got.pauses,
            g.pauses,
            got.hops,
            g.packet_hops.unwrap_or(got.hops)
        );
        n += 1;
        with_cc += u32::from(g.has_cc());
        exact += u32::from(g.has_cc() && worst == 0);
        let mut must = |holds: bool, what: String| {
            if !holds {
                let _ = writeln!(wrong, "{name}: {what}");
            }
        };
        must(got.fct_ns.len() == g.fct_ns.len(), format!("{} flows of {}", got.fct_ns.len(), g.fct_ns.len()));
        must(mean_error.abs() <= mean_bound, format!("mean FCT off by {mean_error:.3} %, allowed {mean_bound:.2} %"));
        must(max_error.abs() <= max_bound, format!("maximum FCT off by {max_error:.3} %, allowed {max_bound:.2} %"));
        must(
            got.pauses.abs_diff(g.pauses) as f64 <= (g.pauses as f64 * 0.05).max(2.0),
            format!("{} pause frames, the reference has {}", got.pauses, g.pauses),
        );
        let hops = g.packet_hops.unwrap_or(got.hops);
        must(got.hops == hops, format!("{} packet-hops, the reference has {hops}", got.hops));
        if spread.is_some_and(|s| s.flow < 0.1) {
            let flow_error = pairs().map(|(a, b)| error(a as f64, b as f64).abs()).fold(0.0, f64::max);
            must(flow_error <= 0.2, format!("a flow is off by {flow_error:.3} %, allowed 0.2 %"));
        }
    }
    println!("{n} deterministic cases; {exact} of {with_cc} with congestion control are exact to 0 ns on every flow");
    assert!(n >= 50, "golden cases are missing: {n}");
    assert!(exact * 10 >= with_cc * 9, "{exact} of {with_cc} are exact; at least nine of ten must be");
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Mean and squared standard error of the mean.
fn estimate(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance / n)
}

#[test]
fn random_marking_agrees_over_ten_seeds() {
    let Some(root) = golden::root() else { return println!("no ../shared/golden here: nothing to compare with") };
    let spreads = spreads(&root, "seeds");
    let mut n = 0;
    let mut wrong = String::new();
    println!(
        "case                           reference us   ours us    off %  (bound), of the mean FCT and of the maximum FCT over ten seeds"
    );
    for name in golden::names() {
        let g: Golden = golden::load(&name);
        if g.deterministic() || g.fct_seeds.is_empty() {
            continue;
        }
        assert!(spreads.contains_key(&name), "{name} has fct_seeds.txt but no row in SPREAD.md");
        n += 1;
        let ours: Vec<Vec<u64>> = (1..=10)
            .map(|seed| {
                let mut case = g.case.clone();
                case.transport.seed = seed;
                run(&name, &case).fct_ns
            })
            .collect();
        for (what, of) in [("mean", mean as fn(&[u64]) -> f64), ("max", largest)] {
            let over = |repeats: &[Vec<u64>]| estimate(&repeats.iter().map(|r| of(r)).collect::<Vec<f64>>());
            let ((want, want_se2), (got, got_se2)) = (over(&g.fct_seeds), over(&ours));
            let off = error(got, want);
            let bound = (3.0 * (want_se2 + got_se2).sqrt() / want * 100.0).max(2.0);
            println!("{name:25} {what:4} {:12.2} {:9.2} {off:+8.3}  ({bound:.2})", want / 1000.0, got / 1000.0);
            if off.abs() > bound {
                let _ = writeln!(wrong, "{name}: {what} FCT over ten seeds off by {off:.3} %, allowed {bound:.2} %");
            }
        }
    }
    assert!(n >= 10, "golden cases with fct_seeds.txt are missing: {n}");
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn sweep_files_lead_to_the_same_tables_as_the_cases_themselves() {
    if golden::root().is_none() {
        return println!("no ../shared/golden here: nothing to compare with");
    }
    let cases: Vec<Golden> = golden::names().iter().map(|n| golden::load(n)).filter(Golden::deterministic).collect();
    let axis = |key: &str, file: &str| {
        let files: Vec<String> =
            cases.iter().map(|g| format!("{:?}", golden::folder(&g.name).join(file).display().to_string())).collect();
        format!("\"{key}\" = [{}]\n", files.join(", "))
    };
    let text = format!(
        "name = \"golden\"\n[base]\ntopology = {{ kind = \"file\", format = \"ns3\" }}\nrouting.policy = \"file\"\n\
         workload = {{ kind = \"flows\", format = \"ns3\", start_unit = \"ns\" }}\ntransport = {{ clock = \"ns\", format = \"ns3\" }}\n\
         fidelity.fast_forward = \"off\"\n[sweep]\nmethod = \"zip\"\n[axes]\n{}{}{}{}",
        axis("topology.path", "topology.txt"),
        axis("workload.path", "flows.txt"),
        axis("routing.path", "routes.txt"),
        axis("transport.config", "config.txt")
    );
    let sweep =
        sweep::parse(&text, Path::new("golden.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(sweep.experiments.len(), cases.len());
    for (g, experiment) in cases.iter().zip(&sweep.experiments) {
        let prepared = hyperfold_host::prepare(&sweep.config(experiment).unwrap(), experiment.exp_id as u32)
            .unwrap_or_else(|e| panic!("{}: {e}", g.name));
        let mut built = prepared.built;
        engine::finish_built(&g.name, &mut built);
        let direct = engine::finish(&g.name, &g.case, BuildOptions::default());
        assert_eq!(engine::fct_ps(&built), engine::fct_ps(&direct), "{}", g.name);
        assert_eq!(engine::pauses(&built.tables), engine::pauses(&direct.tables), "{}", g.name);
    }
    println!("{} cases by a sweep file are as by hand", cases.len());
}
