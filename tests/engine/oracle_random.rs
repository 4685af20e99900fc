//! The random cases reach what they are for, and the oracle keeps its invariants on them.

use crate::oracle::{Failure, Opts, Order, Outcome, simulate};
use crate::support::{Case, random};
use hyperfold_network::transport::{Cc, LossRecovery};

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

/// With traffic classes: each way in which a class waits, and is spared what happens to others.
#[test]
fn random_cases_reach_every_behaviour_of_classes() {
    let mut seen: std::collections::BTreeMap<&str, u64> = Default::default();
    for seed in random::CLASSES..random::CLASSES + SEEDS {
        let case = random::case(seed);
        let out = run(&case, Order::Lineage);
        let t = &case.transport;
        let in_use = |class: usize| case.flows.iter().any(|flow| flow.class as usize == class);
        let lossless = |class: usize| t.pfc && t.classes[class].lossless && in_use(class);
        let drops_of_lossless: u64 = (0..t.classes.len()).filter(|&c| lossless(c)).map(|c| out.classes.drops[c]).sum();
        // ACKs that have priority come also while their class is paused, until nothing has space for them.
        assert!(out.classes.lossless_data_drops == 0 || !case.changes.is_empty(), "seed {seed}");
        assert!(drops_of_lossless == 0 || !case.changes.is_empty() || t.ack_high_prio, "seed {seed}");
        let n_lossless = (0..t.classes.len()).filter(|&c| lossless(c)).count();
        let without = run(&of_one_class(&case), Order::Lineage);
        let mut note = |what, yes: bool| *seen.entry(what).or_default() += u64::from(yes);
        let c = &out.classes;
        note("all end", out.failure.is_none());
        note("a class is passed over by a higher one", c.passed_over > 0);
        note("a turn ends for want of allowance", c.turns_ended > 0);
        note("a turn goes on while another class waits", c.turns_kept > 0);
        note("a port sends while one of its classes is paused", c.sent_beside_paused > 0);
        note("a pause holds ACKs back", c.acks_held > 0);
        note("ACKs go despite a pause", c.acks_despite_pause > 0);
        note("data goes before ACKs of another class", c.data_before_acks > 0);
        note("paused", out.pfc_pauses > 0);
        note("lossless in name only", !t.pfc && t.classes.iter().any(|class| class.lossless));
        note("drops without links that fail", c.drops.iter().sum::<u64>() > 0);
        note("only lossy classes drop", n_lossless > 0 && c.drops.iter().sum::<u64>() > 0 && drops_of_lossless == 0);
        note("lossless classes drop", drops_of_lossless > 0);
        note("links fail and lose", out.lost.iter().sum::<u64>() > 0);
        note("marked", out.ecn_marks > 0);
        note("gave up", matches!(out.failure, Some(Failure::GaveUp { .. })));
        note("five classes or more", t.classes.len() >= 5);
        note("packets in any order", t.takes_any_order());
        note("go back N as adapters", t.loss_recovery == LossRecovery::Adapter);
        note("go back N as ns-3", t.loss_recovery == LossRecovery::Ns3);
        note("classes matter", without.finish_ps != out.finish_ps);
    }
    println!("{seen:?}");
    for (what, n) in &seen {
        let at_least = if *what == "lossless classes drop" { 0 } else { SEEDS / 50 };
        assert!(*n >= at_least, "{what}: only {n} of {SEEDS}");
    }
}

/// The case, as if there were no classes.
fn of_one_class(case: &Case) -> Case {
    let mut case = case.clone();
    case.transport.classes.clear();
    case
}

/// A case that is simulated twice gives the same outcome.
#[test]
fn the_oracle_repeats_itself() {
    for seed in 0..20 {
        let case = random::case(seed);
        assert_eq!(run(&case, Order::Lineage), run(&case, Order::Lineage), "seed {seed}");
    }
}
