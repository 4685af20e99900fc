//! Which experiment of a batch a thread goes on with: one that is under way before one that is not, and none that waits for what another finds out.
//!
//! Layer: engine. Threads ask here; what they do with an experiment is `engine`'s. Order and number of threads change no result.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::claims::Claims;
use super::memo::lock;

/// Experiments under way for each thread, at most: enough to find one that need not wait, few enough for their memory. Our choice.
const MOST_A_THREAD: usize = 4;
/// Between looks at what is waited for, where nothing else is to be done.
const LOOK: Duration = Duration::from_millis(1);

/// The experiments of a batch that are not over, for a slice.
pub struct Desk<'a> {
    claims: &'a Claims,
    end: Instant,
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

/// By their places in the batch.
#[derive(Default)]
pub struct State {
    pub ready: VecDeque<usize>,
    /// And who they are among `claims`.
    pub waiting: Vec<(usize, u64)>,
    pub fresh: VecDeque<usize>,
    /// How many threads have one.
    busy: usize,
}

impl<'a> Desk<'a> {
    /// For `threads` threads, until `end`.
    pub fn new(state: State, claims: &'a Claims, threads: usize, end: Instant) -> Desk<'a> {
        Desk { claims, end, most: threads * MOST_A_THREAD, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The next one, and whether it must not wait, as nobody else can go on. Blocks while all that are left wait for others. `None`: the slice is over for this thread.
    pub fn take(&self, stop: &(dyn Fn() -> bool + Sync)) -> Option<(usize, bool)> {
        let mut state = lock(&self.state);
        loop {
            if Instant::now() >= self.end || stop() {
                return None;
            }
            let next = self.pick(&mut state).map(|at| (at, false));
            // What is waited for is in hands that do not move: better twice than never.
            let next = next
                .or_else(|| (state.busy == 0 && !state.waiting.is_empty()).then(|| (state.waiting.remove(0).0, true)));
            if next.is_some() {
                state.busy += 1;
                return next;
            }
            if state.waiting.is_empty() && state.fresh.is_empty() {
                return None;
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn pick(&self, state: &mut MutexGuard<State>) -> Option<usize> {
        if let Some(at) = state.ready.pop_front() {
            return Some(at);
        }
        if let Some(k) = state.waiting.iter().position(|&(_, id)| !self.claims.holds_up(id)) {
            return Some(state.waiting.remove(k).0);
        }
        if state.waiting.len() + state.busy < self.most { state.fresh.pop_front() } else { None }
    }

    /// A thread is done with `at` for now, which is `waits` among the claims if it waits.
    pub fn put(&self, at: usize, waits: Option<u64>) {
        let mut state = lock(&self.state);
        state.busy -= 1;
        state.waiting.extend(waits.map(|id| (at, id)));
        drop(state);
        self.changed.notify_all();
    }
}
