//! A spinning barrier for threads that step one experiment together.
//!
//! Layer: engine. Knows nothing of the work of the threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of times that a thread checks before it yields its core: some microseconds, less than most phases of a step take (our choice).
const LOOKS: u32 = 2_000;

/// Error of a wait: another thread of the barrier has panicked.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken;

/// A barrier whose waiting threads spin, because phases are shorter than the time that it takes to wake a thread.
#[derive(Debug)]
pub struct SpinBarrier {
    threads: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    broken: AtomicBool,
}

impl SpinBarrier {
    /// A barrier for `threads` threads.
    pub fn new(threads: usize) -> SpinBarrier {
        SpinBarrier {
            threads,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits until all threads are here. Whatever a thread wrote before, all threads can read afterwards.
    ///
    /// # Errors
    /// Another thread has called [`SpinBarrier::break_up`].
    #[inline]
    pub fn wait(&self) -> Result<(), Broken> {
        let generation = self.generation.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            return Ok(());
        }
        let mut looks = 0;
        while self.generation.load(Ordering::Acquire) == generation {
            if self.broken.load(Ordering::Relaxed) {
                return Err(Broken);
            }
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Ends all waits, now and later, with [`Broken`].
    pub fn break_up(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_a_generation_ahead() {
        let (barrier, count) = (SpinBarrier::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for n in 0..200 {
                        count.fetch_add(1, Ordering::Relaxed);
                        barrier.wait().unwrap();
                        assert_eq!(count.load(Ordering::Relaxed), 3 * (n + 1));
                        barrier.wait().unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        let barrier = SpinBarrier::new(2);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait());
            barrier.break_up();
            assert_eq!(waits.join().unwrap(), Err(Broken));
        });
    }
}
