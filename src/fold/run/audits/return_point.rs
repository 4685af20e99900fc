//! A copy of an experiment from before a switch filled up. If the switch may have paused, the experiment goes back to it and goes on without skips.
//!
//! Layer: fold/run. Nothing was skipped or rounded before the copy was made, so what follows it is exact whenever it was made. That is why it may be made
//! at a time that depends on turns and on the memo.

use super::copy_on::simulate_all;
use super::prepare_copy::copy_of;
use crate::memo::in_flight::InFlight;
use crate::rows::buffer_guard::BufferGuard;
use crate::run::fold_run::{FoldRun, ReturnPoint, unsettled_hops};
use crate::run::partitions::couple::go_on_without_skips;
use crate::run::stop::Stop;
use hyperfold_columns::{OwnedTables, Tables};
use hyperfold_engine::FoldStats;
use std::sync::Arc;

/// The next copy is made at the latest when 1/`SHARE` of the experiment was simulated since the last one: what is simulated in vain is at most that.
const SHARE: u64 = 50;
/// Bytes of tables for each packet-hop between two copies. A packet-hop takes 20 ns and copying 8 bytes takes 1 ns, so copies take 5 % of the time at most.
const BYTES_A_HOP: u64 = 8;

/// Bytes of tables up to which copies are kept (our choice). The memory that a run plans has no room for copies of large experiments, which start over.
const MAX_BYTES: u64 = 16 << 20;

/// Copies `run` and its tables at `at_ps` if there is no copy yet, if a switch has come nearer to a pause since the last copy, or if that was long ago.
/// PRECONDITION: everything before `at_ps` has happened, and nothing was skipped or rounded.
pub(crate) fn keep_return_point(run: &mut FoldRun, t: &Tables, at_ps: u64) {
    let (approached, progress_hops) = (run.guard.approached(), run.gain.progress_hops());
    let is_fresh = |point: &ReturnPoint| approached == point.approached && progress_hops < point.renewed_at_hops;
    // A switch that was far from a pause a moment ago fills up too fast to be coupled in time.
    let fills_at_once = run.return_point.is_none() && approached == BufferGuard::NEAREST;
    if fills_at_once || t.bytes() > MAX_BYTES || run.return_point.as_deref().is_some_and(is_fresh) {
        return;
    }
    // A copy from the last moment may be too late to couple the switch before it pauses. So the one before is kept as well.
    let mut last = run.return_point.take();
    let earlier = match &mut last {
        Some(point) if point.approached == BufferGuard::NEAREST => point.earlier.take(),
        _ if approached == BufferGuard::NEAREST => last.take(),
        _ => None,
    };
    let mut tables = last.map_or_else(OwnedTables::default, |point| point.tables);
    t.copy_to(&mut tables);
    let renewed_after_hops = (run.gain.needed_hops() / SHARE).max(t.bytes() / BYTES_A_HOP);
    let renewed_at_hops = progress_hops.saturating_add(renewed_after_hops);
    let point = ReturnPoint { run: copy_of(run), tables, at_ps, approached, renewed_at_hops, earlier };
    run.return_point = Some(Box::new(point));
}

/// Goes back from `run` to `point`, and on without skips. If that fails too, there may be an earlier point.
///
/// # Errors
/// The state of a looked-up partition is not to be had, or packet records ran out.
pub(crate) fn go_back(point: ReturnPoint, run: FoldRun, t: &mut Tables, why: &str) -> Result<FoldRun, Stop> {
    let ReturnPoint { run: mut next, tables, at_ps, earlier, .. } = point;
    let simulated = run.stats.hops_simulated + unsettled_hops(&run, t);
    let FoldRun { memo, stats, mut timer, ticket, explainer, limit, .. } = run;
    let (alone, balance) = (ticket.alone, Arc::clone(&ticket.balance));
    drop(ticket);
    next.ticket = memo.as_ref().map_or_else(Arc::<InFlight>::default, |memo| Arc::clone(&memo.in_flight)).enter();
    (next.ticket.alone, next.ticket.balance) = (alone, balance);
    timer.start_over();
    (next.memo, next.timer, next.explainer, next.limit) = (memo, timer, explainer, limit);
    t.overwrite(tables);
    // What the copy has not settled yet is settled, and so counted, when it goes on.
    let hops_simulated = simulated - unsettled_hops(&next, t);
    next.stats = FoldStats { hops_simulated, coupled: next.guard.n_coupled(), ..stats.without_skips() };
    simulate_all(&mut next, t, at_ps)?;
    go_on_without_skips(&mut next, t, at_ps, why)?;
    next.return_point = earlier;
    Ok(next)
}
