//! The folding engine behind the engine interface: experiments in parallel, each on one thread, folded if they ask for it. Experiments that are not
//! folded may use spare threads.
//!
//! Layer: fold/run.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::audits::restart::CoupledSwitches;
use super::audits::return_point::go_back;
use super::explanations::explain::settle;
use super::explanations::explanation::{Explainer, FoldCause, FoldExplanation};
use super::hand_over::{HandOver, KnownShare, plan_hand_over};
use super::partitions::counters::HOPS_PER_CHECKPOINT;
use super::skips::gain::hops_needed;
use crate::memo::lock::lock;
use crate::memo::table::Memo;
use crate::rows::buffer_guard::Failure;
use crate::run::dispatch::{Dispatch, DispatchQueues};
use crate::run::fold_run::{FoldRun, unsettled_hops};
use crate::run::stop::{Stop, reason};
use crate::run::turns::{begin, begin_coupled, turns};
use hyperfold_base::isolation::isolated;
use hyperfold_base::units::PS_PER_NS;
use hyperfold_columns::{EndOwner, Tables, mode};
use hyperfold_engine::FoldStats;
use hyperfold_engine::cpu::engine::advance_one;
use hyperfold_engine::cpu::parallel::side_by_side::SideBySide;
use hyperfold_engine::cpu::parallel::threads::SpareThreads;
use hyperfold_engine::cpu::parallel::trial::WORTH;
use hyperfold_engine::{Engine, EngineError, SliceOutcome, is_final, packet_hops};

/// Experiments per thread in a batch: enough that few threads idle at its end, few enough that the next batch reuses warm memory (our choice).
pub const BATCH_PER_THREAD: usize = 16;
/// Maximum number of turns between checks of the clock, and approximate time that they may take: turns of large partitions take some tenths of a
/// millisecond each, and at the end of a slice threads wait for each other.
const TURNS_PER_CLOCK_CHECK: u32 = 256;
const CLOCK_CHECK: Duration = Duration::from_millis(2);
const SLICE: Duration = Duration::from_millis(100);

/// The CPU engine with folding. It runs on the threads of the rayon pool that calls it.
pub struct FoldEngine {
    /// The memo. `None`: nothing is recorded, even if experiments ask for it.
    memo: Option<Arc<Memo>>,
    places: Vec<Place>,
    checkpoint_hops: u64,
    /// Explanation of why partitions are simulated, if one was requested.
    explained: Option<Arc<Mutex<FoldExplanation>>>,
    /// Minimum wall time of a step that is shared among spare threads.
    worth: Duration,
    hand_over: HandOver,
    /// Whether experiments that were handed over are stepped by another engine.
    beside_another: bool,
}

impl Default for FoldEngine {
    fn default() -> FoldEngine {
        FoldEngine::remembering(Arc::default())
    }
}

impl FoldEngine {
    /// An engine with a memo that others may share.
    pub fn remembering(memo: Arc<Memo>) -> FoldEngine {
        FoldEngine { memo: Some(memo), ..FoldEngine::forgetful() }
    }

    /// An engine without a memo.
    pub fn forgetful() -> FoldEngine {
        FoldEngine {
            memo: None,
            places: Vec::new(),
            checkpoint_hops: HOPS_PER_CHECKPOINT,
            explained: None,
            worth: WORTH,
            hand_over: HandOver::default(),
            beside_another: false,
        }
    }

    /// This engine, set to hand experiments over at other times.
    pub fn handing_over(self, hand_over: HandOver) -> FoldEngine {
        FoldEngine { hand_over, ..self }
    }

    /// This engine, set to leave experiments that were handed over to another engine.
    pub(crate) fn beside_another(self) -> FoldEngine {
        FoldEngine { beside_another: true, ..self }
    }

    /// Whether the experiment at `place` was handed over, and waits for another engine or is there.
    pub(crate) fn has_handed_over(&self, place: usize) -> bool {
        self.places.get(place).is_some_and(|place| place.handed_over.is_some())
    }

    /// Takes the experiment at `place` back, which was handed over and has not been stepped since: it goes on here, without folding.
    pub(crate) fn take_back(&mut self, place: usize) {
        self.places[place].handed_over = None;
    }

    /// Packet-hops that were simulated so far of the experiments at all places.
    pub(crate) fn hops_simulated(&self) -> u64 {
        self.places.iter().map(|place| place.stats.hops_simulated).sum()
    }

    /// Statistics of experiment `t` at `place` in the batch, which another engine steps.
    pub(crate) fn stats_beside(&self, place: usize, t: &Tables) -> FoldStats {
        let all = packet_hops(t);
        let handed_over = self.places.get(place).and_then(|place| place.handed_over.map(|hops| (hops, place.stats)));
        let (before, stats) = handed_over.unwrap_or_default();
        let plain = all.saturating_sub(before);
        FoldStats { hops_simulated: stats.hops_simulated + plain, hops_plain: stats.hops_plain + plain, ..stats }
    }

    /// An engine that takes a checkpoint every `hops` packets, and skips if that saves twice as many. Changes no exact result. Small numbers cost
    /// time, and in tests they reveal errors in snapshots.
    pub fn checkpointing_every(hops: u64) -> FoldEngine {
        FoldEngine::default().with_checkpoints_every(hops)
    }

    /// This engine, set to record why partitions are simulated. It hands nothing over. That changes no result.
    pub fn explaining(self, explained: Arc<Mutex<FoldExplanation>>) -> FoldEngine {
        FoldEngine { explained: Some(explained), hand_over: HandOver::Never, ..self }
    }

    /// This engine, set to share an experiment's steps among spare threads if they take at least `worth`. That changes no result.
    pub fn side_by_side_from(self, worth: Duration) -> FoldEngine {
        FoldEngine { worth, ..self }
    }

    /// For the experiment at `place` in the batch: packet-hops that were simulated so far and, if it is folded, the time that it took.
    pub fn simulated(&self, place: usize, t: &Tables) -> (u64, Option<Duration>) {
        let Some(Place { run, stats, .. }) = self.places.get(place) else { return (0, None) };
        let under_way = run.as_ref().map_or(0, |run| unsettled_hops(run, t));
        let hops = stats.hops_simulated + stats.audit_hops + under_way;
        (hops, run.is_some().then_some(stats.simulating + stats.auditing))
    }

    /// This engine with another distance between checkpoints, in packets (see [`FoldEngine::checkpointing_every`]).
    pub fn with_checkpoints_every(self, hops: u64) -> FoldEngine {
        FoldEngine { checkpoint_hops: hops.max(1), ..self }
    }
}

/// Settings of an engine for each experiment.
#[derive(Clone, Copy)]
struct Settings<'a> {
    memo: Option<&'a Arc<Memo>>,
    checkpoint_hops: u64,
    explained: Option<&'a Arc<Mutex<FoldExplanation>>>,
    worth: Duration,
    spare: &'a Arc<SpareThreads>,
    hand_over: HandOver,
    beside_another: bool,
}

/// An experiment's state between slices.
#[derive(Default)]
struct Place {
    run: Option<FoldRun>,
    stats: FoldStats,
    /// Its id among those in flight, while it waits.
    waits: Option<u64>,
    /// Whether it started over without folding and has not taken a step since.
    restarted: bool,
    /// How it is stepped on several threads.
    side: Option<SideBySide>,
    /// Number of turns until the next check of the clock; 0: it has not begun.
    turns: u32,
    /// Packet-hops that its messages need, once computed.
    needed: Option<u64>,
    known: KnownShare,
    /// Packet-hops that were done when the experiment was handed over to another engine.
    handed_over: Option<u64>,
    /// Wall time in this slice, in seconds.
    seconds: f64,
    failure: Option<String>,
}

impl Engine for FoldEngine {
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError> {
        let end = Instant::now() + SLICE;
        self.places.resize_with(batch.len(), Place::default);
        let mut queues = DispatchQueues::default();
        let mut unstarted = Vec::new();
        for (place_idx, (t, place)) in batch.iter().zip(&mut self.places).enumerate() {
            (place.seconds, place.failure) = (0.0, None);
            // Experiments in flight come first: together they take less memory, and what they record helps those that follow.
            match place.waits.take() {
                // The place of an experiment that runs elsewhere.
                _ if t.exps.is_empty() && place.handed_over.is_none() => *place = Place::default(),
                _ if t.exps.is_empty() => {}
                // It waits for the other engine.
                _ if place.handed_over.is_some() && !is_new(t) => {}
                // The host may have ended it.
                _ if is_final(t) => (place.run, place.needed) = (None, None),
                // An experiment of the last batch at this place blocks no other any more.
                _ if is_new(t) => {
                    let needed = place.needed.take().unwrap_or_else(|| hops_needed(t));
                    *place = Place { needed: Some(needed), ..Place::default() };
                    unstarted.push((std::cmp::Reverse(needed), place_idx));
                }
                Some(id) => queues.waiting.push((place_idx, id)),
                None => queues.ready.push_back(place_idx),
            }
        }
        // The longest come first, so that no thread is left with a long one at the end.
        unstarted.sort_unstable();
        queues.unstarted.extend(unstarted.into_iter().map(|(_, place_idx)| place_idx));
        let in_flight = self.memo.as_ref().map_or_else(Arc::default, |memo| Arc::clone(&memo.in_flight));
        let all = rayon::current_num_threads();
        let threads = all.min(batch.len());
        let spare = Arc::new(SpareThreads::new(all, threads));
        let settings = Settings {
            memo: self.memo.as_ref(),
            checkpoint_hops: self.checkpoint_hops,
            explained: self.explained.as_ref(),
            worth: self.worth,
            spare: &spare,
            hand_over: self.hand_over,
            beside_another: self.beside_another,
        };
        let dispatch = Dispatch::new(queues, &in_flight, threads, end);
        let pairs: Vec<Mutex<(&mut Tables, &mut Place)>> =
            batch.iter_mut().zip(&mut self.places).map(Mutex::new).collect();
        (0..threads).into_par_iter().with_max_len(1).for_each(|_| {
            while let Some((place_idx, alone)) = dispatch.take(stop) {
                let (t, place) = &mut *lock(&pairs[place_idx]);
                let start = Instant::now();
                match isolated(|| place.advance(t, settings, alone, end, packet_limit, stop)) {
                    Ok(failure) => place.failure = failure,
                    Err(defect) => **place = Place { failure: Some(defect.to_string()), ..Place::default() },
                }
                place.seconds += start.elapsed().as_secs_f64();
                dispatch.put(place_idx, place.waits);
            }
            spare.put_idle();
        });
        drop(pairs);
        let mut slice = SliceOutcome::default();
        for (place_idx, place) in self.places.iter_mut().enumerate() {
            slice.seconds.push(place.seconds);
            slice.failures.extend(place.failure.take().map(|why| (place_idx, why)));
        }
        slice.folds = self.places.iter().map(|p| p.stats).collect();
        Ok(slice)
    }

    fn forget(&mut self) {
        self.places.clear();
    }

    fn max_batch(&self, threads: usize) -> usize {
        threads * BATCH_PER_THREAD
    }

    fn slice(&self) -> Duration {
        SLICE
    }
}

/// Counts what was simulated in all partitions, for an explanation.
fn settle_all(run: &mut FoldRun, t: &Tables) {
    run.partitions.numbers().for_each(|p| settle(run, t, p));
}

/// Starts `run` over with the switch of `failure` coupled. What was simulated so far is in the memo.
fn couple(run: FoldRun, t: &mut Tables, memo: Option<&Arc<Memo>>, checkpoint_hops: u64, failure: Failure) -> FoldRun {
    let coupled = run.coupled.after(&run.guard, failure, t.switches.len() as u32);
    start_over(run, t, memo, checkpoint_hops, coupled, false)
}

/// Starts `run` over, folded, with these coupled switches. It runs without skips if `exactly`, or if it already did.
fn start_over(
    mut run: FoldRun,
    t: &mut Tables,
    memo: Option<&Arc<Memo>>,
    checkpoint_hops: u64,
    coupled: CoupledSwitches,
    exactly: bool,
) -> FoldRun {
    settle_all(&mut run, t);
    let unfinished = unsettled_hops(&run, t);
    let FoldRun { restart, stats, mut timer, ticket, explainer, gain, .. } = run;
    let (alone, balance) = (ticket.alone, Arc::clone(&ticket.balance));
    drop(ticket);
    restart.put_back(t);
    if memo.is_none() {
        t.exps[0].modes &= !mode::MEMO;
    }
    let exactly = exactly || stats.exactly > 0;
    if exactly {
        t.exps[0].modes &= !(mode::STEADY | mode::RATES | (mode::METRIC_MASK << mode::METRIC_SHIFT));
    }
    let mut next = begin_coupled(t, &memo.map_or_else(Arc::default, Arc::clone), checkpoint_hops, restart, coupled);
    (next.ticket.alone, next.ticket.balance) = (alone, balance);
    timer.start_over();
    next.timer = timer;
    next.gain = next.gain.after(&gain);
    next.explainer = explainer;
    let FoldStats { coupled, couplings, .. } = next.stats;
    let hops_simulated = stats.hops_simulated + unfinished;
    next.stats = FoldStats { coupled, couplings, hops_simulated, exactly: u64::from(exactly), ..stats.without_skips() };
    next
}

/// Whether two NICs are linked to each other. In system `nic` one sends on the wire from which the other takes its arrivals, and a device runs both at
/// once.
pub(crate) fn links_nics(t: &Tables) -> bool {
    let nics = t.exps[0].nic_len;
    t.nics.iter().any(|nic| nic.peer.is_some() && matches!(nic.other_end().owner(nics), EndOwner::Nic(_)))
}

/// Whether the experiment has not begun.
fn is_new(t: &Tables) -> bool {
    t.exps[0].steps == 0 && t.exps[0].phase == 0
}

/// `outcome` of some turns. If the experiment went back to a point that was too late to couple a switch, and has an earlier one, it goes back once more.
fn from_an_earlier_point(run: &FoldRun, outcome: Result<(), Stop>) -> Result<(), Stop> {
    match outcome {
        Err(Stop::Couple(_)) if run.return_point.is_some() && run.stats.exactly > 0 => {
            Err(Stop::Exactly(reason::PAUSE))
        }
        outcome => outcome,
    }
}

impl Place {
    /// The experiment of `run` without skips: from a point before they could matter, or from its start. On an error it is as it was before its first step, and
    /// is not folded.
    fn without_skips(
        &mut self,
        mut run: FoldRun,
        t: &mut Tables,
        memo: Option<&Arc<Memo>>,
        checkpoint_hops: u64,
        why: &str,
    ) -> Result<FoldRun, Stop> {
        let (exp_id, at_ns) = (t.exps[0].exp_id, t.exps[0].now / PS_PER_NS);
        let Some(point) = run.return_point.take() else {
            log::info!("folding: experiment {exp_id} starts over without skips at {at_ns} ns: {why}");
            let coupled = run.coupled.with(&run.left_out);
            return Ok(start_over(run, t, memo, checkpoint_hops, coupled, true));
        };
        log::info!("folding: experiment {exp_id} goes back from {at_ns} to {} ns: {why}", point.at_ps / PS_PER_NS);
        let (hops_simulated, restart) = (packet_hops(t), Arc::clone(&run.restart));
        let returned = go_back(*point, run, t, why);
        if let Err(why) = &returned {
            log::info!("folding: experiment {exp_id} starts over unfolded: {why:?}");
            let done = self.stats.without_skips();
            self.stats = FoldStats { hops_simulated, restarts: done.restarts + 1, ..done };
            restart.put_back(t);
            t.exps[0].modes &= !mode::FOLD;
        }
        returned
    }

    /// Advances the experiment until `end`, or until it waits for another one, which it must not if `alone`. Returns the reason if it can never end.
    fn advance(
        &mut self,
        t: &mut Tables,
        settings: Settings,
        alone: bool,
        end: Instant,
        limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<String> {
        let Settings { memo, checkpoint_hops, explained, worth, spare, hand_over, beside_another } = settings;
        self.waits = None;
        let restarted = std::mem::take(&mut self.restarted);
        if is_new(t) && !restarted {
            *self = Place::default();
            if t.exps[0].modes & mode::FOLD != 0 {
                if memo.is_none() {
                    t.exps[0].modes &= !mode::MEMO;
                }
                self.run = begin(t, &memo.map_or_else(Arc::default, Arc::clone), checkpoint_hops);
                if let (Some(run), Some(explained)) = (&mut self.run, explained) {
                    run.explainer = Some(Explainer::new(Arc::clone(explained)));
                }
            }
        }
        if let Some(run) = &mut self.run {
            run.ticket.alone |= alone;
        }
        while let Some(run) = &mut self.run {
            run.threads.lend(Arc::clone(spare), worth);
            let began = Instant::now();
            let n_turns = self.turns.clamp(1, TURNS_PER_CLOCK_CHECK);
            let outcome = turns(run, t, n_turns, limit);
            let took = began.elapsed();
            self.turns = if took > CLOCK_CHECK { n_turns / 2 } else { n_turns.saturating_mul(2) };
            run.timer.add_time(&mut run.stats, took);
            self.stats = FoldStats { memo_bytes: memo.map_or(0, |m| m.bytes()), ..run.stats };
            match from_an_earlier_point(run, outcome) {
                Ok(()) if run.hand_over_after.is_none() && self.known.is_handed_over(run, t, hand_over) => {
                    plan_hand_over(run);
                }
                Ok(()) => {}
                Err(Stop::HandedOver) => {
                    log::info!(
                        "folding: experiment {} is handed over at {} ns: it goes on without folding",
                        t.exps[0].exp_id,
                        t.exps[0].now / PS_PER_NS
                    );
                    if let Some(Explainer { told, .. }) = self.run.take().and_then(|run| run.explainer) {
                        lock(&told).causes.entry(FoldCause::SkipsGainedTooLittle).or_default().times += 1;
                    }
                    if beside_another && !links_nics(t) {
                        self.handed_over = Some(packet_hops(t));
                        return None;
                    }
                    break;
                }
                Err(Stop::Fail(why)) => return Some(why),
                Err(Stop::Wait) => {
                    self.waits = Some(run.ticket.id());
                    return None;
                }
                Err(Stop::Abandon(why)) => {
                    log::info!(
                        "folding: experiment {} starts over unfolded at {} ns: {why}",
                        t.exps[0].exp_id,
                        t.exps[0].now / PS_PER_NS
                    );
                    if let Some(run) = self.run.take() {
                        let done = self.stats.without_skips();
                        self.stats = FoldStats { hops_simulated: packet_hops(t), restarts: done.restarts + 1, ..done };
                        run.restart.put_back(t);
                        t.exps[0].modes &= !mode::FOLD;
                    }
                    break;
                }
                Err(Stop::Exactly(why)) => {
                    let Some(run) = self.run.take() else { break };
                    match self.without_skips(run, t, memo, checkpoint_hops, why) {
                        Ok(next) => self.run = Some(next),
                        Err(Stop::Fail(why)) => return Some(why),
                        Err(_) => break,
                    }
                }
                Err(Stop::Couple(failure)) => {
                    log::info!(
                        "folding: experiment {} starts over folded at {} ns: switch {} may have come near a pause or a drop, so its ports are processed together",
                        t.exps[0].exp_id,
                        failure.at / PS_PER_NS,
                        failure.switch.0
                    );
                    if let Some(run) = self.run.take() {
                        self.run = Some(couple(run, t, memo, checkpoint_hops, failure));
                    }
                }
            }
            if is_final(t) {
                self.run = None;
            } else if Instant::now() >= end || stop() {
                if let (Some(run), Some(_)) = (&mut self.run, explained) {
                    settle_all(run, t);
                }
                return None;
            }
        }
        if is_final(t) {
            return None;
        }
        let before = packet_hops(t);
        let side = self.side.get_or_insert_with(|| SideBySide::new(worth));
        let failure = advance_one(t, end, limit, stop, Some((spare, side))).1;
        let plain = packet_hops(t) - before;
        self.stats.hops_simulated += plain;
        self.stats.hops_plain += plain;
        if let Some(explained) = explained.filter(|_| self.stats.restarts == 0) {
            lock(explained).causes.entry(FoldCause::SkipsGainedTooLittle).or_default().hops += plain;
        }
        // The slice may have ended by then: it must not be folded a second time.
        self.restarted = self.stats.restarts > 0 && is_new(t);
        failure
    }
}
