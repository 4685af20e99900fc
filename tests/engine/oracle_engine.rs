//! The CPU engine against the oracle on random small networks: every congestion control, storms of pauses, losses.

use crate::oracle::{Failure, Opts, Order, simulate};
use crate::support;
use crate::support::{Case, engine, random};
use hyperfold_columns::{NEVER, status};
use hyperfold_host::tables::build_tables::BuildOptions;

/// What can be compared of a run.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    finish_ps: Vec<Option<u64>>,
    gave_up: bool,
    packet_hops: u64,
    ecn_marks: u64,
    pfc_pauses: u64,
    drops: u64,
    max_queue_bytes: u64,
}

fn by_oracle(case: &Case) -> Seen {
    let o = simulate(case, Order::Lineage, Opts::default());
    Seen {
        finish_ps: o.finish_ps,
        gave_up: matches!(o.failure, Some(Failure::GaveUp { .. })),
        packet_hops: o.packet_hops,
        ecn_marks: o.ecn_marks,
        pfc_pauses: o.pfc_pauses,
        drops: o.drops,
        max_queue_bytes: o.max_queue_bytes,
    }
}

fn by_engine(case: &Case, name: &str, step_divisor: u64) -> Seen {
    let mut built = engine::tables(case, BuildOptions { step_divisor, ..BuildOptions::default() });
    let ended = engine::run_cpu(&mut built.tables);
    assert!(matches!(ended, status::DONE | status::GAVE_UP), "{name}: status {ended} flags {}", built.tables.shared[0]);
    engine::conserved(&built.tables).unwrap_or_else(|e| panic!("{name}: {e}"));
    let t = &built.tables;
    Seen {
        finish_ps: built.flow_rows.iter().map(|&r| t.flow_tx[r].finish).map(|f| (f != NEVER).then_some(f)).collect(),
        gave_up: ended == status::GAVE_UP,
        packet_hops: engine::packet_hops(t),
        ecn_marks: t.ports.iter().map(|p| p.marks).sum(),
        pfc_pauses: engine::pauses(t),
        drops: t.ports.iter().map(|p| p.drops as u64).sum(),
        max_queue_bytes: t.ports.iter().map(|p| p.max_q as u64).max().unwrap_or(0),
    }
}

/// Compares the seeds `from..to`; returns how many paused, lost packets and gave up.
fn compare(from: u64, to: u64) -> [u32; 3] {
    let mut met = [0; 3];
    for seed in from..to {
        let case = random::case(seed);
        let name = format!("seed {seed}");
        let expected = by_oracle(&case);
        let got = by_engine(&case, &name, 1 + seed % 3);
        if expected.gave_up {
            // The step decides when it stops after giving up, not whether it gives up.
            assert!(got.gave_up, "{name}: the oracle gave up, the engine did not");
        } else {
            assert_eq!(got, expected, "{name} ({:?})", case.transport.cc);
        }
        met[0] += u32::from(expected.pfc_pauses > 0);
        met[1] += u32::from(expected.drops > 0);
        met[2] += u32::from(expected.gave_up);
    }
    met
}

#[test]
fn engine_and_oracle_agree_on_random_networks() {
    let [paused, lost, gave_up] = compare(0, 400);
    println!("400 cases: {paused} with pauses, {lost} with losses, {gave_up} gave up");
    assert!(paused > 40 && lost > 10 && gave_up > 0, "the random cases no longer reach storms and losses");
}

#[test]
fn engine_and_oracle_agree_on_swift() {
    let [paused, lost, _] = compare(random::SWIFT, random::SWIFT + 400);
    assert!(paused > 40 && lost > 10, "{paused} of 400 cases paused, {lost} lost packets");
}

#[test]
fn engine_and_oracle_agree_on_packets_in_any_order() {
    let [paused, lost, _] = compare(random::SELECTIVE, random::SELECTIVE + 400);
    assert!(paused > 40 && lost > 10, "{paused} of 400 cases paused, {lost} lost packets");
}

/// More of the same, for as long as the soak lasts (`HYPERFOLD_SOAK_MINUTES` for all soak tests together).
#[test]
#[ignore = "soak: random cases for minutes; scripts/test.sh --soak and CI run it"]
fn soak_engine_and_oracle_agree() {
    let seeds = support::soak::third(|from| {
        compare(from, from + 500);
        compare(random::SELECTIVE + from, random::SELECTIVE + from + 500);
        500
    });
    println!("{seeds} cases agree, and as many with packets in any order");
}
