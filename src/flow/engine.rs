//! The flow level next to a packet engine: each simulates its own experiments of a batch.
//!
//! Layer: flow level. Experiments run in parallel, each on one thread, so threads and batches change no result. If the packet engine has a device, it solves
//! the rates, bit for bit as the CPU does: see decision 33.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::run::{FlowPause, FlowRun};
use hyperfold_base::isolation::isolated;
use hyperfold_columns::{OwnedTables, Tables, mode};
use hyperfold_engine::FoldStats;
use hyperfold_engine::fair_rates::{RateNetwork, RateSolver, ResidentRates};
use hyperfold_engine::{Engine, EngineError, SliceOutcome, is_final};

/// Duration of a slice, the same as the packet engine's: short enough for progress and limits.
const SLICE: Duration = Duration::from_millis(100);

/// Whether an experiment has flow rates instead of packets.
pub fn is_flow_level(t: &Tables) -> bool {
    t.exps.first().is_some_and(|e| e.modes & mode::FLOW != 0)
}

/// Does the same as [`is_flow_level`] for tables that are not in a batch yet.
pub fn is_flow_level_of(t: &OwnedTables) -> bool {
    t.exps.first().is_some_and(|e| e.modes & mode::FLOW != 0)
}

/// Approximate memory of simulating an experiment, besides its tables: its carriers, the links that these cross, and events. 0 for packet simulation.
pub fn expected_bytes(t: &OwnedTables) -> u64 {
    if !is_flow_level_of(t) {
        return 0;
    }
    let links = (t.nics.len() + t.ports.len()) * LINK_BYTES;
    // What ranks send alike is one carrier, however many rows it has. Its links are counted once.
    let joined = t.flow_tx.iter().filter(|f| f.joined > 0).count();
    let alone = t.flow_tx.len() - joined;
    let crossed: usize =
        t.flow_tx.iter().filter(|f| f.joined == 0).map(|f| (f.path_len * f.n_paths.max(1)) as usize).sum();
    (links + alone * CARRIER_BYTES + joined * JOINED_BYTES + 2 * crossed * CROSSING_BYTES + t.tasks.len() * EVENT_BYTES)
        as u64
}

/// Heap bytes of a link.
const LINK_BYTES: usize = 160;
/// Heap bytes of a carrier.
const CARRIER_BYTES: usize = 480;
/// Heap bytes of a row that is joined with others: its carrier's number, and its place in a list while carriers are made.
const JOINED_BYTES: usize = 16;
/// Heap bytes of an entry of a path.
const CROSSING_BYTES: usize = 32;
/// Heap bytes of events, for a task: only those that are due soon have an event of 24 bytes.
const EVENT_BYTES: usize = 1;

/// Runs one experiment from its beginning to its end. Returns whether it got there before `stop` returned true.
pub fn run_to_end(t: &mut Tables, stop: &dyn Fn() -> bool) -> bool {
    let mut run = FlowRun::new(t);
    while !is_final(t) {
        if stop() {
            return false;
        }
        run.advance(t, Instant::now() + SLICE, &|| false);
    }
    true
}

/// Running experiments at flow level, by their places in the batch.
#[derive(Debug, Default)]
pub struct FlowEngine {
    runs: Vec<Option<Box<FlowRun>>>,
    lockstep: Option<Lockstep>,
}

/// An experiment of the batch, its run if it has begun, and the outcome of the slice.
struct Turn<'a, 't> {
    t: &'a mut Tables<'t>,
    run: &'a mut Option<Box<FlowRun>>,
    seconds: f64,
    failure: Option<String>,
}

impl Turn<'_, '_> {
    /// Runs `work` if the experiment has begun. A panic becomes its failure.
    fn take_part<R>(&mut self, work: impl FnOnce(&mut Tables, &mut FlowRun) -> R) -> Option<R> {
        let run = self.run.as_deref_mut()?;
        let start = Instant::now();
        let ended = isolated(|| work(self.t, run));
        self.seconds += start.elapsed().as_secs_f64();
        match ended {
            Ok(result) => Some(result),
            Err(defect) => {
                self.failure = Some(defect.to_string());
                *self.run = None;
                None
            }
        }
    }
}

impl FlowEngine {
    /// Advances the experiments at flow level by a slice of time, or until `stop` returns true. `solver` is a device for their rates.
    fn advance(
        &mut self,
        batch: &mut [Tables],
        solver: Option<&mut dyn RateSolver>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<SliceOutcome, EngineError> {
        self.runs.resize_with(batch.len(), || None);
        let turn = |(t, run)| Turn { t, run, seconds: 0.0, failure: None };
        let mut turns: Vec<Turn> = batch.iter_mut().zip(&mut self.runs).map(turn).collect();
        let begun: Vec<bool> = turns.par_iter_mut().with_max_len(1).map(begin).collect();
        if begun.contains(&true) {
            begin_lockstep(&mut self.lockstep, &turns, &begun, solver)?;
        }
        let lockstep = self.lockstep.as_mut();
        let on_device = |k: usize| lockstep.as_ref().is_some_and(|l| l.number(k).is_some());
        let alone: Vec<bool> = (0..turns.len()).map(|k| !on_device(k)).collect();
        let end = Instant::now() + SLICE;
        turns.par_iter_mut().zip(&alone).with_max_len(1).filter(|(_, alone)| **alone).for_each(|(turn, _)| {
            turn.take_part(|t, run| run.advance(t, end, stop));
        });
        if let Some(lockstep) = lockstep {
            lockstep.advance(&mut turns, Instant::now() + SLICE, stop)?;
        }
        log::debug!(
            "flow level: {} bytes",
            turns.iter().filter_map(|t| t.run.as_ref()).map(|run| run.bytes()).sum::<u64>()
        );
        let mut slice = SliceOutcome { folds: vec![FoldStats::default(); turns.len()], ..SliceOutcome::default() };
        for (place, turn) in turns.into_iter().enumerate() {
            slice.seconds.push(turn.seconds);
            slice.failures.extend(turn.failure.map(|why| (place, why)));
        }
        Ok(slice)
    }
}

/// Begins an experiment that has not begun, and drops the run of one that is over. Returns whether it has begun now.
fn begin(turn: &mut Turn) -> bool {
    if !is_flow_level(turn.t) || is_final(turn.t) {
        *turn.run = None;
        return false;
    }
    // An experiment without steps is not the one that was at its place before.
    if turn.run.is_some() && turn.t.exps[0].steps > 0 {
        return false;
    }
    let start = Instant::now();
    *turn.run = None;
    match isolated(|| FlowRun::new(turn.t)) {
        Ok(run) => *turn.run = Some(Box::new(run)),
        Err(defect) => turn.failure = Some(defect.to_string()),
    }
    turn.seconds += start.elapsed().as_secs_f64();
    true
}

/// Loads runs that have just begun onto the device, if there are enough of them and the device does not solve for earlier ones.
fn begin_lockstep(
    lockstep: &mut Option<Lockstep>,
    turns: &[Turn],
    begun: &[bool],
    solver: Option<&mut dyn RateSolver>,
) -> Result<(), EngineError> {
    let is_fit = |k: &usize| begun[*k] && turns[*k].run.is_some() && FlowRun::has_fixed_links(turns[*k].t);
    let places: Vec<usize> = (0..turns.len()).filter(is_fit).collect();
    if let Some(earlier) = lockstep {
        places.iter().for_each(|&k| earlier.forget(k));
        if (0..turns.len()).any(|k| turns[k].run.is_some() && earlier.number(k).is_some()) {
            return Ok(());
        }
    }
    *lockstep = match solver {
        Some(solver) if places.len() >= solver.fewest() => {
            let networks: Vec<RateNetwork> =
                places.iter().filter_map(|&k| Some(turns[k].run.as_ref()?.network())).collect();
            Some(Lockstep::new(solver, &places, &networks)?)
        }
        _ => None,
    };
    Ok(())
}

/// Runs whose rates a device solves. All of them advance to their next solution, then one dispatch solves for all.
#[derive(Debug)]
struct Lockstep {
    rates: Box<dyn ResidentRates>,
    /// Number on the device, by place in the batch.
    numbers: Vec<Option<u32>>,
}

impl Lockstep {
    /// Loads the networks of the runs at these places onto the device, as far as they fit.
    fn new(solver: &mut dyn RateSolver, places: &[usize], networks: &[RateNetwork]) -> Result<Lockstep, EngineError> {
        let (rates, found) = solver.load(networks)?;
        let mut numbers = vec![None; places.last().map_or(0, |last| last + 1)];
        for (&place, number) in places.iter().zip(&found) {
            numbers[place] = *number;
        }
        let n = found.iter().flatten().count();
        log::info!("flow level: rates of {n} of {} experiments are solved on the device", places.len());
        Ok(Lockstep { rates, numbers })
    }

    fn number(&self, place: usize) -> Option<u32> {
        self.numbers.get(place).copied().flatten()
    }

    /// Forgets the run at a place, which now has another experiment.
    fn forget(&mut self, place: usize) {
        if let Some(number) = self.numbers.get_mut(place) {
            *number = None;
        }
    }

    /// Advances its runs until `end`, until `stop` returns true, or until no run needs rates.
    fn advance(
        &mut self,
        turns: &mut [Turn],
        end: Instant,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), EngineError> {
        let mut mine: Vec<(u32, &mut Turn)> =
            turns.iter_mut().enumerate().filter_map(|(k, turn)| Some((self.number(k)?, turn))).collect();
        loop {
            let waits: Vec<bool> = mine
                .par_iter_mut()
                .with_max_len(1)
                .map(|(_, turn)| turn.take_part(|t, run| run.until_rates(t, end, stop)) == Some(FlowPause::Rates))
                .collect();
            let mut waiting: Vec<&mut (u32, &mut Turn)> =
                mine.iter_mut().zip(waits).filter_map(|(turn, waits)| waits.then_some(turn)).collect();
            if waiting.is_empty() {
                break;
            }
            let start = Instant::now();
            let mut changes = Vec::with_capacity(waiting.len());
            for (number, turn) in &waiting {
                changes.extend(turn.run.as_ref().map(|run| (*number, run.changes())));
            }
            let mut rates = self.rates.solve(&changes)?;
            rates.sort_unstable_by_key(|r| (r.network, r.carrier));
            let share = start.elapsed().as_secs_f64() / waiting.len() as f64;
            waiting.par_iter_mut().with_max_len(1).for_each(|(number, turn)| {
                let first = rates.partition_point(|r| r.network < *number);
                let new_rates = rates[first..].iter().take_while(|r| r.network == *number).map(|r| (r.carrier, r.rate));
                turn.seconds += share;
                turn.take_part(|t, run| run.answer(t, new_rates));
            });
            if Instant::now() >= end || stop() {
                break;
            }
        }
        for (_, turn) in mine {
            turn.take_part(|t, run| run.end_slice(t));
        }
        Ok(())
    }
}

/// Advances a batch: experiments at flow level here, the others on `packets`.
///
/// # Errors
/// The errors of `packets`, and of its device if the device solves rates.
pub fn advance_beside(
    flows: &mut FlowEngine,
    packets: &mut dyn Engine,
    batch: &mut [Tables],
    packet_limit: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<SliceOutcome, EngineError> {
    let at_flow_level: Vec<usize> = (0..batch.len()).filter(|&k| is_flow_level(&batch[k])).collect();
    if at_flow_level.is_empty() {
        return packets.advance(batch, packet_limit, stop);
    }
    let at_packet_level: Vec<usize> = (0..batch.len()).filter(|&k| !is_flow_level(&batch[k])).collect();
    if at_packet_level.is_empty() {
        return flows.advance(batch, packets.rates(), stop);
    }
    let mut others: Vec<Tables> = at_packet_level.iter().map(|&k| std::mem::take(&mut batch[k])).collect();
    let ran = packets.advance(&mut others, packet_limit, stop);
    let advanced = flows.advance(batch, packets.rates(), stop);
    for (&k, t) in at_packet_level.iter().zip(others) {
        batch[k] = t;
    }
    let (ran, mut slice) = (ran?, advanced?);
    for (&k, seconds) in at_packet_level.iter().zip(ran.seconds) {
        slice.seconds[k] = seconds;
    }
    for (&k, folds) in at_packet_level.iter().zip(&ran.folds) {
        slice.folds[k] = *folds;
    }
    if ran.folds.is_empty() {
        for &k in &at_packet_level {
            slice.folds[k].hops_simulated = hyperfold_engine::packet_hops(&batch[k]);
        }
    }
    slice.failures.extend(ran.failures.into_iter().map(|(place, why)| (at_packet_level[place], why)));
    Ok(slice)
}
