//! The CPU engine against the oracle on task graphs: those that people write, under every congestion control and every way to lose or pause, and random ones.

use crate::oracle::{Failure, LATE_PS, Opts, Order, Times, simulate_tasks};
use crate::reached::{Credit, Reach, Reached};
use crate::support;
use crate::support::random::{ADAPTIVE, CHANGES, CLASSES, IMPAIRED, MOVING, SELECTIVE, SLOW, SWIFT, UEC};
use crate::support::tasks::TaskCase;
use crate::support::{engine, graphs, random_tasks};
use hyperfold_columns::{NEVER, status};
use hyperfold_host::tables::build_tables::BuildOptions;
use hyperfold_llm::workload::program::Dim;
use hyperfold_llm::workload::tasks::{QueuePair, TaskGraph, Work};
use hyperfold_network::changes::NetworkChange;
use hyperfold_network::transport::{LossRecovery, PauseWatchdog};

/// What can be compared of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    tasks: Vec<Times>,
    /// When each plain flow finishes.
    finish_ps: Vec<Option<u64>>,
    /// By flow and queue pair: sum of its round-trip times in ps, and their number.
    round_trips: Vec<(u64, u32)>,
    gave_up: bool,
    packet_hops: u64,
    ecn_marks: u64,
    pfc_pauses: u64,
    /// By arc.
    paused_ps: Vec<u64>,
    drops: u64,
    /// By arc of the port, where links that are down are the only cause of drops.
    lost: Option<Vec<u64>>,
    max_queue_bytes: u64,
    /// By arc; of arcs that carry packets.
    tx_bytes: Vec<u64>,
}

impl Seen {
    /// The first difference from what was expected.
    fn difference(&self, expected: &Seen) -> Option<String> {
        if self == expected {
            return None;
        }
        // The earliest difference in time says most.
        let time = |t: &Times| [t.at, t.done, t.got].into_iter().flatten().min().unwrap_or(NEVER);
        let tasks = self.tasks.iter().zip(&expected.tasks).enumerate();
        let first = tasks.filter(|(_, (a, b))| a != b).min_by_key(|(_, (a, b))| time(a).min(time(b)));
        Some(match first {
            Some((i, (got, expected))) => format!("task {i}: {got:?}, expected {expected:?}"),
            None => format!("{self:?}\nexpected {expected:?}"),
        })
    }
}

fn by_oracle(c: &TaskCase, name: &str) -> Seen {
    let o = simulate_tasks(&c.case, Some(&c.input()), Order::Lineage, Opts::default());
    // Links that stay down may keep it from its end.
    let may_be_stuck = !c.case.changes.is_empty();
    assert!(o.failure != Some(Failure::Stuck) || may_be_stuck, "{name}: a graph without cycles comes to its end");
    Seen {
        tasks: o.tasks,
        finish_ps: o.finish_ps[..c.first_qp].to_vec(),
        round_trips: o.round_trips,
        gave_up: matches!(o.failure, Some(Failure::GaveUp { .. })),
        packet_hops: o.packet_hops,
        ecn_marks: o.ecn_marks,
        pfc_pauses: o.pfc_pauses,
        paused_ps: o.paused_ps,
        drops: o.drops,
        lost: (o.lost.iter().sum::<u64>() == o.drops).then_some(o.lost),
        max_queue_bytes: o.max_queue_bytes,
        tx_bytes: o.tx_bytes,
    }
}

/// Forgets when messages were ready that wait for one before them, which never was: they are not posted.
fn only_posted(graph: &TaskGraph, times: &mut [Times]) {
    let mut waits = vec![false; graph.qps.len()];
    for (task, times) in graph.tasks.iter().zip(times) {
        if let Work::Message { qp, .. } = task.work {
            waits[qp as usize] |= times.at.is_none();
            if waits[qp as usize] {
                times.at = None;
            }
        }
    }
}

fn by_engine(c: &TaskCase, name: &str, step_divisor: u64) -> Seen {
    let mut built = engine::tables_of(
        &c.case,
        Some(c.input()),
        BuildOptions { step_divisor, rtt_means: true, ..BuildOptions::default() },
    );
    let ended = engine::run_cpu(&mut built.tables);
    assert!(matches!(ended, status::DONE | status::GAVE_UP), "{name}: status {ended} flags {}", built.tables.shared[0]);
    engine::conserved(&built.tables).unwrap_or_else(|e| panic!("{name}: {e}"));
    let t = &built.tables;
    let time = |t: u64| (t != NEVER).then_some(t);
    let ends = t.nics.iter().map(|n| n.tx_bytes).chain(t.ports.iter().map(|p| p.tx_bytes));
    let mut tx_bytes = vec![0; 2 * c.case.network.links.len()];
    for (&arc, bytes) in built.end_arcs.iter().zip(ends) {
        tx_bytes[arc as usize] = bytes;
    }
    let rows = t.tasks[..c.graph.tasks.len()].iter();
    let mut tasks: Vec<Times> = rows.map(|r| Times { at: time(r.at), done: time(r.done), got: time(r.got) }).collect();
    only_posted(&c.graph, &mut tasks);
    Seen {
        tasks,
        finish_ps: built.flow_rows[..c.first_qp].iter().map(|&r| time(t.flow_tx[r].finish)).collect(),
        round_trips: built.flow_rows.iter().map(|&r| (t.flow_tx[r].rtt_sum, t.flow_tx[r].rtt_seen)).collect(),
        gave_up: ended == status::GAVE_UP,
        packet_hops: engine::packet_hops(t),
        ecn_marks: t.ports.iter().map(|p| p.marks).sum(),
        pfc_pauses: engine::pauses(t),
        paused_ps: engine::paused_by_arc(&c.case, &built, LATE_PS),
        drops: t.ports.iter().map(|p| p.drops as u64).chain(engine::lost_by_nics(&c.case, &built)).sum(),
        lost: Some(engine::drops_by_arc(&c.case, &built)),
        max_queue_bytes: t.ports.iter().map(|p| p.max_q as u64).max().unwrap_or(0),
        tx_bytes,
    }
}

/// Runs a case by both, with the engine's step divided by each of `divisors`; panics with the first difference. Returns what happened.
fn compare(c: &TaskCase, name: &str, divisors: &[u64]) -> Seen {
    let expected = by_oracle(c, name);
    for &divisor in divisors {
        let mut got = by_engine(c, name, divisor);
        if expected.lost.is_none() {
            got.lost = None;
        }
        if expected.gave_up {
            // The step decides when it stops after giving up, not whether it gives up.
            assert!(got.gave_up, "{name}: the oracle gave up, the engine did not");
        } else if let Some(difference) = got.difference(&expected) {
            panic!("{name} ({:?}, step / {divisor}): {difference}", c.case.transport.cc);
        }
    }
    expected
}

fn reach(c: &TaskCase, seen: &Seen) -> Reach {
    let message = |work: Work| if let Work::Message { bytes, .. } = work { bytes } else { 0 };
    let messages = c.graph.tasks.iter().map(|task| message(task.work));
    let largest = messages.chain(c.case.flows[..c.first_qp].iter().map(|f| f.bytes)).max();
    Reach {
        pauses: seen.pfc_pauses,
        marks: seen.ecn_marks,
        drops: seen.drops,
        only_links: seen.lost.is_some(),
        gave_up: seen.gave_up,
        ended: seen.tasks.iter().all(|t| t.done.is_some()) && seen.finish_ps.iter().all(Option::is_some),
        outlives: true,
        credit: Credit::of_case(&c.case.transport, largest.unwrap_or(0)),
    }
}

/// Compares the seeds `from..to`; returns what they reached.
fn compare_random(from: u64, to: u64) -> Reached {
    let mut reached = Reached::default();
    for seed in from..to {
        let case = random_tasks::case(seed);
        let seen = compare(&case, &format!("seed {seed}"), &[1, 2 + seed % 2]);
        reached.note(reach(&case, &seen));
    }
    reached
}

#[test]
fn engine_and_oracle_agree_on_task_graphs_under_swift() {
    let Reached { paused, lost, .. } = compare_random(SWIFT, SWIFT + 400);
    assert!(paused > 20 && lost > 10, "{paused} of 400 cases paused, {lost} lost packets");
}

#[test]
fn engine_and_oracle_agree_on_task_graphs_with_packets_in_any_order() {
    let Reached { paused, lost, .. } = compare_random(SELECTIVE, SELECTIVE + 400);
    assert!(paused > 20 && lost > 10, "{paused} of 400 cases paused, {lost} lost packets");
}

#[test]
fn engine_and_oracle_agree_on_task_graphs_with_links_that_fail() {
    let met = compare_random(CHANGES, CHANGES + 400);
    println!("400 graphs: {met:?}");
    assert!(met.paused > 20 && met.cut > 60 && met.outlived > 30 && met.gave_up > 5 && met.stuck > 5, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_task_graphs_with_slow_links() {
    let met = compare_random(SLOW, SLOW + 400);
    println!("400 graphs: {met:?}");
    assert!(met.paused > 20 && met.lost > 10, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_task_graphs_with_impaired_links() {
    let met = compare_random(IMPAIRED, IMPAIRED + 400);
    println!("400 graphs: {met:?}");
    assert!(met.paused > 20 && met.lost > 60 && met.recovered > 20 && met.gave_up > 5, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_task_graphs_under_ultra_ethernet() {
    let met = compare_random(UEC, UEC + 400);
    println!("400 graphs: {met:?}");
    assert!(met.lost > 60 && met.recovered > 40 && met.marked > 40 && met.gave_up > 5, "{met:?}");
    assert!(met.credited > 100 && met.credited_ended > 80 && met.pulled_ended > 60, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_task_graphs_under_adaptive_routing() {
    let met = compare_random(ADAPTIVE, ADAPTIVE + 400);
    println!("400 graphs: {met:?}");
    assert!(met.paused > 20 && met.lost > 40 && met.outlived > 5, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_task_graphs_with_traffic_classes() {
    let met = compare_random(CLASSES, CLASSES + 400);
    println!("400 graphs: {met:?}");
    assert!(met.paused > 20 && met.lost > 40 && met.recovered > 20 && met.marked > 40, "{met:?}");
}

#[test]
fn engine_and_oracle_agree_on_task_graphs_whose_ports_move() {
    let mut met = Reached::default();
    let (mut moving, mut back, mut matters, mut saved) = (0, 0, 0, 0);
    for seed in MOVING..MOVING + 600 {
        let mut case = random_tasks::case(seed);
        let seen = compare(&case, &format!("seed {seed}"), &[1, 2 + seed % 2]);
        met.note(reach(&case, &seen));
        let moves = |change: &NetworkChange| matches!(change, NetworkChange::MovePort { .. });
        if !case.case.changes.iter().any(|timed| moves(&timed.change)) {
            continue;
        }
        moving += 1;
        let returns =
            |change: &NetworkChange| matches!(change, NetworkChange::MovePort { home, place } if home == place);
        back += u32::from(case.case.changes.iter().any(|timed| returns(&timed.change)));
        let paths = case.case.paths.clone();
        case.case.changes.retain(|timed| match &timed.change {
            NetworkChange::NewPaths { flow, paths: new } => new.ports() == paths[*flow].ports(),
            change => !moves(change),
        });
        let staying = by_oracle(&case, "without moves");
        matters += u32::from(staying != seen);
        saved += u32::from(reach(&case, &seen).ended && !reach(&case, &staying).ended);
    }
    println!(
        "600 graphs: {moving} with ports that move, {back} that come back, {matters} where it matters, {saved} that end by it alone: {met:?}"
    );
    assert!(moving > 150 && back > 80 && matters > 100 && saved > 20, "{moving} {back} {matters} {saved}");
}

/// Marking by averages of queues, and a watchdog that takes ordinary pauses for a deadlock.
#[test]
fn engine_and_oracle_agree_on_task_graphs_with_averages_of_queues_and_a_watchdog() {
    let (mut met, mut matters) = (Reached::default(), 0);
    for seed in (20_000..20_250).chain(CLASSES + 20_000..CLASSES + 20_150) {
        let mut case = random_tasks::case(seed);
        let transport = &mut case.case.transport;
        transport.ecn_average_weight = 1 + (seed % 5) as u32;
        let detect_ps = 200_000 + 700_000 * (seed % 3);
        let watchdog = PauseWatchdog { detect_ps, restore_ps: 500_000, drops: seed.is_multiple_of(2) };
        transport.watchdog = Some(watchdog).filter(|_| transport.lossless_classes() > 0);
        let seen = compare(&case, &format!("seed {seed}"), &[1, 2 + seed % 2]);
        met.note(reach(&case, &seen));
        case.case.transport.watchdog = None;
        matters += u32::from(by_oracle(&case, "without a watchdog").difference(&seen).is_some());
    }
    println!("400 graphs: {matters} end otherwise without a watchdog, {met:?}");
    assert!(matters > 10 && met.paused > 20 && met.marked > 40, "{matters} {met:?}");
}

#[test]
fn engine_and_oracle_agree_on_task_graphs_over_switches_that_cut_through() {
    let (mut met, mut matters) = (Reached::default(), 0);
    let seeds = (30_000..30_200).chain(UEC + 30_000..UEC + 30_100).chain(CLASSES + 30_000..CLASSES + 30_100);
    for seed in seeds {
        let mut case = random_tasks::case(seed);
        let transport = &mut case.case.transport;
        let most = transport.payload + transport.data_overhead;
        transport.cut_through_bytes = [14, 64, 64, 150][(seed % 4) as usize].min(most);
        let seen = compare(&case, &format!("seed {seed}"), &[1, 2 + seed % 2]);
        met.note(reach(&case, &seen));
        case.case.transport.cut_through_bytes = 0;
        matters += u32::from(by_oracle(&case, "store and forward").difference(&seen).is_some());
    }
    println!("400 graphs: {matters} end otherwise by store and forward, {met:?}");
    assert!(matters > 250 && met.paused > 20 && met.marked > 40, "{matters} {met:?}");
}

/// After a timeout that came too early, a packet sent again asks for credit and is dropped, while all that was sent before it arrives. Nothing is in flight
/// then, and the receiver does not know that anything is wanted.
#[test]
fn a_lost_request_for_credit_is_made_again() {
    let met = compare_random(UEC + 2563, UEC + 2564);
    assert!(met.credited_ended == 1 && met.lost == 1, "{met:?}");
}

/// Both could misread the semantics in the same way; not what anybody can reckon.
#[test]
fn times_are_those_reckoned_by_hand() {
    let mut graph = TaskGraph {
        qps: vec![QueuePair { src: 5, dst: 6, lane: 0, dim: Dim::Other }],
        servers: 1,
        ..TaskGraph::default()
    };
    let first = graph.task(5, 2_000_000, Work::Message { qp: 0, bytes: 1_000 });
    let second = graph.task(5, 0, Work::Message { qp: 0, bytes: 500 });
    let arrived = graph.task(6, 700, Work::Delay);
    graph.after_arrival(first, arrived);
    let acknowledged = graph.join(5);
    graph.after(second, acknowledged);
    let [mut ready, mut released] = [[0; 2]; 2];
    for (k, (from, to, latency_ps, delay_ps)) in
        [(5, 6, 1_000_000, 500_000), (6, 5, 2_000_000, 0)].into_iter().enumerate()
    {
        ready[k] = graph.task(from, 1_000_000, Work::Delay);
        let gate = graph.gate(Some(0), 3_000_000, latency_ps);
        graph.into_gate(ready[k], gate);
        released[k] = graph.task(to, delay_ps, Work::Delay);
        graph.release(gate, released[k]);
    }
    let seen = compare(&graphs::quiet(graph), "by hand", &[1, 2, 3]);
    let times = |task: u32| {
        let t = seen.tasks[task as usize];
        (t.at, t.got, t.done)
    };
    // 1048 bytes take 209.6 ns on each of two links, an ACK 12 ns, every link 1 us more.
    let (arrives, comes_back) = (2_000_000 + 2 * 1_209_600, 2 * 1_012_000);
    assert_eq!(times(first), (Some(2_000_000), Some(arrives), Some(arrives + comes_back)));
    // Ready at 0, but posted after the first; 548 bytes take 109.6 ns behind it.
    assert_eq!(times(second), (Some(2_000_000), Some(arrives + 109_600), Some(arrives + 109_600 + comes_back)));
    assert_eq!(times(arrived), (Some(arrives + 700), None, Some(arrives + 700)));
    assert_eq!(times(acknowledged).2, times(second).2);
    // The server takes both gates' 3 us in turn.
    assert_eq!(times(released[0]).0, Some(1_000_000 + 3_000_000 + 1_000_000 + 500_000));
    assert_eq!(times(released[1]).0, Some(1_000_000 + 6_000_000 + 2_000_000));
}

#[test]
fn engine_and_oracle_agree_on_graphs_that_people_write() {
    let mut met = [0; 2];
    let all = graphs::all();
    for (name, case) in &all {
        let seen = compare(case, name, &[1, 2, 3]);
        assert!(!seen.gave_up, "{name} gave up");
        met[0] += u32::from(seen.pfc_pauses > 0);
        met[1] += u32::from(seen.drops > 0);
    }
    let [paused, lost] = met;
    println!("{} graphs: {paused} with pauses, {lost} with losses", all.len());
    assert!(paused > 0 && lost > 0, "the graphs no longer reach pauses and losses");
}

#[test]
fn engine_and_oracle_agree_on_random_task_graphs() {
    let Reached { paused, lost, gave_up, .. } = compare_random(0, 400);
    println!("400 graphs: {paused} with pauses, {lost} with losses, {gave_up} gave up");
    assert!(paused > 40 && lost > 15 && gave_up > 0, "the random graphs no longer reach storms and losses");
}

/// More of the same, for as long as the soak lasts (`HYPERFOLD_SOAK_MINUTES` for all soak tests together).
#[test]
#[ignore = "soak: random task graphs for minutes; scripts/test.sh --soak and CI run it"]
fn soak_engine_and_oracle_agree_on_task_graphs() {
    let seeds = support::soak::third(|from| {
        compare_random(from, from + 500);
        compare_random(SELECTIVE + from, SELECTIVE + from + 500);
        compare_random(CHANGES + from, CHANGES + from + 500);
        compare_random(SLOW + from, SLOW + from + 500);
        compare_random(UEC + from, UEC + from + 500);
        compare_random(ADAPTIVE + from, ADAPTIVE + from + 500);
        compare_random(CLASSES + from, CLASSES + from + 500);
        compare_random(MOVING + from, MOVING + from + 500);
        500
    });
    println!(
        "{seeds} task graphs agree, as many with packets in any order, with links that fail, with slow links, with queues of ports, with adaptive routing, with classes, and with ports that move"
    );
}

/// All graphs with senders of Ultra Ethernet, whatever they drew, with mixed entropies.
#[test]
fn engine_and_oracle_agree_on_task_graphs_with_mixed_entropies() {
    let mut met = Reached::default();
    for seed in UEC..UEC + 400 {
        let mut case = random_tasks::case(seed);
        let transport = &mut case.case.transport;
        if transport.loss_recovery == LossRecovery::Uec {
            (transport.recycles_paths, transport.spray_in_turn) = (true, true);
            let seen = compare(&case, &format!("seed {seed}"), &[1 + seed % 3]);
            met.note(reach(&case, &seen));
        }
    }
    println!("400 graphs: {met:?}");
    assert!(met.lost > 60 && met.recovered > 40 && met.marked > 40 && met.gave_up > 5, "{met:?}");
}
