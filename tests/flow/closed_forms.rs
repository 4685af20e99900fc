//! Times of the flow level against algebra, where nothing but rates and latencies decides: within 0.1 %.

use std::path::Path;

use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_engine::EngineError;
use hyperfold_engine::cpu::engine::CpuEngine;
use hyperfold_host::{ExperimentOutcome, QueuedExperiment, RunEvent, RunOptions};

/// 100 Gb/s everywhere, a microsecond a link, 1,000 bytes of payload in 1,048, acknowledgements of 60.
const BPS: f64 = 100e9;
const DELAY: f64 = 1e6;
const WIRE: f64 = 1048.0;
const ACK: f64 = 60.0;

/// Simulates what `base` says at flow level, on servers of one GPU.
pub fn simulate(base: &str) -> ExperimentOutcome {
    let text = format!(
        "name = \"t\"\nbase.fidelity.mode = \"flow\"\nbase.transport = {{ cc = \"none\", payload_bytes = 1000 }}\n{base}\n"
    );
    let sweep = sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).unwrap();
    let config = sweep.config(&sweep.experiments[0]).unwrap();
    let task = QueuedExperiment { exp_id: 0, config };
    let mut ended = None;
    let mut tell = |event: RunEvent| {
        if let RunEvent::Ended(e) = event {
            ended = Some(e.result);
        }
        Ok::<(), EngineError>(())
    };
    hyperfold_host::run(std::iter::once(task), Box::new(CpuEngine), &RunOptions::default(), || false, &mut tell)
        .unwrap();
    ended.unwrap().unwrap()
}

fn ps(bytes: f64) -> f64 {
    bytes * 8e12 / BPS
}

/// From the end of a message's transmission to its last acknowledgement, over so many links each way.
fn latency(links: f64) -> f64 {
    links * DELAY + (links - 1.0) * ps(WIRE) + links * (DELAY + ps(ACK))
}

fn agrees(what: &str, simulated: f64, formula: f64) {
    let off = (simulated - formula) / formula;
    println!("{what}: {:.3} us by algebra, {:+.4} % off", formula / 1e6, 100.0 * off);
    assert!(off.abs() < 1e-3, "{what}: {simulated} ps, algebra says {formula}");
}

const ONE_SWITCH: &str = "base.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology = { kind = \"clos\", hosts_per_leaf = 8, link_gbps = 100, uplink_gbps = 100 }\n";

/// Bytes of a flow, and on the wire.
const BYTES: f64 = 4e6;
const ON_WIRE: f64 = BYTES / 1000.0 * WIRE;

#[test]
fn a_flow_alone_takes_what_its_slowest_link_takes() {
    let out = simulate(&format!(
        "{ONE_SWITCH}base.workload = {{ kind = \"traffic\", pattern = \"incast\", fan_in = 1, bytes = 4000000 }}"
    ));
    agrees("a flow alone", out.flows[0].fct_ps.unwrap() as f64, ps(ON_WIRE) + latency(2.0));
    assert_eq!(out.flows[0].fct_ps, Some(out.flows[0].ideal_ps), "what an idle network takes, to the ps");
}

#[test]
fn an_incast_shares_the_last_link() {
    for fan_in in [2.0, 4.0, 7.0] {
        let out = simulate(&format!(
            "{ONE_SWITCH}base.workload = {{ kind = \"traffic\", pattern = \"incast\", fan_in = {fan_in}, bytes = 4000000 }}"
        ));
        let formula = fan_in * ps(ON_WIRE) + latency(2.0);
        for flow in out.flows.iter() {
            agrees("incast", flow.fct_ps.unwrap() as f64, formula);
        }
    }
}

#[test]
fn in_a_ring_acknowledgements_share_every_link_with_data() {
    let out =
        simulate(&format!("{ONE_SWITCH}base.workload = {{ kind = \"traffic\", pattern = \"ring\", bytes = 4000000 }}"));
    let formula = ps(ON_WIRE) * (1.0 + ACK / WIRE) + latency(2.0);
    out.flows.iter().for_each(|flow| agrees("ring", flow.fct_ps.unwrap() as f64, formula));
}

#[test]
fn a_ring_all_reduce_takes_its_steps() {
    let out = simulate(&format!(
        "{ONE_SWITCH}base.workload = {{ kind = \"collective\", op = \"all-reduce\", bytes = 32000000, algorithm = \"ring\", channels = 1, chunk_kib = 1000000.0, collective_overhead = \"none\", rendezvous_ns = 1000.0 }}"
    ));
    let message = BYTES;
    let step = ps(message / 1000.0 * WIRE) * (1.0 + ACK / WIRE) + 2.0 * DELAY + ps(WIRE);
    agrees("ring all-reduce", out.iteration.unwrap().time.total as f64, 1e6 + 14.0 * step);
}

#[test]
fn in_a_tree_flows_share_the_narrowest_link_that_they_cross() {
    // Eight hosts below two leaves with one spine: four flows cross each uplink of 100 Gb/s.
    let out = simulate(
        "base.cluster = { gpus = 8, gpus_per_server = 1 }\nbase.topology = { kind = \"clos\", hosts_per_leaf = 4, spines = 1, link_gbps = 100, uplink_gbps = 100 }\n\
         base.workload = { kind = \"traffic\", pattern = \"ring\", stride = 4, bytes = 4000000 }",
    );
    // Acknowledgements of the other direction share the uplinks, with data of four flows.
    let formula = 4.0 * ps(ON_WIRE) * (1.0 + ACK / WIRE) + latency(4.0);
    out.flows.iter().for_each(|flow| agrees("tree", flow.fct_ps.unwrap() as f64, formula));
}
