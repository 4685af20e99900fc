//! Small cases for parity of CPU and GPU: two switches, two trunks, every congestion control and every way to lose or pause.

use hyperfold_columns::OwnedTables;
use hyperfold_host::kernel_check::difference::difference;
use hyperfold_host::kernel_check::dumbbell;
use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_llm::workload::Flow;
use hyperfold_network::routing::FlowPaths;
use hyperfold_network::transport::{Cc, LossRecovery, RttWindow, Transport};

use super::transports::transport;
use super::{Case, engine};

const US: u64 = 1_000_000;

/// A case whose congestion control is `cc`: an incast of three hosts of one side and two of the other into host 0, and a flow back.
pub fn case(cc: Cc) -> Case {
    let network = dumbbell::dumbbell();
    let mut flows = Vec::new();
    let mut paths = Vec::new();
    let pairs = [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (0, 6), (4, 2), (5, 1), (5, 0)];
    for (i, &(src, dst)) in pairs.iter().enumerate() {
        flows.push(Flow {
            id: i as u32,
            src_rank: src,
            dst_rank: dst,
            bytes: 60_000 + 7_001 * i as u64,
            start_ps: (i as u64 / 3) * 3 * US,
            sport: 10_000 + i as u16,
            dport: 100,
            class: 3,
        });
        paths.push(FlowPaths { data: dumbbell::paths(src, dst), ack: dumbbell::paths(dst, src) });
    }
    let rtt = RttWindow { rtt_ps: 6_500_000, window_bytes: 20_000 };
    Case { rtt: vec![rtt; flows.len()], network, flows, paths, transport: transport(cc), changes: Vec::new() }
}

/// Every case by name: five congestion controls, and variants that pause, drop, go back, hold answers and keep records.
pub fn all() -> Vec<(&'static str, Case)> {
    let with = |cc, change: fn(&mut Transport)| {
        let mut c = case(cc);
        change(&mut c.transport);
        c
    };
    vec![
        ("dcqcn", case(Cc::Dcqcn)),
        ("hpcc", case(Cc::Hpcc)),
        ("dctcp", case(Cc::Dctcp)),
        ("timely", case(Cc::Timely)),
        (
            "pauses",
            with(Cc::None, |t| {
                t.buffer_bytes = 220_000;
                t.pfc_alpha_shift = 2;
                t.clock_ps = 1000;
            }),
        ),
        (
            "drops",
            with(Cc::None, |t| {
                t.pfc = false;
                t.buffer_bytes = 150_000;
                t.ack_high_prio = true;
            }),
        ),
        (
            "hpcc_additive",
            with(Cc::Hpcc, |t| {
                t.mi_thresh = 5;
                t.fast_react = false;
                t.ack_interval = 3_000;
                t.buffer_bytes = 220_000;
            }),
        ),
        (
            "dcqcn_clamped",
            with(Cc::Dcqcn, |t| {
                t.dcqcn_clamp = true;
                t.cnp_interval_ps = 4 * US;
                t.rate_bound = false;
                t.window = true;
                t.dcqcn_fast_recovery = 0;
            }),
        ),
        (
            "dcqcn_windows",
            with(Cc::Dcqcn, |t| {
                t.window = true;
                t.var_window = true;
                t.dcqcn_decrease_ps = 2 * US;
                t.dcqcn_increase_ps = 2 * US;
                t.pfc = false;
                t.buffer_bytes = 150_000;
                t.loss_recovery = LossRecovery::Ns3;
                t.nack_interval_ps = US;
            }),
        ),
    ]
}

/// The small cases, built; those with an odd number keep round-trip times and queue integrals.
pub fn tables() -> Vec<(&'static str, OwnedTables)> {
    all()
        .into_iter()
        .enumerate()
        .map(|(i, (name, case))| {
            let odd = i % 2 == 1;
            let options =
                BuildOptions { exp_id: i as u32, links: odd, rtt_cap: if odd { 8 } else { 0 }, ..Default::default() };
            (name, engine::tables(&case, options).tables)
        })
        .collect()
}

/// What the CPU engine makes of them.
pub fn on_cpu(before: &[OwnedTables]) -> Vec<OwnedTables> {
    let mut after = before.to_vec();
    for t in &mut after {
        engine::run_cpu(t);
    }
    after
}

/// Panics with the first difference between what came out and what should have.
pub fn compare(names: &[&str], got: &[OwnedTables], want: &[OwnedTables]) {
    for ((name, got), want) in names.iter().zip(got).zip(want) {
        if let Some(first) = difference(got, want) {
            panic!("{name}: {first}");
        }
    }
}
