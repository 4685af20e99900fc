//! The random cases reach what they are for, and the oracle keeps its invariants on them.

use crate::oracle::{Failure, Opts, Order, Outcome, simulate};
use crate::support::{Case, random};
use hyperfold_network::transport::Cc;

const SEEDS: u64 = 500;

fn run(case: &Case, order: Order) -> Outcome {
    simulate(case, order, Opts { time_limit_ps: Some(1_000_000_000_000) })
}

/// Storms, losses, marks, retransmission, giving up: each happens often enough to test an engine with.
#[test]
fn random_cases_reach_every_behaviour() {
    let mut seen: std::collections::BTreeMap<&str, u64> = Default::default();
    for seed in 0..SEEDS {
        let case = random::case(seed);
        let out = run(&case, Order::Lineage);
        let finished = out.finish_ps.iter().flatten().count();
        assert_eq!(finished == case.flows.len(), out.failure.is_none(), "seed {seed}: {:?}", out.failure);
        let biggest = case.transport.buffer_bytes + case.network.links.len() as u64 * 2_000_000;
        assert!(out.max_queue_bytes <= biggest, "seed {seed}");
        let mut note = |what, yes: bool| *seen.entry(what).or_default() += u64::from(yes);
        note("runs", true);
        note("paused", out.pfc_pauses > 0);
        note("paused 100 times", out.pfc_pauses > 100);
        note("lost", out.drops > 0);
        note("lost with pauses", out.drops > 0 && case.transport.pfc);
        note("marked", out.ecn_marks > 0);
        note("gave up", matches!(out.failure, Some(Failure::GaveUp { .. })));
        note("stuck", out.failure == Some(Failure::Stuck));
        note("time limit", out.failure == Some(Failure::TimeLimit));
        note("lossy and finished", out.drops > 0 && out.failure.is_none());
        note("sprayed", case.paths.iter().any(|p| p.data.len() > 1));
        note("dcqcn with marks", case.transport.cc == Cc::Dcqcn && out.ecn_marks > 0);
        note("order matters", run(&case, Order::Reference).finish_ps != out.finish_ps);
    }
    println!("{seen:?}");
    for what in ["paused", "lost", "marked", "lossy and finished", "sprayed", "dcqcn with marks"] {
        assert!(seen[what] >= SEEDS / 100, "{what}: only {} of {SEEDS}", seen[what]);
    }
    // Senders that do as adapters do hardly ever give up.
    assert!(seen["gave up"] >= SEEDS / 250, "gave up: only {} of {SEEDS}", seen["gave up"]);
}

/// A case that is simulated twice gives the same outcome.
#[test]
fn the_oracle_repeats_itself() {
    for seed in 0..20 {
        let case = random::case(seed);
        assert_eq!(run(&case, Order::Lineage), run(&case, Order::Lineage), "seed {seed}");
    }
}
