//! Fair rates on the device against those of the CPU, to the bit: on random networks while flows come and go, and over whole sweeps.

use std::fs;

use crate::support::gpu;
use crate::support::program::{Folder, command};
use crate::support::random::Rng;
use hyperfold_engine::Engine;
use hyperfold_engine::fair_rates::{FlowsChange, RateChange};
use hyperfold_flow::maxmin::{LinkShare, MaxMin, WHOLE};

/// What a random network is like.
#[derive(Clone, Copy, Debug)]
struct Shape {
    links: u64,
    carriers: u64,
    /// Links that a carrier crosses at most, and how far apart they are.
    max_links: u64,
    spread: u64,
    /// Per cent of networks: flows are sprayed; acknowledgements take their part.
    sprayed: u64,
    acks: u64,
    /// Shift of what rates may be off by.
    tolerance: Option<u32>,
    /// Flows of a carrier, at most.
    flows: u64,
    /// Carriers that change at a time, at most.
    changes: u64,
}

/// Mostly connected, so that a change often reaches all.
const SMALL: Shape = Shape {
    links: 24,
    carriers: 59,
    max_links: 5,
    spread: 24,
    sprayed: 30,
    acks: 50,
    tolerance: None,
    flows: 3,
    changes: 3,
};
/// Long chains of links, where a change reaches some.
const LONG: Shape = Shape {
    links: 600,
    carriers: 1500,
    max_links: 4,
    spread: 6,
    sprayed: 30,
    acks: 50,
    tolerance: None,
    flows: 4,
    changes: 5,
};
const CASES: [(u64, Shape); 4] = [
    (300, SMALL),
    (24, LONG),
    (16, Shape { tolerance: Some(14), ..LONG }),
    // Links of one speed and one flow a carrier: all are full at once.
    (8, Shape { flows: 1, max_links: 2, sprayed: 0, ..LONG }),
];
const STEPS: usize = 8;

fn network(rng: &mut Rng, shape: &Shape) -> MaxMin {
    let even = shape.flows == 1;
    let (sprayed, with_acks) = (rng.chance(shape.sprayed), rng.chance(shape.acks));
    let gbps = [10u64, 25, 100, 100, 100, 400];
    let capacity: Vec<u64> =
        (0..shape.links).map(|_| if even { 100 } else { rng.pick(&gbps) } * 1_000_000_000).collect();
    let mut rates = MaxMin::new(&capacity, sprayed);
    if let Some(shift) = shape.tolerance {
        rates.tolerate(shift);
    }
    for _ in 0..shape.carriers {
        let base = rng.range(0, shape.links - 1);
        let near = |rng: &mut Rng| ((base + rng.range(0, shape.spread - 1)) % shape.links) as u32;
        let mut links: Vec<u32> = (0..rng.range(1, shape.max_links)).map(|_| near(rng)).collect();
        links.sort_unstable();
        links.dedup();
        // Parts as sprayed flows have them, which do not divide evenly.
        let share = |rng: &mut Rng| if sprayed { WHOLE / rng.range(1, 7) as u32 } else { WHOLE };
        let data: Vec<LinkShare> = links.iter().map(|&link| LinkShare { link, share: share(rng) }).collect();
        let back = links.iter().map(|link| link ^ 1).filter(|link| with_acks && !links.contains(link));
        let acks: Vec<LinkShare> = back.map(|link| LinkShare { link, share: WHOLE / 17 }).collect();
        rates.add(&data, &acks);
    }
    rates
}

/// Solves all networks on both, step after step, and compares every rate after each.
#[test]
fn rates_on_the_device_are_those_of_the_cpu() {
    let mut rng = Rng::new(31);
    let shapes: Vec<Shape> = CASES.iter().flat_map(|&(n, shape)| std::iter::repeat_n(shape, n as usize)).collect();
    let mut networks: Vec<MaxMin> = shapes.iter().map(|shape| network(&mut rng, shape)).collect();
    let mut engine = gpu::engine();
    let solver = engine.rates().expect("a device solves rates");
    let rows: Vec<_> = networks.iter().map(MaxMin::network).collect();
    let (mut on_device, numbers) = solver.load(&rows).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(numbers, (0..networks.len() as u32).map(Some).collect::<Vec<_>>(), "all have room");
    let mut told: Vec<Vec<u64>> = rows.iter().map(|n| vec![0; n.carriers.len()]).collect();
    let mut n_told = 0;
    for step in 0..STEPS {
        let mut changes: Vec<Vec<FlowsChange>> = Vec::new();
        for (rates, shape) in networks.iter_mut().zip(&shapes) {
            // Most come at once; then a few at a time come and go, so that what is solved anew is a part.
            let all: Vec<u32> = match step {
                0 => (0..shape.carriers as u32).filter(|_| rng.chance(60)).collect(),
                _ => (0..rng.range(1, shape.changes)).map(|_| rng.range(0, shape.carriers - 1) as u32).collect(),
            };
            let mut of_network: Vec<FlowsChange> = Vec::new();
            for carrier in all {
                let flows = if rng.chance(40) && step > 0 { 0 } else { rng.range(1, shape.flows) as u32 };
                if rates.flows(carrier) != flows && of_network.iter().all(|c| c.carrier != carrier) {
                    of_network.push(FlowsChange { carrier, flows });
                }
            }
            of_network.iter().for_each(|c| rates.set_flows(c.carrier, c.flows));
            rates.solve(&mut |_| {});
            changes.push(of_network);
        }
        // Networks without changes take no part.
        let asked: Vec<(u32, &[FlowsChange])> =
            (0..).zip(&changes).filter(|(_, c)| !c.is_empty()).map(|(n, c)| (n, &c[..])).collect();
        let answer = on_device.solve(&asked).unwrap_or_else(|e| panic!("{e}"));
        n_told += answer.len();
        for (told, changes) in told.iter_mut().zip(&changes) {
            changes.iter().filter(|c| c.flows == 0).for_each(|c| told[c.carrier as usize] = 0);
        }
        for RateChange { network, carrier, rate } in answer {
            let before = std::mem::replace(&mut told[network as usize][carrier as usize], rate);
            assert_ne!(before, rate, "network {network}, carrier {carrier}: told again");
        }
        for (n, (told, rates)) in told.iter().zip(&networks).enumerate() {
            for (carrier, &rate) in told.iter().enumerate() {
                let want = rates.rate(carrier as u32);
                assert_eq!(rate, want, "step {step}, network {n} ({:?}), carrier {carrier}", shapes[n]);
            }
        }
    }
    println!("{} networks, {STEPS} steps: {n_told} rates, all the same", networks.len());
}

/// Kinds of flows that differ in what rates are asked for, and two that have too little to do with each other.
const SWEEP: &str = r#"
name = "flow-rates"

[base]
cluster = { gpus = 16, gpus_per_server = 4 }
topology = { kind = "rail-optimized", link_gbps = 100, uplink_gbps = 100, oversubscription = 2.0 }
workload = { kind = "traffic", pattern = "all-to-all", bytes = 100000 }
fidelity.mode = "flow"
output = { flows = true, links = true }

[sweep]
method = "list"

[[experiment]]
[[experiment]]
routing.policy = "spray"
[[experiment]]
topology = { kind = "fat-tree", link_gbps = 100 }
[[experiment]]
workload = { kind = "collective", op = "all-reduce", bytes = 4000000, algorithm = "tree" }
[[experiment]]
workload = { kind = "collective", op = "all-to-all", bytes = 4000000 }
[[experiment]]
workload = { kind = "traffic", pattern = "incast", fan_in = 7, bytes = 100000 }
[[experiment]]
workload = { kind = "collective", op = "all-to-all", bytes = 4000000, algorithm = "direct" }
fidelity = { mode = "flow", join = "ranks" }
[[experiment]]
workload = { kind = "collective", op = "all-to-all", bytes = 4000000, flow_weights = "other:3" }
"#;

#[test]
fn sweeps_at_flow_level_have_the_bytes_of_the_cpu() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let run = |args: &[&str]| {
        let ran = folder.run(&[&["run", "s.toml"], args].concat());
        assert_eq!(ran.code, 0, "no adapter? run scripts/setup-vulkan.sh\n{}", ran.stderr);
        ran
    };
    run(&["--out", "cpu", "--engine", "cpu"]);
    let ran = run(&["--out", "gpu", "--engine", "gpu"]);
    for file in ["results.csv", "results.parquet", "flows.csv", "links.csv"] {
        assert!(folder.bytes(&format!("cpu/{file}")) == folder.bytes(&format!("gpu/{file}")), "{file} differs");
    }
    assert!(ran.stderr.contains("it solves rates at flow level, too"), "{}", ran.stderr);
    let manifest: serde_json::Value = serde_json::from_slice(&folder.bytes("gpu/manifest.json")).unwrap();
    assert_eq!(manifest["engine"], "gpu");
    assert!(manifest["engine_reason"].as_str().is_some_and(|r| r.contains("rates at flow level")), "{manifest}");
}

/// Says in the log what was solved where; `auto` never takes a software adapter.
#[test]
fn the_log_says_where_rates_were_solved() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("s.toml"), SWEEP).unwrap();
    let run = |engine: &str| {
        let args = ["run", "s.toml", "--engine", engine, "--out", engine, "--quiet"];
        let ran = command(root.path(), &args).env("RUST_LOG", "hyperfold=debug").output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    let log = run("gpu");
    assert!(log.contains("flow level: rates of 8 of 8 experiments are solved on the device"), "{log}");
    assert!(log.contains("kernel flow_fill: compiled") && log.contains("fair rates: "), "{log}");
    assert!(!run("auto").contains("on the device"));
}

/// Each flow is kept back by what its neighbour leaves of their link, so a change runs along the chain, a flow a round, until all that are connected are filled.
#[test]
fn changes_that_run_along_a_chain_are_followed_as_on_the_cpu() {
    const LINKS: u64 = 400;
    let gbps = |k: u64| if k == 0 { 10 } else { 2 * k + 19 };
    let capacity: Vec<u64> = (0..LINKS).map(|k| gbps(k) * 1_000_000_000).collect();
    let mut rates = MaxMin::new(&capacity, false);
    for k in 0..LINKS as u32 - 1 {
        rates.add(&[k, k + 1].map(|link| LinkShare { link, share: WHOLE }), &[]);
    }
    let mut engine = gpu::engine();
    let solver = engine.rates().expect("a device solves rates");
    let (mut on_device, _) = solver.load(&[rates.network()]).unwrap_or_else(|e| panic!("{e}"));
    let mut told = vec![0; LINKS as usize - 1];
    let all: Vec<FlowsChange> = (0..LINKS as u32 - 1).map(|carrier| FlowsChange { carrier, flows: 1 }).collect();
    let one = |carrier, flows| vec![FlowsChange { carrier, flows }];
    for (step, changes) in [all, one(0, 0), one(0, 2), one(200, 3), one(0, 0)].into_iter().enumerate() {
        for change in &changes {
            rates.set_flows(change.carrier, change.flows);
            if change.flows == 0 {
                told[change.carrier as usize] = 0;
            }
        }
        let mut changed = 0;
        rates.solve(&mut |_| changed += 1);
        for row in on_device.solve(&[(0, &changes)]).unwrap_or_else(|e| panic!("{e}")) {
            told[row.carrier as usize] = row.rate;
        }
        let want: Vec<u64> = (0..told.len() as u32).map(|carrier| rates.rate(carrier)).collect();
        assert_eq!(told, want, "step {step}");
        assert!(changed > 100, "step {step}: {changed} rates are others: the change has run far");
    }
}
