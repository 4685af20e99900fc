//! Folding behind the common interface: experiments in parallel, each on one thread, folded where they ask for it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::cut::HOPS_A_CUT;
use super::desk::{Desk, State};
use super::memo::lock;
use super::run::Run;
use super::{Audit, FoldStats, Memo, Stop};
use crate::columns::{Tables, mode};
use crate::engine::cpu::engine::advance_one;
use crate::engine::{Engine, EngineError, Slice, is_final, packet_hops};
use crate::units::PS_PER_NS;

/// Experiments of a batch for each thread: enough that few threads idle at its end, few enough that the next batch finds the memory of the last one still at hand. Our choice.
const MOST_A_THREAD: usize = 16;
/// Turns of partitions between looks at the clock.
const TURNS_A_LOOK: u32 = 256;
const SLICE: Duration = Duration::from_millis(100);

/// The CPU engine with folding. Runs on the threads of the rayon pool it is called in.
pub struct FoldEngine {
    /// `None`: nothing is remembered, whatever experiments ask for.
    memo: Option<Arc<Memo>>,
    places: Vec<Place>,
    cut_hops: u64,
}

impl Default for FoldEngine {
    fn default() -> FoldEngine {
        FoldEngine::remembering(Arc::default())
    }
}

impl FoldEngine {
    /// With a memo that others may know too.
    pub fn remembering(memo: Arc<Memo>) -> FoldEngine {
        FoldEngine { memo: Some(memo), places: Vec::new(), cut_hops: HOPS_A_CUT }
    }

    /// Without one.
    pub fn forgetful() -> FoldEngine {
        FoldEngine { memo: None, places: Vec::new(), cut_hops: HOPS_A_CUT }
    }

    /// Looks states of partitions up every `hops` packets, and takes naps that promise twice as many. Changes no exact result; few cost time, many show in tests what is wrong with states.
    pub fn cutting(hops: u64) -> FoldEngine {
        FoldEngine::default().with_cuts_every(hops)
    }

    /// The same for an engine that has its memo already.
    pub fn with_cuts_every(self, hops: u64) -> FoldEngine {
        FoldEngine { cut_hops: hops.max(1), ..self }
    }
}

/// An experiment's state between slices.
#[derive(Default)]
struct Place {
    run: Option<Run>,
    stats: FoldStats,
    /// Its name among those that wait for what others find out.
    waits: Option<u64>,
    /// Its experiment began anew, not to be folded, and has not taken a step since.
    anew: bool,
    /// In this slice.
    seconds: f64,
    failure: Option<String>,
}

impl Engine for FoldEngine {
    fn advance(
        &mut self,
        batch: &mut [Tables],
        packet_limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Slice, EngineError> {
        let end = Instant::now() + SLICE;
        let (memo, cut_hops) = (self.memo.as_ref(), self.cut_hops);
        self.places.resize_with(batch.len(), Place::default);
        let mut state = State::default();
        for (at, (t, place)) in batch.iter().zip(&mut self.places).enumerate() {
            (place.seconds, place.failure) = (0.0, None);
            // Those under way come to their end first: they take less memory together, and what they leave is known to those that follow.
            match place.waits.take() {
                // The place of an experiment that runs elsewhere.
                _ if t.exps.is_empty() => *place = Place::default(),
                // The host may have ended it.
                _ if is_final(t) => place.run = None,
                // What was here in the last batch holds up nobody any more.
                _ if is_new(t) => {
                    *place = Place::default();
                    state.fresh.push_back(at);
                }
                Some(id) => state.waiting.push((at, id)),
                None => state.ready.push_back(at),
            }
        }
        let claims = memo.map_or_else(Arc::default, |memo| Arc::clone(&memo.claims));
        let threads = rayon::current_num_threads().min(batch.len());
        let desk = Desk::new(state, &claims, threads, end);
        let pairs: Vec<Mutex<(&mut Tables, &mut Place)>> =
            batch.iter_mut().zip(&mut self.places).map(Mutex::new).collect();
        (0..threads).into_par_iter().with_max_len(1).for_each(|_| {
            while let Some((at, alone)) = desk.take(stop) {
                let (t, place) = &mut *lock(&pairs[at]);
                let start = Instant::now();
                place.failure = place.advance(t, memo, cut_hops, alone, end, packet_limit, stop);
                place.seconds += start.elapsed().as_secs_f64();
                desk.put(at, place.waits);
            }
        });
        drop(pairs);
        let mut slice = Slice::default();
        for (at, place) in self.places.iter_mut().enumerate() {
            slice.seconds.push(place.seconds);
            slice.failures.extend(place.failure.take().map(|why| (at, why)));
        }
        slice.folds = self.places.iter().map(|p| p.stats).collect();
        Ok(slice)
    }

    fn most(&self, threads: usize) -> usize {
        threads * MOST_A_THREAD
    }

    fn slice(&self) -> Duration {
        SLICE
    }
}

/// Whether the experiment has not begun.
fn is_new(t: &Tables) -> bool {
    t.exps[0].steps == 0 && t.exps[0].phase == 0
}

impl Place {
    /// Goes on with its experiment until `end`, or until it waits for another, which it must not where it is `alone`. Returns why it can never end.
    #[expect(clippy::too_many_arguments, reason = "what an engine is told, and by its caller alone")]
    fn advance(
        &mut self,
        t: &mut Tables,
        memo: Option<&Arc<Memo>>,
        cut_hops: u64,
        alone: bool,
        end: Instant,
        limit: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<String> {
        self.waits = None;
        let anew = std::mem::take(&mut self.anew);
        if is_new(t) && !anew {
            *self = Place::default();
            if t.exps[0].modes & mode::FOLD != 0 {
                if memo.is_none() {
                    t.exps[0].modes &= !mode::MEMO;
                }
                self.run = Run::new(t, &memo.map_or_else(Arc::default, Arc::clone), cut_hops);
            }
        }
        if let Some(run) = &mut self.run {
            run.ticket.alone |= alone;
        }
        while let Some(run) = &mut self.run {
            let began = Instant::now();
            let outcome = run.turns(t, TURNS_A_LOOK, limit);
            run.took(began.elapsed());
            self.stats = FoldStats { memo_bytes: memo.map_or(0, |m| m.bytes()), ..run.stats };
            match outcome {
                Ok(()) => {}
                Err(Stop::Fail(why)) => return Some(why),
                Err(Stop::Wait) => {
                    self.waits = Some(run.ticket.id());
                    return None;
                }
                Err(Stop::Abandon(why)) => {
                    log::info!(
                        "folding: an experiment starts over unfolded at {} ns: {why}",
                        t.exps[0].now / PS_PER_NS
                    );
                    if let Some(run) = self.run.take() {
                        // What comes of it owes nothing to naps.
                        let done = std::mem::take(&mut self.stats);
                        self.stats = FoldStats {
                            simulated: packet_hops(t),
                            abandoned: done.abandoned + 1,
                            skips: 0,
                            slept: 0,
                            slept_ps: 0,
                            rounded: 0,
                            audited: 0,
                            audit: Audit::default(),
                            ..done
                        };
                        run.start_over(t);
                    }
                    break;
                }
            }
            if is_final(t) {
                self.run = None;
            } else if Instant::now() >= end || stop() {
                return None;
            }
        }
        if is_final(t) {
            return None;
        }
        let before = packet_hops(t);
        let failure = advance_one(t, end, limit, stop).1;
        self.stats.simulated += packet_hops(t) - before;
        // The slice may have ended by then: it is not to be folded a second time.
        self.anew = self.stats.abandoned > 0 && is_new(t);
        failure
    }
}
