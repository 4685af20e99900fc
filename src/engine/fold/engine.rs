//! Folding behind the common interface: experiments in parallel, each on one thread, folded where they ask for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::cut::HOPS_A_CUT;
use super::run::Run;
use super::{FoldStats, Memo, Stop};
use crate::columns::{Tables, mode};
use crate::engine::cpu::engine::advance_one;
use crate::engine::{Engine, EngineError, Slice, is_final, packet_hops};

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

    /// Looks states of partitions up every `hops` packets. Changes no result; few cost time, many show in tests what is wrong with states.
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
}

impl Engine for FoldEngine {
    fn advance(&mut self, batch: &mut [Tables], packet_limit: u64, stop: &(dyn Fn() -> bool + Sync)) -> Result<Slice, EngineError> {
        let end = Instant::now() + SLICE;
        let (memo, cut_hops) = (self.memo.as_ref(), self.cut_hops);
        self.places.resize_with(batch.len(), Place::default);
        let done: Vec<(f64, Option<String>)> = batch
            .par_iter_mut()
            .zip(self.places.par_iter_mut())
            .with_max_len(1)
            .map(|(t, place)| place.advance(t, memo, cut_hops, end, packet_limit, stop))
            .collect();
        let mut slice = Slice::default();
        for (at, (seconds, failure)) in done.into_iter().enumerate() {
            slice.seconds.push(seconds);
            slice.failures.extend(failure.map(|why| (at, why)));
        }
        slice.folds = self.places.iter().map(|p| p.stats).collect();
        Ok(slice)
    }

    fn slice(&self) -> Duration {
        SLICE
    }
}

impl Place {
    fn advance(&mut self, t: &mut Tables, memo: Option<&Arc<Memo>>, cut_hops: u64, end: Instant, limit: u64, stop: &(dyn Fn() -> bool + Sync)) -> (f64, Option<String>) {
        // The place of an experiment that runs elsewhere.
        if t.exps.is_empty() {
            return (0.0, None);
        }
        let is_new = t.exps[0].steps == 0 && t.exps[0].phase == 0;
        // Those under way come to their end first: they take less memory together, and what they leave is known to those that follow.
        if is_final(t) || (is_new && Instant::now() >= end) {
            return (0.0, None);
        }
        let start = Instant::now();
        if is_new {
            *self = Place::default();
            if t.exps[0].modes & mode::FOLD != 0 {
                if memo.is_none() {
                    t.exps[0].modes &= !mode::MEMO;
                }
                self.run = Run::new(t, &memo.map_or_else(Arc::default, Arc::clone), cut_hops);
            }
        }
        let mut failure = None;
        while let (Some(run), None) = (&mut self.run, &failure) {
            let began = Instant::now();
            let outcome = run.turns(t, TURNS_A_LOOK, limit);
            run.took(began.elapsed());
            self.stats = FoldStats { memo_bytes: memo.map_or(0, |m| m.bytes()), ..run.stats };
            match outcome {
                Ok(()) => {}
                Err(Stop::Fail(why)) => failure = Some(why),
                Err(Stop::Abandon) => {
                    if let Some(run) = self.run.take() {
                        self.stats.simulated = packet_hops(t);
                        *t = run.unfolded();
                        self.stats.abandoned += 1;
                    }
                    break;
                }
            }
            if is_final(t) {
                self.run = None;
            } else if Instant::now() >= end || stop() {
                return (start.elapsed().as_secs_f64(), failure);
            }
        }
        if failure.is_none() && self.run.is_none() && !is_final(t) {
            let before = packet_hops(t);
            failure = advance_one(t, end, limit, stop).1;
            self.stats.simulated += packet_hops(t) - before;
        }
        (start.elapsed().as_secs_f64(), failure)
    }
}
