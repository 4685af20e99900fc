//! Asks whether a simulation is to stop, within long looks at the queue as well as between events.
//!
//! Layer: cluster. One look at a long queue on a large cluster can take minutes. So code that goes through jobs or servers counts its steps here.

use std::cell::Cell;

/// Steps between two questions. A step is one job that is looked at, or one event. On a cluster of 100,000 servers it takes milliseconds at most.
const STEPS: u32 = 16;

/// Asks every few steps whether to stop. Once the answer is yes, it stays yes.
pub(super) struct StopCheck<'a> {
    stop: &'a (dyn Fn() -> bool + Sync),
    steps: Cell<u32>,
    stopped: Cell<bool>,
}

impl<'a> StopCheck<'a> {
    /// Makes a check that asks `stop`.
    pub(super) fn new(stop: &'a (dyn Fn() -> bool + Sync)) -> StopCheck<'a> {
        StopCheck { stop, steps: Cell::new(0), stopped: Cell::new(false) }
    }

    /// Counts a step. Returns whether the simulation is to stop.
    pub(super) fn step(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() >= STEPS { self.now() } else { self.stopped.get() }
    }

    /// Asks now. Returns whether the simulation is to stop.
    pub(super) fn now(&self) -> bool {
        self.steps.set(0);
        if !self.stopped.get() {
            self.stopped.set((self.stop)());
        }
        self.stopped.get()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn it_asks_every_few_steps_and_remembers_a_yes() {
        let asked = AtomicU32::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) == 1;
        let check = StopCheck::new(&stop);
        let first_yes = (0..100).position(|_| check.step()).unwrap() as u32;
        assert_eq!((first_yes + 1, asked.load(Ordering::Relaxed)), (2 * STEPS, 2));
        assert!(check.step() && check.now());
        assert_eq!(asked.load(Ordering::Relaxed), 2, "nobody is asked after a yes");
    }
}
