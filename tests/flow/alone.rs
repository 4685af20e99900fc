//! A flow alone on its path takes what its packets take, to the picosecond; and acknowledgements may be larger than what they answer.

use hyperfold_columns::{FlowIdx, status};
use hyperfold_config::sweep::{self, SetOverrides};
use hyperfold_flow::run_to_end;
use hyperfold_host::setup::prepare::{Prepared, prepare};

use crate::support::engine;
use crate::support::program::Folder;
use crate::support::random::Rng;

/// The experiments of a sweep, prepared.
fn experiments(folder: &Folder, text: &str) -> Vec<Prepared> {
    let sweep =
        sweep::parse(text, &folder.file("s.toml"), &SetOverrides::default()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let prepared = |e| prepare(&sweep.config(e).unwrap_or_else(|e| panic!("{e}\n{text}")), 0);
    sweep.experiments.iter().map(|e| prepared(e).unwrap_or_else(|e| panic!("{e}\n{text}"))).collect()
}

/// When the flows of an experiment have ended, ps.
fn ends(mut prepared: Prepared, at_flow_level: bool) -> Vec<u64> {
    let tables = &mut prepared.built.tables;
    match at_flow_level {
        true => assert!(run_to_end(&mut tables.view(), &|| false)),
        false => {
            engine::run_cpu(tables);
        }
    }
    assert_eq!(tables.exps[0].status, status::DONE);
    FlowIdx::all(tables.flow_tx.len() as u32).map(|f| tables.flow_tx[f].finish).collect()
}

#[test]
fn a_flow_alone_takes_what_its_packets_take() {
    let (mut rng, mut faster) = (Rng::new(7), 0);
    for case in 0..60 {
        // Two hosts at the ends of a line of switches; links of any rate.
        let switches = rng.range(1, 4);
        let mut net = format!("{} {switches} {}\n", 2 + switches, 1 + switches);
        net += &(2..2 + switches).map(|id| id.to_string()).collect::<Vec<_>>().join(" ");
        let ends_of = |link: u64| (if link == 0 { 0 } else { link + 1 }, if link == switches { 1 } else { link + 2 });
        for link in 0..=switches {
            let (a, b) = ends_of(link);
            let (gbps, ns) = (rng.pick(&[10, 25, 100, 400]), rng.range(1, 3000));
            net += &format!("\n{a} {b} {gbps}Gbps {ns}ns 0");
        }
        let payload = rng.pick(&[1u64, 8, 11, 12, 13, 64, 1000, 4096]);
        let bytes = rng.range(1, 60 * payload);
        let folder = Folder::new(&[("net.txt", &net), ("flows.txt", &format!("1\n0 1 3 100 {bytes} 0\n"))]);
        // Switches store and forward, or cut through after one of two headers.
        let headers = [0, 14 + case % 30, payload.min(64) + 48];
        let text = format!(
            "name = \"a\"\n[base]\ntopology = {{ kind = \"file\", path = \"net.txt\" }}\ntransport = {{ cc = \"none\", payload_bytes = {payload} }}\n\
             workload = {{ kind = \"flows\", path = \"flows.txt\", start_unit = \"ns\" }}\n[axes]\n\"topology.cut_through_bytes\" = {headers:?}\n\
             \"fidelity.mode\" = [\"packet\", \"flow\"]\n"
        );
        let mut both = experiments(&folder, &text).into_iter();
        let mut stored = u64::MAX;
        for header in headers {
            let (packets, flow) = (both.next().unwrap(), both.next().unwrap());
            let ideal = packets.flows[0].ideal_ps;
            let of_packets = ends(packets, false)[0];
            let what = format!("case {case}: {bytes} bytes in {payload}, cut-through after {header}\n{net}");
            assert_eq!(ideal, of_packets, "on an idle network, {what}");
            assert_eq!(ends(flow, true)[0], of_packets, "{what}");
            assert!(of_packets <= stored, "slower than by store and forward, {what}");
            faster += u32::from(header > 0 && of_packets < stored);
            if header == 0 {
                stored = ideal;
            }
        }
    }
    assert!(faster > 30, "{faster} of 120 faster than by store and forward");
}

#[test]
fn acknowledgements_may_be_larger_than_what_they_answer() {
    let folder = Folder::new(&[]);
    // One flow, several to one, both ways at once.
    for pattern in
        ["pattern = \"incast\", fan_in = 1", "pattern = \"incast\", fan_in = 5", "pattern = \"ring\", stride = 1"]
    {
        for spray in ["ecmp", "spray"] {
            let text = format!(
                "name = \"a\"\n[base]\nfidelity.mode = \"flow\"\ncluster = {{ gpus = 8, gpus_per_server = 1 }}\n\
                 topology = {{ kind = \"clos\", hosts_per_leaf = 2, link_gbps = 100, link_delay_ns = 100 }}\ntransport.cc = \"none\"\nrouting.policy = \"{spray}\"\n\
                 workload = {{ kind = \"traffic\", {pattern}, bytes = 100_000 }}\n[axes]\n\"transport.payload_bytes\" = [1, 8, 11, 12]\n"
            );
            for (prepared, payload) in experiments(&folder, &text).into_iter().zip([1u64, 8, 11, 12]) {
                let least = prepared.flows.iter().map(|flow| flow.ideal_ps).max().unwrap();
                let ideal: Vec<u64> = prepared.flows.iter().map(|flow| flow.ideal_ps).collect();
                let mut tables = prepared.built.tables.clone();
                let found = ends(prepared, true);
                assert!(run_to_end(&mut tables.view(), &|| false));
                hyperfold_host::batches::conserve::check(&tables.view(), &[])
                    .unwrap_or_else(|e| panic!("{pattern} {payload}: {e}"));
                // Nobody is faster than alone, and all that share a link are done when it has carried all.
                assert!(
                    found.iter().zip(&ideal).all(|(end, ideal)| end + 1000 >= *ideal),
                    "{pattern} {spray} {payload}"
                );
                let most = 8 * least;
                assert!(found.iter().all(|&end| end < most), "{pattern} {spray} {payload}: {found:?} of {least}");
            }
        }
    }
}
