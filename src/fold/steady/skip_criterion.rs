//! Decides whether a partition is steady, and whether skipping it pays.
//!
//! Layer: fold/steady.

use crate::memo::skip_choice::NeededBytes;
use crate::memo::skip_plan::SkipPlan;
use crate::rows::index::RowIndex;
use crate::rows::partition_rows::{PartitionRows, is_idle};
use crate::steady::detector::{Detector, SteadyRates, is_settled};
use crate::steady::sampled_rates::SampledRates;
use crate::steady::sampling::hops_there_and_back;
use crate::steady::skip_planning::is_overloaded;
use hyperfold_columns::{FlowIdx, NEVER, Tables};

/// The parts of a partition on which its steadiness depends.
#[derive(Clone, Copy)]
pub(crate) struct PartitionView<'a> {
    pub rows: &'a PartitionRows,
    pub index: &'a RowIndex,
    pub detector: &'a Detector,
    /// The plan of a skip that has just ended by itself, if there was one.
    pub ended_skip: Option<&'a SkipPlan>,
    /// Minimum number of packets between checkpoints. A skip must save twice as many.
    pub checkpoint_hops: u64,
}

/// A steady piece of a partition.
pub(crate) struct SteadyPiece {
    pub rates: SteadyRates,
    /// Bytes that must wait behind the messages that the network was given. With less, a skip does not pay.
    pub needs: Vec<NeededBytes>,
}

/// The rates of the partition and what must wait so that a skip pays, if all queue pairs in `working` (local numbers) are steady. `whole`: these are
/// all of the partition. PRECONDITION: a whole window has been sampled.
pub(crate) fn judge_steady(t: &Tables, view: PartitionView, working: &[u32], whole: bool) -> Option<SteadyPiece> {
    let PartitionView { rows, detector, .. } = view;
    let rule = detector.rule?;
    let e = &t.exps[0];
    if working.is_empty() || e.ack_interval > 1 {
        return None;
    }
    let settled = working.iter().all(|&m| is_settled(t, rows.members[m as usize].flow));
    let samples = rule.window(settled);
    let window = samples as u64 * rule.interval;
    let mut holds = detector.queues_hold(u64::from(e.payload), samples);
    for &m in working {
        let f = rows.members[m as usize].flow;
        if t.flow_tx[f].start != NEVER || is_idle(t, f) || repeats(t, f) {
            return None;
        }
        holds = holds.min(detector.member_holds(m as usize, t, f, samples)?);
    }
    if holds < window {
        return None;
    }
    let SampledRates { packets, work, turns, ports, round_trips } = SampledRates::of(t, rows, detector, samples);
    let full = u64::from(e.payload) + u64::from(e.data_overhead);
    let level = match view.ended_skip {
        Some(plan) if whole && plan.held(&work, window, full) => plan.level + 1,
        _ => 0,
    };
    let rates = SteadyRates {
        window,
        theta_ppm: rule.theta_ppm,
        holds,
        packets,
        work,
        turns,
        level,
        settled,
        ports,
        round_trips,
        patience: 0,
        active: Vec::new(),
        unsettled_ppm: 0,
        drift: None,
    };
    if is_overloaded(t, rows, view.index, &rates) {
        return None;
    }
    // A skip costs two snapshots, and its error may change how a contention turns out.
    let needs = needed(t, rows, working, &rates, 2 * view.checkpoint_hops)?;
    Some(SteadyPiece { rates, needs })
}

/// Bytes that must wait on each of the `working` queue pairs so that a skip saves `min_hops` packet-hops, if nothing else is posted and rates hold.
/// `None`: it saves fewer in any case.
fn needed(
    t: &Tables,
    rows: &PartitionRows,
    working: &[u32],
    rates: &SteadyRates,
    min_hops: u64,
) -> Option<Vec<NeededBytes>> {
    let hops = |&m: &u32| rates.packets[m as usize] * hops_there_and_back(t, rows.members[m as usize].flow);
    let hops: u64 = working.iter().map(hops).sum();
    let window = u128::from(rates.window.max(1));
    if hops == 0 {
        return None;
    }
    let lasts = (u128::from(min_hops) * window).div_ceil(u128::from(hops));
    // A single queue pair has no contention to change: all its skips together count, otherwise only the next one.
    let trusted = if working.len() == 1 { rates.holds } else { rates.lasts() };
    if u128::from(trusted) < lasts {
        return None;
    }
    let need = |&m: &u32| {
        let member = &rows.members[m as usize];
        let tx = &t.flow_tx[member.flow];
        let given = tx.size - member.waiting(t) - tx.snd_una;
        let bytes = (lasts * u128::from(rates.work[m as usize].max(1))).div_ceil(window);
        let more = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_sub(given);
        (more > 0).then_some(NeededBytes { member: m, bytes: more })
    };
    Some(working.iter().filter_map(need).collect())
}

/// Whether queue pair `f` has more in flight than its receiver has yet to see: after a timeout it sends again what may have arrived.
pub(crate) fn repeats(t: &Tables, f: FlowIdx) -> bool {
    let (tx, rx) = (&t.flow_tx[f], &t.flow_rx[f]);
    rx.expected > tx.snd_nxt || tx.sent_bytes - rx.arrived_bytes != tx.snd_nxt - rx.expected
}
