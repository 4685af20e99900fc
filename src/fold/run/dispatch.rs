//! Chooses the experiment that a thread runs next: one in flight before a new one, and none that waits for another.
//!
//! Layer: fold/run. Threads ask here; `engine` advances the experiment. Order and number of threads change no result.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::memo::in_flight::InFlight;
use crate::memo::lock::lock;

/// Maximum number of experiments in flight per thread: enough to find one that need not wait, few enough for their memory (our choice).
const IN_FLIGHT_PER_THREAD: usize = 4;
/// Time between checks of waiting experiments when there is nothing else to do.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The unfinished experiments of a batch, for one slice.
pub(crate) struct Dispatch<'a> {
    in_flight: &'a InFlight,
    end: Instant,
    max_in_flight: usize,
    queues: Mutex<DispatchQueues>,
    changed: Condvar,
}

/// Queues of experiments, by their places in the batch.
#[derive(Default)]
pub(crate) struct DispatchQueues {
    pub ready: VecDeque<usize>,
    /// Waiting experiments, with their ids in [`InFlight`].
    pub waiting: Vec<(usize, u64)>,
    pub unstarted: VecDeque<usize>,
    /// Number of threads that have an experiment.
    busy: usize,
}

impl<'a> Dispatch<'a> {
    /// A dispatch for `threads` threads, until `end`.
    pub(crate) fn new(queues: DispatchQueues, in_flight: &'a InFlight, threads: usize, end: Instant) -> Dispatch<'a> {
        Dispatch {
            in_flight,
            end,
            max_in_flight: threads * IN_FLIGHT_PER_THREAD,
            queues: Mutex::new(queues),
            changed: Condvar::new(),
        }
    }

    /// The next experiment, and whether it must not wait because no other can go on. Blocks while all remaining experiments wait for others. `None`:
    /// the slice is over for this thread.
    pub(crate) fn take(&self, stop: &(dyn Fn() -> bool + Sync)) -> Option<(usize, bool)> {
        let mut queues = lock(&self.queues);
        loop {
            if Instant::now() >= self.end || stop() {
                return None;
            }
            let next = self.pick(&mut queues).map(|place| (place, false));
            // No thread works on what is waited for: simulating it twice is better than never.
            let next = next.or_else(|| {
                (queues.busy == 0 && !queues.waiting.is_empty()).then(|| (queues.waiting.remove(0).0, true))
            });
            if next.is_some() {
                queues.busy += 1;
                return next;
            }
            if queues.waiting.is_empty() && queues.unstarted.is_empty() {
                return None;
            }
            queues = self.changed.wait_timeout(queues, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn pick(&self, queues: &mut MutexGuard<DispatchQueues>) -> Option<usize> {
        if let Some(place) = queues.ready.pop_front() {
            return Some(place);
        }
        if let Some(k) = queues.waiting.iter().position(|&(_, id)| !self.in_flight.holds_up(id)) {
            return Some(queues.waiting.remove(k).0);
        }
        if queues.waiting.len() + queues.busy < self.max_in_flight { queues.unstarted.pop_front() } else { None }
    }

    /// Takes back the experiment at place `place`. `waits`: its id in [`InFlight`], if it waits.
    pub(crate) fn put(&self, place: usize, waits: Option<u64>) {
        let mut queues = lock(&self.queues);
        queues.busy -= 1;
        queues.waiting.extend(waits.map(|id| (place, id)));
        drop(queues);
        self.changed.notify_all();
    }
}
