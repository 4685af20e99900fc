//! Spare threads: how the threads of a run are shared between experiments and within them.
//!
//! Layer: engine. No result depends on who gets which thread.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The threads of a slice that have no experiment of their own.
#[derive(Debug)]
pub struct SpareThreads {
    all: usize,
    free: AtomicUsize,
    /// Number of threads that have an experiment of their own, or may get one.
    busy: AtomicUsize,
}

impl SpareThreads {
    /// The spare threads among `all` threads, of which `busy` go from experiment to experiment.
    pub fn new(all: usize, busy: usize) -> SpareThreads {
        let free = all.saturating_sub(busy);
        SpareThreads { all, free: AtomicUsize::new(free), busy: AtomicUsize::new(busy) }
    }

    /// Takes one experiment's share of the spare threads, or what is left of them. Returns how many it took.
    pub fn take(&self) -> usize {
        let busy = self.busy.load(Ordering::Relaxed);
        let share = self.all.saturating_sub(busy).div_ceil(busy.max(1));
        let before = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| Some(free - free.min(share)));
        before.map_or(0, |free| free.min(share))
    }

    /// Gives `threads` threads back.
    pub fn put(&self, threads: usize) {
        self.free.fetch_add(threads, Ordering::Relaxed);
    }

    /// Marks one busy thread as spare: it gets no experiment any more in this slice.
    pub fn put_idle(&self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
        self.put(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_shared() {
        let spare = SpareThreads::new(8, 3);
        assert_eq!((spare.take(), spare.take(), spare.take(), spare.take()), (2, 2, 1, 0));
        spare.put(2);
        assert_eq!(spare.take(), 2);
        assert_eq!(SpareThreads::new(2, 2).take(), 0);
        assert_eq!(SpareThreads::new(4, 1).take(), 3);
        let idle = SpareThreads::new(4, 4);
        (0..2).for_each(|_| idle.put_idle());
        assert_eq!((idle.take(), idle.take()), (1, 1));
        idle.put(1);
        idle.put_idle();
        assert_eq!(idle.take(), 2);
    }
}
