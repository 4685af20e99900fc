//! The CPU engine against the oracle on random small networks: every congestion control, storms of pauses, losses.

use std::collections::HashSet;

use crate::oracle::{Failure, LATE_PS, Opts, Order, Outcome, is_switch, simulate};
use crate::reached::{Credit, Reach, Reached};
use crate::support;
use crate::support::{Case, engine, random};
use hyperfold_columns::{NEVER, OwnedTables, Port, Wire, kind, meta, status};
use hyperfold_engine::cpu;
use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_network::changes::{NetworkChange, TimedChange};
use hyperfold_network::topology::ArcIdx;
use hyperfold_network::transport::{LossRecovery, PortWeights};

/// What can be compared of a run.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    finish_ps: Vec<Option<u64>>,
    /// By flow: sum of its round-trip times in ps, and their number.
    round_trips: Vec<(u64, u32)>,
    gave_up: bool,
    packet_hops: u64,
    ecn_marks: u64,
    pfc_pauses: u64,
    /// By arc.
    paused_ps: Vec<u64>,
    drops: u64,
    /// By arc of the port, where links are the only cause of drops.
    lost: Option<Vec<u64>>,
    /// By arc: packets of NICs that got lost at random.
    lost_by_nics: Vec<u64>,
    /// By arc: packets that the watchdog dropped.
    dropped_by_watchdog: Vec<u64>,
    /// Times that the watchdog began to act.
    watchdog_starts: u64,
    max_queue_bytes: u64,
}

fn by_oracle(case: &Case) -> Seen {
    seen_of(case, simulate(case, Order::Lineage, Opts::default()))
}

fn seen_of(case: &Case, o: Outcome) -> Seen {
    let (mut lost, mut lost_by_nics) = (o.lost, vec![0; o.lost_at_random.len()]);
    for (arc, &n) in o.lost_at_random.iter().enumerate() {
        let counts = if is_switch(case, arc as ArcIdx) { &mut lost } else { &mut lost_by_nics };
        counts[arc] += n;
    }
    let on_links: u64 = lost.iter().chain(&lost_by_nics).sum();
    Seen {
        finish_ps: o.finish_ps,
        round_trips: o.round_trips,
        gave_up: matches!(o.failure, Some(Failure::GaveUp { .. })),
        packet_hops: o.packet_hops,
        ecn_marks: o.ecn_marks,
        pfc_pauses: o.pfc_pauses,
        paused_ps: o.paused_ps,
        drops: o.drops,
        lost: (on_links == o.drops).then_some(lost),
        lost_by_nics,
        dropped_by_watchdog: o.dropped_by_watchdog,
        watchdog_starts: o.watchdog.starts,
        max_queue_bytes: o.max_queue_bytes,
    }
}

fn by_engine(case: &Case, name: &str, step_divisor: u64) -> Seen {
    let mut built = engine::tables(case, BuildOptions { step_divisor, rtt_means: true, ..BuildOptions::default() });
    let ended = engine::run_cpu(&mut built.tables);
    assert!(matches!(ended, status::DONE | status::GAVE_UP), "{name}: status {ended} flags {}", built.tables.shared[0]);
    engine::conserved(&built.tables).unwrap_or_else(|e| panic!("{name}: {e}"));
    let t = &built.tables;
    let lost_by_nics = engine::lost_by_nics(case, &built);
    let (dropped_by_watchdog, watchdog_starts) = engine::by_watchdog(case, &built);
    Seen {
        finish_ps: built.flow_rows.iter().map(|&r| t.flow_tx[r].finish).map(|f| (f != NEVER).then_some(f)).collect(),
        round_trips: built.flow_rows.iter().map(|&r| (t.flow_tx[r].rtt_sum, t.flow_tx[r].rtt_seen)).collect(),
        gave_up: ended == status::GAVE_UP,
        packet_hops: engine::packet_hops(t),
        ecn_marks: t.ports.iter().map(|p| p.marks).sum(),
        pfc_pauses: engine::pauses(t),
        paused_ps: engine::paused_by_arc(case, &built, LATE_PS),
        drops: t.ports.iter().map(|p| p.drops as u64).chain(lost_by_nics.iter().copied()).sum(),
        lost_by_nics,
        lost: Some(engine::drops_by_arc(case, &built)),
        dropped_by_watchdog,
        watchdog_starts,
        max_queue_bytes: t.ports.iter().map(|p| p.max_q as u64).max().unwrap_or(0),
    }
}

fn reach(case: &Case, seen: &Seen) -> Reach {
    let down = |c: &TimedChange| matches!(c.change, NetworkChange::LinkDown(_)).then_some(c.time_ps);
    let first_down = case.changes.iter().find_map(down);
    Reach {
        pauses: seen.pfc_pauses,
        marks: seen.ecn_marks,
        drops: seen.drops,
        only_links: seen.lost.is_some(),
        gave_up: seen.gave_up,
        ended: seen.finish_ps.iter().all(Option::is_some),
        outlives: first_down < seen.finish_ps.iter().copied().max().flatten(),
        credit: Credit::of_case(&case.transport, case.flows.iter().map(|f| f.bytes).max().unwrap_or(0)),
    }
}

/// A case on which engine and oracle agree.
struct Agreed {
    reach: Reach,
    seen: Seen,
    outcome: Outcome,
}

/// Whether a case also shows what it would do otherwise: every third one does.
fn shows_otherwise(seed: u64) -> bool {
    seed.is_multiple_of(3)
}

/// Compares engine and oracle on a case.
fn compare_case(case: &Case, name: &str, divisor: u64) -> Agreed {
    let outcome = simulate(case, Order::Lineage, Opts::default());
    let expected = seen_of(case, outcome.clone());
    let mut got = by_engine(case, name, divisor);
    if expected.lost.is_none() {
        got.lost = None;
    }
    if expected.gave_up {
        // The step decides when it stops after giving up, not whether it gives up.
        assert!(got.gave_up, "{name}: the oracle gave up, the engine did not");
    } else {
        assert_eq!(got, expected, "{name} ({:?})", case.transport.cc);
    }
    Agreed { reach: reach(case, &expected), seen: expected, outcome }
}

/// Compares the seeds `from..to`; returns what they reached.
fn compare(from: u64, to: u64) -> Reached {
    let mut reached = Reached::default();
    for seed in from..to {
        reached.note(compare_case(&random::case(seed), &format!("seed {seed}"), 1 + seed % 3).reach);
    }
    reached
}

#[test]
fn engine_and_oracle_agree_on_random_networks() {
    let Reached { paused, lost, gave_up, .. } = compare(0, 400);
    println!("400 cases: {paused} with pauses, {lost} with losses, {gave_up} gave up");
    assert!(paused > 40 && lost > 10 && gave_up > 0, "the random cases no longer reach storms and losses");
}

#[test]
fn engine_and_oracle_agree_on_swift() {
    let Reached { paused, lost, .. } = compare(random::SWIFT, random::SWIFT + 400);
    assert!(paused > 40 && lost > 10, "{paused} of 400 cases paused, {lost} lost packets");
}

#[test]
fn engine_and_oracle_agree_on_packets_in_any_order() {
    let Reached { paused, lost, .. } = compare(random::SELECTIVE, random::SELECTIVE + 400);
    assert!(paused > 40 && lost > 10, "{paused} of 400 cases paused, {lost} lost packets");
}

#[test]
fn engine_and_oracle_agree_on_links_that_fail() {
    let met = compare(random::CHANGES, random::CHANGES + 400);
    println!("400 cases: {met:?}");
    assert!(met.paused > 40 && met.cut > 100 && met.outlived > 40 && met.gave_up > 10 && met.stuck > 10, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_slow_links() {
    let mut met = Reached::default();
    let (mut slow, mut one_way, mut matters) = (0, 0, 0);
    for seed in random::SLOW..random::SLOW + 400 {
        let mut case = random::case(seed);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let arcs = std::mem::take(&mut case.network.slow_arcs);
        slow += u32::from(!arcs.is_empty());
        one_way += u32::from(arcs.iter().any(|one| arcs.iter().all(|other| other.arc != one.arc ^ 1)));
        matters += u32::from(shows_otherwise(seed) && by_oracle(&case) != agreed.seen);
    }
    println!("400 cases: {slow} with slow links, {one_way} in one direction, {matters} end otherwise; {met:?}");
    assert!(slow > 300 && one_way > 150 && matters > 50 && met.paused > 40 && met.lost > 10, "{matters} {met:?}");
}

#[test]
fn engine_and_oracle_agree_on_ultra_ethernet() {
    let met = compare(random::UEC, random::UEC + 400);
    println!("400 cases: {met:?}");
    assert!(met.lost > 100 && met.recovered > 80 && met.marked > 40 && met.gave_up > 20 && met.cut > 10, "{met:?}");
    assert!(met.credited > 100 && met.credited_ended > 80 && met.pulled_ended > 60, "{met:?}");
}

/// All networks with senders of Ultra Ethernet, whatever they drew, with mixed entropies. Those drawn for adaptive routing have several paths for most flows.
#[test]
fn engine_and_oracle_agree_on_mixed_entropies() {
    let mut met = Reached::default();
    let (mut chooses, mut matters) = (0, 0);
    for seed in (random::UEC..random::UEC + 200).chain(random::ADAPTIVE..random::ADAPTIVE + 400) {
        let mut case = random::case(seed);
        case.transport.grade_packets = None;
        if case.transport.loss_recovery != LossRecovery::Uec {
            continue;
        }
        (case.transport.recycles_paths, case.transport.spray_in_turn) = (true, true);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let mixed = agreed.seen;
        chooses += u32::from(case.paths.iter().any(|paths| paths.data.len() > 1));
        case.transport.recycles_paths = false;
        matters += u32::from(shows_otherwise(seed) && by_oracle(&case) != mixed);
    }
    println!("{chooses} cases with a choice, {matters} end otherwise in turn; {met:?}");
    assert!(chooses > 80 && matters > 16, "{chooses} cases with a choice, {matters} end otherwise in turn");
    assert!(met.lost > 60 && met.recovered > 40 && met.cut > 10, "{met:?}");
}

/// Adaptive routing, with flowlets that end after gaps from less than a packet's time to more than a round trip.
#[test]
fn engine_and_oracle_agree_on_flowlets() {
    let mut met = Reached::default();
    let (mut as_packets, mut as_one) = (0, 0);
    for seed in random::ADAPTIVE + 1_000..random::ADAPTIVE + 1_400 {
        let mut case = random::case(seed);
        case.transport.flowlet_gap_ps = [1, 40_000, 300_000, 1_500_000, 20_000_000][seed as usize % 5];
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let seen = agreed.seen;
        case.transport.flowlet_gap_ps = u64::MAX;
        as_one += u32::from(shows_otherwise(seed) && by_oracle(&case) != seen);
        case.transport.flowlet_gap_ps = 0;
        as_packets += u32::from(shows_otherwise(seed) && by_oracle(&case) != seen);
    }
    println!("400 cases: {as_packets} end otherwise packet by packet, {as_one} if no flowlet ends; {met:?}");
    assert!(as_packets > 33 && as_one > 43, "{as_packets} {as_one}");
    assert!(met.paused > 20 && met.lost > 40 && met.outlived > 5, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_adaptive_routing() {
    let mut met = Reached::default();
    let (mut chooses, mut matters, mut weighs) = (0, 0, 0);
    for seed in random::ADAPTIVE..random::ADAPTIVE + 400 {
        let mut case = random::case(seed);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let chosen = agreed.seen;
        chooses += u32::from(case.paths.iter().any(|paths| paths.data.len() > 1));
        case.transport.port_weights = match case.transport.port_weights {
            PortWeights::None => PortWeights::Paths,
            _ => PortWeights::None,
        };
        weighs += u32::from(shows_otherwise(seed) && by_oracle(&case) != chosen);
        case.transport.grade_packets = None;
        matters += u32::from(shows_otherwise(seed) && by_oracle(&case) != chosen);
    }
    println!(
        "400 cases: {chooses} with a choice, {matters} end otherwise without, {weighs} with weights or without; {met:?}"
    );
    assert!(weighs > 13, "{weighs} cases depend on weights");
    assert!(chooses > 250 && matters > 66, "{chooses} cases with a choice, {matters} end otherwise without");
    assert!(met.paused > 20 && met.lost > 40 && met.outlived > 5, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_traffic_classes() {
    let met = compare(random::CLASSES, random::CLASSES + 400);
    println!("400 cases: {met:?}");
    assert!(met.paused > 40 && met.lost > 80 && met.recovered > 40 && met.marked > 40 && met.cut > 10, "{met:?}");
}

/// Adaptive routing goes by the queue and the pauses of a packet's own class.
#[test]
fn engine_and_oracle_agree_on_adaptive_routing_of_classes() {
    let mut met = Reached::default();
    let (mut matters, mut by_class) = (0, 0);
    for seed in random::CLASSES_BY_CHOICE..random::CLASSES_BY_CHOICE + 400 {
        let mut case = random::case(seed);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let chosen = agreed.seen;
        let used: HashSet<u8> = case.flows.iter().map(|flow| flow.class).collect();
        by_class += u32::from(used.len() > 1);
        case.transport.grade_packets = None;
        matters += u32::from(shows_otherwise(seed) && by_oracle(&case) != chosen);
    }
    println!("400 cases: {matters} end otherwise without a choice, {by_class} use several classes; {met:?}");
    assert!(matters > 50 && by_class > 200, "{matters} {by_class}");
    assert!(met.paused > 20 && met.lost > 40, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_queues_further_on() {
    let mut met = Reached::default();
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    for seed in random::REPORTS..random::REPORTS + 400 {
        let mut case = random::case(seed);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let with = agreed.seen;
        let reports = case.transport.remote_queues_ps > 0;
        case.transport.remote_queues_ps = 0;
        let mut note = |what, yes: bool| *seen.entry(what).or_default() += u32::from(yes);
        let matter = shows_otherwise(seed) && by_oracle(&case) != with;
        note("reports matter", matter);
        note("reports matter with classes", matter && !case.transport.classes.is_empty());
        note("reports matter with changes", matter && !case.changes.is_empty());
        if shows_otherwise(seed) && !reports && case.transport.port_weights == PortWeights::Rates {
            case.transport.port_weights = PortWeights::Paths;
            note("rates matter", by_oracle(&case) != with);
        }
    }
    println!("400 cases: {seen:?} {met:?}");
    assert!(seen["reports matter"] > 12 && seen["rates matter"] > 1, "{seen:?}");
    assert!(seen.values().all(|&n| n > 0), "{seen:?}");
    assert!(met.paused > 20 && met.lost > 40, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_early_drops() {
    let mut met = Reached::default();
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    for seed in random::EARLY_DROPS..random::EARLY_DROPS + 400 {
        let mut case = random::case(seed);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let with = agreed.outcome;
        let mut note = |what, yes: bool| *seen.entry(what).or_default() += u32::from(yes);
        note("drops early", with.early_drops > 0);
        note("drops early and ends", with.early_drops > 0 && with.failure.is_none());
        note("drops early with classes", with.early_drops > 0 && !case.transport.classes.is_empty());
        note("drops early and marks other classes", with.early_drops > 0 && with.ecn_marks > 0);
        note("drops early by averages", with.early_drops > 0 && case.transport.ecn_average_weight > 0);
        note("drops early and for want of room", with.early_drops > 0 && with.drops > with.early_drops);
        case.transport.wred_drops = false;
        if !shows_otherwise(seed) {
            continue;
        }
        let without = simulate(&case, Order::Lineage, Opts::default());
        note("ends otherwise with marks", without.finish_ps != with.finish_ps);
    }
    println!("400 cases: {seen:?} {met:?}");
    assert!(seen["drops early"] > 150 && seen["ends otherwise with marks"] > 50, "{seen:?}");
    assert!(seen.values().all(|&n| n > 15), "{seen:?}");
}

#[test]
fn engine_and_oracle_agree_on_impaired_links() {
    let mut met = Reached::default();
    let (mut rates, mut losses, mut of_nics, mut matters) = (0, 0, 0, 0);
    for seed in random::IMPAIRED..random::IMPAIRED + 400 {
        let mut case = random::case(seed);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let seen = agreed.seen;
        rates += u32::from(case.changes.iter().any(|timed| matches!(timed.change, NetworkChange::Rate { .. })));
        losses += u32::from(case.changes.iter().any(|timed| matches!(timed.change, NetworkChange::Loss { .. })));
        of_nics += u32::from(seen.lost_by_nics.iter().any(|&lost| lost > 0));
        case.changes.retain(|timed| !matches!(timed.change, NetworkChange::Rate { .. } | NetworkChange::Loss { .. }));
        matters += u32::from(shows_otherwise(seed) && by_oracle(&case) != seen);
    }
    println!(
        "400 cases: {rates} with rates, {losses} with losses, {of_nics} of NICs, {matters} where it matters: {met:?}"
    );
    assert!(rates > 250 && losses > 100 && of_nics > 30 && matters > 66, "{rates} {losses} {of_nics} {matters}");
    assert!(met.paused > 40 && met.gave_up > 0, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_flows_that_move_to_other_ports() {
    let mut met = Reached::default();
    let (mut moving, mut strays, mut matters) = (0, 0, 0);
    for seed in random::MOVING..random::MOVING + 400 {
        let mut case = random::case(seed);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let moves = |case: &Case, timed: &TimedChange| match &timed.change {
            NetworkChange::NewPaths { flow, paths } => paths.ports() != case.paths[*flow].ports(),
            _ => false,
        };
        if !case.changes.iter().any(|timed| moves(&case, timed)) {
            continue;
        }
        moving += 1;
        let seen = agreed.seen;
        strays += u32::from(agreed.outcome.handed_over > 0);
        let all = std::mem::take(&mut case.changes);
        case.changes = all.into_iter().filter(|timed| !moves(&case, timed)).collect();
        matters += u32::from(shows_otherwise(seed) && by_oracle(&case) != seen);
    }
    println!(
        "400 cases: {moving} with flows that move, {strays} with packets for a NIC that their flow has left, {matters} where it matters: {met:?}"
    );
    assert!(moving > 100 && strays > 25 && matters > 23, "{moving} {strays} {matters}");
    assert!(met.paused > 40 && met.outlived > 40, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_averages_of_queues() {
    let mut met = Reached::default();
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    for seed in random::AVERAGED..random::AVERAGED + 400 {
        let mut case = random::case(seed);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let with = agreed.outcome;
        let mut note = |what, yes: bool| *seen.entry(what).or_default() += u32::from(yes);
        note("marks", with.ecn_marks > 0);
        note("marks with classes", with.ecn_marks > 0 && !case.transport.classes.is_empty());
        note("marks with queues of ports", with.ecn_marks > 0 && case.transport.port_queue_per_100g > 0);
        note("halves averages", with.halved > 0);
        case.transport.ecn_average_weight = 0;
        if !shows_otherwise(seed) {
            continue;
        }
        let without = simulate(&case, Order::Lineage, Opts::default());
        note("marks otherwise by the queue itself", without.ecn_marks != with.ecn_marks);
        note("ends otherwise by the queue itself", without.finish_ps != with.finish_ps);
    }
    println!("400 cases: {seen:?} {met:?}");
    let least = |what: &str| match what {
        "marks with classes" | "marks with queues of ports" => 15,
        "ends otherwise by the queue itself" => 14,
        "marks otherwise by the queue itself" => 40,
        _ => 120,
    };
    assert!(seen.iter().all(|(what, n)| *n >= least(what)), "{seen:?}");
}

#[test]
fn engine_and_oracle_agree_on_switches_that_cut_through() {
    let mut met = Reached::default();
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    let mut controls = std::collections::BTreeSet::new();
    for seed in random::CUT_THROUGH..random::CUT_THROUGH + 400 {
        let mut case = random::case(seed);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let with = agreed.outcome;
        let transport = &case.transport;
        let cuts = with.cut_through > 0;
        if cuts {
            controls.insert(transport.cc as u32);
        }
        let changes = |is: fn(&NetworkChange) -> bool| case.changes.iter().any(|timed| is(&timed.change));
        let mut note = |what, yes: bool| *seen.entry(what).or_default() += u32::from(cuts && yes);
        note("cuts through", true);
        note("does so now and then", with.cut_through < with.packet_hops / 4);
        note("with classes", !transport.classes.is_empty());
        note("with queues of ports", transport.port_queue_per_100g > 0);
        note("with a watchdog", transport.watchdog.is_some());
        note("with links that fail", changes(|change| matches!(change, NetworkChange::LinkDown(_))));
        note("with rates that change", changes(|change| matches!(change, NetworkChange::Rate { .. })));
        note("with links that lose packets", changes(|change| matches!(change, NetworkChange::Loss { .. })));
        note("with slow links", !case.network.slow_arcs.is_empty());
        note("with several paths", case.paths.iter().any(|paths| paths.data.len() > 1));
        case.transport.cut_through_bytes = 0;
        if !shows_otherwise(seed) {
            continue;
        }
        let without = simulate(&case, Order::Lineage, Opts::default());
        note("ends otherwise than by store and forward", without.finish_ps != with.finish_ps);
    }
    println!("400 cases: {seen:?}, controls {controls:?}, {met:?}");
    let least = |what: &str| match what {
        "cuts through" => 200,
        "ends otherwise than by store and forward" => 66,
        "does so now and then" => 50,
        _ => 15,
    };
    assert!(seen.iter().all(|(what, n)| *n >= least(what)), "{seen:?}");
    assert_eq!(controls.len(), 8, "{controls:?}");
    assert!(met.paused > 40 && met.lost > 40, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_the_watchdog_of_pauses() {
    let mut met = Reached::default();
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    for seed in random::WATCHED..random::WATCHED + 600 {
        let mut case = random::case(seed);
        let agreed = compare_case(&case, &format!("seed {seed}"), 1 + seed % 3);
        met.note(agreed.reach);
        let with = agreed.outcome;
        let (counts, transport) = (with.watchdog, &case.transport);
        let ends_early = |out: &Outcome| out.failure.is_some();
        let mut note = |what, yes: bool| *seen.entry(what).or_default() += u32::from(yes);
        note("acts", counts.starts > 0);
        note("ends", counts.ends > 0);
        note("drops", counts.drops > 0);
        note("acts, and all ends", counts.starts > 0 && with.failure.is_none());
        note("drops, and all ends", counts.drops > 0 && with.failure.is_none());
        note("forwards", counts.starts > 0 && !transport.watchdog.is_some_and(|watchdog| watchdog.drops));
        note("overrules a pause frame", counts.overruled > 0);
        note("acts where nothing else is left", counts.last_hopes > 0);
        note("acts with classes", counts.starts > 0 && !transport.classes.is_empty());
        note("acts with adaptive routing", counts.starts > 0 && transport.grade_packets.is_some());
        note("acts with changes", counts.starts > 0 && !case.changes.is_empty());
        case.transport.watchdog = None;
        if !shows_otherwise(seed) {
            continue;
        }
        let without = simulate(&case, Order::Lineage, Opts::default());
        note("matters", counts.starts > 0 && without.finish_ps != with.finish_ps);
        note("saves what would fail", ends_early(&without) && !ends_early(&with));
    }
    println!("600 cases: {seen:?} {met:?}");
    for (what, least) in [("acts", 200), ("ends", 100), ("drops", 120), ("drops, and all ends", 40), ("forwards", 40)] {
        assert!(seen[what] >= least, "{what}: {seen:?}");
    }
    assert!(seen.values().all(|&n| n > 0), "{seen:?}");
}

/// The case, with links that fail at the very instant at which a packet arrives for a paused port: those of all ports that are paused then, the highest port
/// first. `None`: there is no such instant.
fn failing_as_a_packet_arrives(mut case: Case) -> Option<Case> {
    case.changes.clear();
    let mut built = engine::tables(&case, BuildOptions::default());
    while !engine::is_final(&built.tables) {
        cpu::run(&mut built.tables.view(), 1);
        engine::go_on(&mut built.tables);
        if let Some(down_ps) = arrival_at_paused_port(&built.tables) {
            let t = &built.tables;
            let paused = (0..t.ports.len()).rev().filter(|&port| is_paused_with_packets(t, port));
            let mut links: Vec<u32> = paused.map(|port| built.end_arcs[t.nics.len() + port] / 2).collect();
            // Both ends of a link may be paused.
            let mut seen = HashSet::new();
            links.retain(|link| seen.insert(*link));
            let changes = |time_ps, change: fn(u32) -> NetworkChange| {
                links.iter().map(move |&link| TimedChange { time_ps, change: change(link) })
            };
            case.changes = changes(down_ps, NetworkChange::LinkDown).collect();
            case.changes.extend(changes(down_ps + 3_000_000, NetworkChange::LinkUp));
            return Some(case);
        }
    }
    None
}

/// Whether a port has packets that a pause holds, in any of its queues.
fn is_paused_with_packets(t: &OwnedTables, port: usize) -> bool {
    let n_classes = t.exps[0].class_n as usize;
    let first = (t.nics.len() + port) * n_classes;
    let mut queues = t.class_queues[first..first + n_classes].iter();
    let Port { paused, q_head, .. } = t.ports[port];
    paused != 0 && q_head.is_some() || queues.any(|queue| queue.paused != 0 && queue.q_head.is_some())
}

/// The time in ps at which a packet arrives for a port that is paused and has another one in its queue.
fn arrival_at_paused_port(t: &OwnedTables) -> Option<u64> {
    let arrival = |wire: &Wire| {
        let packet = t.packets.get(wire.head.usize())?;
        let is_frame = (packet.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::FRAME;
        // The next entry of its path is the port.
        let port = t.paths.get(packet.path as usize).filter(|_| !is_frame)?;
        is_paused_with_packets(t, port.usize()).then_some(packet.t)
    };
    t.wires[t.nics.len()..].iter().find_map(arrival)
}

/// A change comes before every event of its instant, the arrival of a packet at the port that it kicks among them.
#[test]
fn changes_come_before_what_happens_at_their_instant() {
    let (mut cases, mut several, mut with_classes) = (0, 0, 0);
    let seeds = [0..800, random::SELECTIVE..random::SELECTIVE + 400, random::CLASSES..random::CLASSES + 400];
    for seed in seeds.into_iter().flatten() {
        if let Some(case) = failing_as_a_packet_arrives(random::case(seed)) {
            compare_case(&case, &format!("seed {seed}, a paused port is cut off"), 1);
            cases += 1;
            several += u32::from(case.changes.len() > 2);
            with_classes += u32::from(seed >= random::CLASSES);
        }
    }
    println!("{cases} cases, {several} with several links, {with_classes} with classes");
    assert!(with_classes > 20, "in {with_classes} cases with classes a packet arrives for a paused port");
    assert!(
        cases > 60 && several > 10,
        "in {cases} cases a packet arrives for a paused port, in {several} several are paused"
    );
}

/// More of the same, for as long as the soak lasts (`HYPERFOLD_SOAK_MINUTES` for all soak tests together).
#[test]
#[ignore = "soak: random cases for minutes; scripts/test.sh --soak and CI run it"]
fn soak_engine_and_oracle_agree() {
    let seeds = support::soak::third(|from| {
        compare(from, from + 500);
        compare(random::SELECTIVE + from, random::SELECTIVE + from + 500);
        compare(random::CHANGES + from, random::CHANGES + from + 500);
        compare(random::SLOW + from, random::SLOW + from + 500);
        compare(random::UEC + from, random::UEC + from + 500);
        compare(random::ADAPTIVE + from, random::ADAPTIVE + from + 500);
        compare(random::CLASSES + from, random::CLASSES + from + 500);
        compare(random::IMPAIRED + from, random::IMPAIRED + from + 500);
        compare(random::MOVING + from, random::MOVING + from + 500);
        500
    });
    println!(
        "{seeds} cases agree, as many with packets in any order, with links that fail, with slow links, with queues of ports, with adaptive routing, with classes, with impaired links, and with flows that move"
    );
}
