//! The CPU engine against the oracle on random small networks: every congestion control, storms of pauses, losses.

use crate::oracle::{Failure, Opts, Order, simulate};
use crate::support;
use crate::support::{Case, engine, random};
use hyperfold_columns::{NEVER, status};
use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_network::changes::{NetworkChange, TimedChange};

/// What can be compared of a run.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    finish_ps: Vec<Option<u64>>,
    gave_up: bool,
    packet_hops: u64,
    ecn_marks: u64,
    pfc_pauses: u64,
    drops: u64,
    /// By arc of the port, where links that are down are the only cause of drops.
    lost: Option<Vec<u64>>,
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
        lost: (o.lost.iter().sum::<u64>() == o.drops).then_some(o.lost),
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
        lost: Some(engine::drops_by_arc(case, &built)),
        max_queue_bytes: t.ports.iter().map(|p| p.max_q as u64).max().unwrap_or(0),
    }
}

/// How many cases reached what.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    paused: u32,
    lost: u32,
    gave_up: u32,
    /// Lost packets, on links that failed and nowhere else.
    cut: u32,
    /// The same, and yet all flows finished, one of them after a link failed.
    outlived: u32,
    /// Never finished, though nobody gave up.
    stuck: u32,
}

impl Met {
    fn note(&mut self, case: &Case, seen: &Seen) {
        let cut = seen.drops > 0 && seen.lost.is_some();
        let down = |c: &TimedChange| matches!(c.change, NetworkChange::LinkDown(_)).then_some(c.time_ps);
        let first_down = case.changes.iter().find_map(down);
        let last_end = seen.finish_ps.iter().copied().max().flatten();
        let finished = seen.finish_ps.iter().all(Option::is_some);
        self.paused += u32::from(seen.pfc_pauses > 0);
        self.lost += u32::from(seen.drops > 0);
        self.gave_up += u32::from(seen.gave_up);
        self.cut += u32::from(cut);
        self.outlived += u32::from(cut && finished && first_down < last_end);
        self.stuck += u32::from(!finished && !seen.gave_up);
    }
}

/// Compares the seeds `from..to`; returns what they reached.
fn compare(from: u64, to: u64) -> Met {
    let mut met = Met::default();
    for seed in from..to {
        let case = random::case(seed);
        let name = format!("seed {seed}");
        let expected = by_oracle(&case);
        let mut got = by_engine(&case, &name, 1 + seed % 3);
        if expected.lost.is_none() {
            got.lost = None;
        }
        if expected.gave_up {
            // The step decides when it stops after giving up, not whether it gives up.
            assert!(got.gave_up, "{name}: the oracle gave up, the engine did not");
        } else {
            assert_eq!(got, expected, "{name} ({:?})", case.transport.cc);
        }
        met.note(&case, &expected);
    }
    met
}

#[test]
fn engine_and_oracle_agree_on_random_networks() {
    let Met { paused, lost, gave_up, .. } = compare(0, 400);
    println!("400 cases: {paused} with pauses, {lost} with losses, {gave_up} gave up");
    assert!(paused > 40 && lost > 10 && gave_up > 0, "the random cases no longer reach storms and losses");
}

#[test]
fn engine_and_oracle_agree_on_swift() {
    let Met { paused, lost, .. } = compare(random::SWIFT, random::SWIFT + 400);
    assert!(paused > 40 && lost > 10, "{paused} of 400 cases paused, {lost} lost packets");
}

#[test]
fn engine_and_oracle_agree_on_packets_in_any_order() {
    let Met { paused, lost, .. } = compare(random::SELECTIVE, random::SELECTIVE + 400);
    assert!(paused > 40 && lost > 10, "{paused} of 400 cases paused, {lost} lost packets");
}

#[test]
fn engine_and_oracle_agree_on_links_that_fail() {
    let met = compare(random::CHANGES, random::CHANGES + 400);
    println!("400 cases: {met:?}");
    assert!(met.paused > 40 && met.cut > 100 && met.outlived > 40 && met.gave_up > 10 && met.stuck > 10, "{met:?}");
}

/// More of the same, for as long as the soak lasts (`HYPERFOLD_SOAK_MINUTES` for all soak tests together).
#[test]
#[ignore = "soak: random cases for minutes; scripts/test.sh --soak and CI run it"]
fn soak_engine_and_oracle_agree() {
    let seeds = support::soak::third(|from| {
        compare(from, from + 500);
        compare(random::SELECTIVE + from, random::SELECTIVE + from + 500);
        compare(random::CHANGES + from, random::CHANGES + from + 500);
        500
    });
    println!("{seeds} cases agree, as many with packets in any order, and as many with links that fail");
}
