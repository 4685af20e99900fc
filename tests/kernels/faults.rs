//! The tests of this folder can fail: wrong kernels are told from right ones.

use crate::executed::{Kernels, races, with_view};
use crate::support::{Case, engine, random, small, transports};
use hyperfold_columns::OwnedTables;
use hyperfold_engine::systems::SYSTEMS;
use hyperfold_host::kernel_check::difference::difference;
use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_interpreter::KernelDispatch;
use hyperfold_llm::workload::Flow;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::topology::{Link, Network, Node, NodeKind, SwitchNames};
use hyperfold_network::transport::Cc;

/// The first system of the first `steps` steps that differs from its twin or has races, and what of it.
fn first_fault(kernels: &Kernels, t: &mut OwnedTables, steps: u32) -> Option<(&'static str, String)> {
    for _ in 0..steps {
        let mut got = t.clone();
        for (k, system) in SYSTEMS.iter().enumerate() {
            let done = with_view(&mut got, |got| {
                kernels.run_system(k, got, KernelDispatch { finds_races: true, ..KernelDispatch::of([1; 3]) })
            });
            let rows = system.rows.count(&t.exps[0]);
            system.run(&mut t.view(), 0..rows);
            if let Some(what) = races(&done).into_iter().next().or_else(|| difference(&got, t)) {
                return Some((system.name, what));
            }
        }
    }
    None
}

#[test]
fn a_wrong_kernel_is_named() {
    let wrong = Kernels::changed(|text| {
        let (right, wrong) = ("exps[exp_row].steps += 1lu;", "exps[exp_row].steps += 2lu;");
        assert!(text.contains(right), "{right}");
        text.replace(right, wrong)
    });
    let mut t = small::tables().remove(0).1;
    let (system, what) = first_fault(&wrong, &mut t, 1).expect("it is wrong");
    assert_eq!((system, what.contains("column steps")), ("advance", true), "{what}");
}

/// Both NICs of a link between two hosts use one wire in one system. That is why such experiments are simulated on the CPU.
#[test]
fn a_link_between_two_hosts_is_a_race() {
    let node = |id| Node { kind: NodeKind::Host, id, server: id };
    let network = Network {
        nodes: vec![node(0), node(1)],
        links: vec![Link { a: 0, b: 1, rate_bps: 100_000_000_000, delay_ps: 1_000_000 }],
        ranks: vec![0, 1],
        nvlink: None,
        switch_names: SwitchNames::ById,
        ..Network::default()
    };
    let flow = |id: u32, src_rank, dst_rank| Flow {
        id,
        src_rank,
        dst_rank,
        bytes: 100_000,
        start_ps: 0,
        sport: 1000,
        dport: 100,
        class: 3,
    };
    let flows = vec![flow(0, 0, 1), flow(1, 1, 0)];
    let path = |forth, back| FlowPaths { data: vec![vec![forth]], ack: vec![vec![back]] };
    let paths = vec![path(0, 1), path(1, 0)];
    let transport = transports::transport(Cc::Dcqcn);
    let rtt = random::rtt(&network, &paths, &transport);
    let case = Case { network, flows, paths, transport, rtt, changes: Vec::new() };
    let mut t = engine::tables(&case, BuildOptions::default()).tables;
    let (system, what) = first_fault(Kernels::right(), &mut t, 100).expect("both use a wire");
    assert_eq!(system, "nic", "{what}");
    assert!(what.contains("one reads and one writes"), "{what}");
}
