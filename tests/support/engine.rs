//! Running a [`Case`] on the CPU engine and reading its outcome.

use hyperfold_columns::{LinkEndIdx, NEVER, NicIdx, OwnedTables, PortIdx, status, watch};
use hyperfold_engine::{Engine, EngineError, SliceOutcome, cpu};
use hyperfold_host::batches::conserve;
use hyperfold_host::tables::build_tables::{BuildOptions, Built, GraphCase, PacketCase, build};

use super::Case;

/// Tables of a case.
pub fn tables(case: &Case, options: BuildOptions) -> Built {
    tables_of(case, None, options)
}

/// Tables of a case and, maybe, a task graph.
pub fn tables_of(case: &Case, graph: Option<GraphCase>, options: BuildOptions) -> Built {
    build(&PacketCase {
        graph,
        network: &case.network,
        flows: &case.flows,
        paths: &case.paths,
        rtt: &case.rtt,
        transport: &case.transport,
        changes: &case.changes,
        options,
    })
    .unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a built case on the CPU engine until it stops for good; returns its status.
pub fn run_cpu(t: &mut OwnedTables) -> u32 {
    let t = &mut *t.view();
    loop {
        cpu::run(t, u32::MAX);
        if hyperfold_engine::is_final(t) {
            return t.exps[0].status;
        }
        hyperfold_engine::go_on(t, u32::MAX as u64 / 2).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// Whether every law of conservation is kept.
pub fn conserved(t: &OwnedTables) -> Result<(), conserve::Violation> {
    conserve::check(&t.clone().view(), &[])
}

/// Whether the experiment has come to an end. One that has stopped for the host has not.
pub fn is_final(t: &OwnedTables) -> bool {
    let status = t.exps[0].status;
    let waits_for_change = t.changes.next_time().is_some() && matches!(status, status::TIME_LIMIT | status::DONE);
    let is_due = |time| time <= t.exps[0].now && time < t.series.time_limit;
    let may_act = t.changes.watchdog.is_some() || t.changes.reports.is_some();
    let may_go_on = may_act && matches!(status, status::TIME_LIMIT | status::DONE);
    if may_go_on && !waits_for_change {
        return hyperfold_engine::is_final(&t.clone().view());
    }
    let waits_for_sample = status == status::TIME_LIMIT && t.series.next_time().is_some_and(is_due);
    !matches!(status, status::RUNNING | status::NEEDS_PACKETS) && !waits_for_change && !waits_for_sample
}

/// Lets an experiment go on that waits for packets, or has stopped for the host.
pub fn go_on(t: &mut OwnedTables) {
    hyperfold_engine::go_on(&mut t.view(), u64::from(u32::MAX)).unwrap_or_else(|e| panic!("{e}"));
}

/// Drops of the ports of switches, by the arc that leaves the port.
pub fn drops_by_arc(case: &Case, built: &Built) -> Vec<u64> {
    let t = &built.tables;
    let mut by_arc = vec![0; 2 * case.network.links.len()];
    for (&arc, port) in built.end_arcs.iter().skip(t.nics.len()).zip(&t.ports) {
        by_arc[arc as usize] = port.drops as u64;
    }
    by_arc
}

/// Packets that the watchdog dropped, by arc, and how often it began to act.
pub fn by_watchdog(case: &Case, built: &Built) -> (Vec<u64>, u64) {
    let t = &built.tables;
    let (mut by_arc, mut starts) = (vec![0; 2 * case.network.links.len()], 0);
    if t.exps[0].watch_first == 0 {
        return (by_arc, starts);
    }
    for (port, &arc) in PortIdx::all(t.exps[0].port_len).zip(&built.end_arcs[t.nics.len()..]) {
        for class in 0..t.exps[0].class_n.max(1) {
            let words = &t.shared[t.exps[0].watch_words(port, class)..];
            by_arc[arc as usize] += u64::from(words[watch::DROPS as usize]);
            starts += u64::from(words[watch::STARTS as usize]);
        }
    }
    (by_arc, starts)
}

/// For how long each link end was paused, by arc. A pause that has not ended lasts until `end_ps`.
pub fn paused_by_arc(case: &Case, built: &Built, end_ps: u64) -> Vec<u64> {
    let mut tables = built.tables.clone();
    let t = tables.view();
    let mut by_arc = vec![0; 2 * case.network.links.len()];
    for (end, &arc) in built.end_arcs.iter().enumerate() {
        by_arc[arc as usize] = t.paused_until(LinkEndIdx::new(end), end_ps);
    }
    by_arc
}

/// Packets of NICs that got lost at random, by arc.
pub fn lost_by_nics(case: &Case, built: &Built) -> Vec<u64> {
    let t = &built.tables;
    let mut by_arc = vec![0; 2 * case.network.links.len()];
    for (n, &arc) in NicIdx::all(t.exps[0].nic_len).zip(&built.end_arcs) {
        by_arc[arc as usize] = u64::from(t.changes.lost_of_nic(&t.exps[0], &t.shared, n));
    }
    by_arc
}

/// A slice of `engine` over experiments that stand alone.
pub fn advance(
    engine: &mut dyn Engine,
    batch: &mut [OwnedTables],
    packet_limit: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<SliceOutcome, EngineError> {
    OwnedTables::with_views(batch, |batch| engine.advance(batch, packet_limit, stop))
}

/// Completion times by flow of the case, ps after the start; `None` for an unfinished flow.
pub fn fct_ps(built: &Built) -> Vec<Option<u64>> {
    built
        .flow_rows
        .iter()
        .map(|&row| {
            let tx = &built.tables.flow_tx[row];
            (tx.finish != NEVER).then(|| tx.finish - tx.start)
        })
        .collect()
}

/// Data and ACK packets that left a port.
pub fn packet_hops(t: &OwnedTables) -> u64 {
    t.nics.iter().map(|n| n.hops).sum::<u64>() + t.ports.iter().map(|p| p.hops).sum::<u64>()
}

/// Pause frames received, by NICs and ports.
pub fn pauses(t: &OwnedTables) -> u64 {
    t.nics.iter().map(|n| n.pauses as u64).sum::<u64>() + t.ports.iter().map(|p| p.pauses as u64).sum::<u64>()
}

/// Runs a case to its end: every flow complete, every law of conservation kept, or a panic that names `name`.
pub fn finish(name: &str, case: &Case, options: BuildOptions) -> Built {
    let mut built = tables(case, options);
    finish_built(name, &mut built);
    built
}

/// [`finish`] for tables at hand.
pub fn finish_built(name: &str, built: &mut Built) {
    let status = run_cpu(&mut built.tables);
    assert_eq!(status, status::DONE, "{name}: status {status}");
    conserved(&built.tables).unwrap_or_else(|e| panic!("{name}: {e}"));
    let unfinished = fct_ps(built).iter().filter(|f| f.is_none()).count();
    assert_eq!(unfinished, 0, "{name}: flows without a completion");
}
