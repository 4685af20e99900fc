//! Hands an experiment over as it stands: its rows are brought to one instant and stripped of all that only folding needs. From there on any engine may step
//! it, a core or a device.
//!
//! Layer: fold/run. An experiment is handed over once nothing can be skipped any more. If nothing was skipped, that changes no result, so the instant may
//! depend on turns and on the memo. If something was, it is an instant that depends on the experiment alone.

use crate::run::explanations::explain::settle;
use crate::run::fold_run::{FoldRun, unsettled_hops};
use crate::run::lookups::lookup::stop_remembering;
use crate::run::partitions::counters::report_peaks;
use crate::run::partitions::couple::every_row;
use crate::run::partitions::join::{catch_up_rows, touched};
use crate::run::skips::gain::hops_needed;
use crate::run::stop::Stop;
use crate::run::turn_order::{collect, serve};
use crate::steady::sampling::is_steadying;
use hyperfold_columns::{FoldHints, NicIdx, SHARED_FLAGS, Tables, flag, mode, qp};
use hyperfold_engine::cpu::nic;
use hyperfold_engine::series::take_until;
use hyperfold_engine::{packet_hops, stops};
use std::cmp::Reverse;

/// Little of an experiment is known if it is less than 1/`MIN_SHARE` of its packet-hops since the last judgement (our choice).
const MIN_SHARE: u64 = 4;

/// Number of judgements over an experiment (our choice).
const JUDGEMENTS: u64 = 40;

/// When experiments in which nothing was skipped are handed over as they stand, to be stepped without folding. Changes no result. An experiment that keeps
/// skips that gained too little is handed over whatever this says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandOver {
    /// Never: folding steps such experiments to their end.
    #[default]
    Never,
    /// Once nothing is skipped any more and little of them is known.
    FindsLittle,
    /// Once nothing is skipped any more and this many packet-hops are done. Tests use it.
    After(u64),
}

/// Judges how much of an experiment is known.
#[derive(Default)]
pub(crate) struct KnownShare {
    /// Packet-hops that the experiment's messages need, once computed.
    needed_hops: Option<u64>,
    /// Packet-hops that were done by the last judgement, and that were simulated by then.
    done_hops: u64,
    simulated_hops: u64,
}

impl KnownShare {
    /// Whether the experiment is to be handed over now.
    pub(crate) fn is_handed_over(&mut self, run: &FoldRun, t: &Tables, when: HandOver) -> bool {
        match when {
            _ if !may_hand_over(run, t) => false,
            HandOver::Never => false,
            HandOver::After(hops) => packet_hops(t) >= hops,
            HandOver::FindsLittle => self.is_little(run, t),
        }
    }

    /// Whether little was known of what was done since the last judgement. False if that was not much.
    fn is_little(&mut self, run: &FoldRun, t: &Tables) -> bool {
        let needed_hops = *self.needed_hops.get_or_insert_with(|| hops_needed(t));
        let simulated_hops = run.stats.hops_simulated + unsettled_hops(run, t);
        let done_hops = packet_hops(t);
        // An experiment that went back has done less than before.
        let went_back = done_hops < self.done_hops;
        let new_hops = done_hops.saturating_sub(self.done_hops);
        if new_hops <= needed_hops / JUDGEMENTS && !went_back {
            return false;
        }
        let known_hops = new_hops.saturating_sub(simulated_hops.saturating_sub(self.simulated_hops));
        (self.done_hops, self.simulated_hops) = (done_hops, simulated_hops);
        !went_back && known_hops < new_hops / MIN_SHARE
    }
}

/// Whether the results that follow are those of an experiment that is not folded: nothing is skipped or rounded any more.
fn may_hand_over(run: &FoldRun, t: &Tables) -> bool {
    let skips = is_steadying(t) && !run.gain.is_too_late();
    !skips && t.exps[0].modes & mode::RATES == 0 && run.stats.rounded == 0 && run.first_skip_too_late.is_none()
}

/// Plans the hand-over: no row goes beyond the instant that the foremost has reached, so that all come to stand at one.
pub(crate) fn plan_hand_over(run: &mut FoldRun) {
    run.hand_over_after = run.partitions.iter().map(|partition| partition.reached).max().or(Some(0));
}

/// Brings the rows of all partitions to `at_ps`. Their intervals end there, so that the buffer guard can check all that has happened.
/// PRECONDITION: everything before `at_ps` has happened, nothing at or after it.
///
/// # Errors
/// The state of a looked-up partition is not to be had, or packet records ran out.
pub(crate) fn come_to_one_instant(run: &mut FoldRun, t: &mut Tables, at_ps: u64) -> Result<(), Stop> {
    run.ticket.may_wait = false;
    let all = every_row(t);
    catch_up_rows(run, t, &all, at_ps)?;
    for p in touched(run, &all) {
        stop_remembering(run, t, p, at_ps)?;
        report_peaks(run, t, p, at_ps);
    }
    Ok(())
}

/// Dissolves the partitions as they are: from now on the experiment is not folded.
/// PRECONDITION: all rows are at `at_ps`, and no switch may have paused without that being simulated.
pub(crate) fn leave_folding(run: &mut FoldRun, t: &mut Tables, at_ps: u64) {
    run.partitions.numbers().for_each(|p| settle(run, t, p));
    for n in NicIdx::all(t.nics.len() as u32) {
        collect(run, t, n);
    }
    while let Some(Reverse((_, g))) = run.schedule.fired.pop() {
        serve(run, t, g);
    }
    run.stats.hops_simulated += unsettled_hops(run, t);
    for partition in run.partitions.iter() {
        for (&port, base) in partition.rows.ports.iter().zip(&partition.rows.port_base) {
            t.ports[port].max_q = t.ports[port].max_q.max(base.max_q);
        }
    }
    unfold(t);
    t.exps[0].modes &=
        !(mode::FOLD | mode::MEMO | mode::STEADY | mode::MUST_GAIN | (mode::METRIC_MASK << mode::METRIC_SHIFT));
    t.exps[0].now = at_ps;
    // Nothing is skipped any more.
    take_until(t, at_ps);
    stops::resume_sampling(t);
    for n in NicIdx::all(t.nics.len() as u32) {
        nic::set_clock(t, n);
    }
}

/// Strips the rows of what only folding needs.
pub(crate) fn unfold(t: &mut Tables) {
    for tx in &mut t.flow_tx {
        tx.flags &= !qp::HELD;
    }
    t.shared[SHARED_FLAGS as usize] &= !flag::SIGNALS;
    t.exps[0].modes &= !mode::TRACED;
    t.fold_trace.clear();
    t.fold_hints = FoldHints::default();
}
