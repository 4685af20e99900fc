//! How much memory the process may use, and what happens when one experiment would use more.
//!
//! Layer: the lowest; knows no simulator. Three parts:
//! - `available`: what the machine, its container and `ulimit -v` leave.
//! - [`CountingAllocator`]: counts what each thread allocates. Programs install it; without it only what is announced counts.
//! - [`within`]: runs one piece of work under an allowance, or until the process is to end ([`stop_on`]). Code inside calls [`check`] while it grows something, or [`announce`] before it
//!   allocates something large. Beyond the allowance both unwind to `within`, which returns [`OverBudget`]. So no function in between has
//!   an error for it, and what the work had allocated is freed on the way.
//!
//! Unwinding goes by `resume_unwind`: it is no panic, prints nothing and runs no hook.

mod allocator;
mod available;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[cfg(test)]
pub use allocator::inject;
pub use allocator::{CountingAllocator, give_back};
pub use available::{available, free_memory, kib_of};

/// Work that would have taken more memory than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// Bytes that it wanted when it was stopped; all of it may need more.
    pub wanted: u64,
    /// Bytes that it may take.
    pub allowance: u64,
    /// What it was making then.
    pub what: &'static str,
}

/// Why work came to no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    OverBudget(OverBudget),
    /// The process was asked to end ([`stop_on`]).
    Interrupted,
}

/// What [`check`] unwinds with then.
struct Interrupted;

/// An allowance that is in force on a thread.
#[derive(Clone, Copy)]
struct Allowance {
    bytes: u64,
    /// [`allocator::net`] when it began.
    start: i64,
}

thread_local! {
    static ALLOWANCE: Cell<Option<Allowance>> = const { Cell::new(None) };
}

/// Bytes of the whole process, once they are set; 0: not yet.
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Says that the process is to end.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on, work under an allowance ends where it is once `flag` is set. For programs, once: the first call counts.
pub fn stop_on(flag: &Arc<AtomicBool>) {
    let _ = STOP.set(Arc::clone(flag));
}

/// Sets the bytes that the whole process may use. The last call counts.
pub fn set_total(bytes: u64) {
    TOTAL.store(bytes.max(1), Ordering::Relaxed);
}

/// Bytes that the whole process may use: those that were set, or what is available at the first call.
pub fn total() -> u64 {
    match TOTAL.load(Ordering::Relaxed) {
        0 => {
            let found = available().max(1);
            // Another thread may have been first.
            match TOTAL.compare_exchange(0, found, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => found,
                Err(set) => set,
            }
        }
        set => set,
    }
}

/// What is made at present, for people who wait.
static DOING: Mutex<&'static str> = Mutex::new("");

/// Notes what is made from now on; of several threads the last that began something counts. Work says so where it begins something that may take long.
pub fn doing(what: &'static str) {
    *DOING.lock().unwrap_or_else(PoisonError::into_inner) = what;
}

/// What is made at present; empty: nothing was begun yet.
pub fn current_work() -> &'static str {
    *DOING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work`, which may hold `allowance` bytes at a time, and says how many it holds at its end.
///
/// # Errors
/// It wanted more, or the process is to end. What it had allocated is free again.
pub fn within<T>(allowance: u64, work: impl FnOnce() -> T) -> Result<(T, u64), Unfinished> {
    let start = allocator::net();
    let outer = ALLOWANCE.replace(Some(Allowance { bytes: allowance, start }));
    // What unwinds is dropped. What several experiments share is behind locks that are not held while it is made.
    let ended = catch_unwind(AssertUnwindSafe(work));
    ALLOWANCE.set(outer);
    let held = held(start);
    if outer.is_some() {
        // A pool's thread that waited for other work took this on: it is not the outer work's.
        allocator::set_net(start);
    }
    match ended {
        Ok(value) => Ok((value, held)),
        Err(thrown) => match thrown.downcast::<OverBudget>() {
            Ok(over) => Err(Unfinished::OverBudget(*over)),
            Err(other) if other.is::<Interrupted>() => Err(Unfinished::Interrupted),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// What a piece of work took, in bytes, as this thread's allocations tell. All 0 where [`CountingAllocator`] is not installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Held at its end and not before.
    pub held: u64,
    /// The most that it held at a time.
    pub most: u64,
}

/// Runs `work` and says what it took. What other threads allocate for it does not count.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, Measured) {
    let (start, most_before) = (allocator::net(), allocator::most());
    allocator::set_most(start);
    let value = work();
    let most = allocator::most();
    allocator::set_most(most.max(most_before));
    (value, Measured { held: held(start), most: u64::try_from(most - start).unwrap_or(0) })
}

/// Memory that a piece of work on this thread may hold, for work that ends by an error of its own instead of unwinding, and that a request
/// to stop does not end.
#[derive(Clone, Copy, Debug)]
pub struct MemoryMeter {
    start: i64,
    allowance: u64,
}

impl MemoryMeter {
    /// Counts from now on.
    pub fn new(allowance: u64) -> MemoryMeter {
        MemoryMeter { start: allocator::net(), allowance }
    }

    /// Whether what the work holds, and `more` bytes, are within the allowance.
    ///
    /// # Errors
    /// They are not; `what` is what it was making.
    pub fn check(&self, what: &'static str, more: u64) -> Result<(), OverBudget> {
        let wanted = held(self.start).saturating_add(more);
        if wanted > self.allowance {
            return Err(OverBudget { wanted, allowance: self.allowance, what });
        }
        Ok(())
    }
}

fn held(start: i64) -> u64 {
    u64::try_from(allocator::net() - start).unwrap_or(0)
}

/// Unwinds to [`within`] if the thread holds more than its allowance. Costs a few nanoseconds: loops that grow something call it for
/// every element, or for every few.
#[inline]
pub fn check(what: &'static str) {
    announce(what, 0);
}

/// As [`check`], if `bytes` more were held: before something large is allocated in one go.
#[inline]
pub fn announce(what: &'static str, bytes: u64) {
    if let Some(allowance) = ALLOWANCE.get() {
        let wanted = held(allowance.start).saturating_add(bytes);
        if wanted > allowance.bytes || allocator::injected() {
            over(what, wanted, allowance.bytes);
        }
        if STOP.get().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            interrupted();
        }
    }
}

/// [`announce`] for `n` elements of type `T`.
#[inline]
pub fn announce_rows<T>(what: &'static str, n: u64) {
    announce(what, n.saturating_mul(size_of::<T>() as u64));
}

/// [`check`] before `rows` get one more. Where they have no room left they are about to double: what that takes must fit as well.
#[inline]
pub fn check_growth<T>(what: &'static str, rows: &Vec<T>) {
    let more = if rows.len() == rows.capacity() { rows.capacity() as u64 } else { 0 };
    announce_rows::<T>(what, more);
}

#[cold]
fn over(what: &'static str, wanted: u64, allowance: u64) -> ! {
    resume_unwind(Box::new(OverBudget { wanted, allowance, what }))
}

#[cold]
fn interrupted() -> ! {
    resume_unwind(Box::new(Interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(ended: Result<impl Sized, Unfinished>) -> OverBudget {
        match ended {
            Err(Unfinished::OverBudget(over)) => over,
            _ => panic!("it was not over the budget"),
        }
    }

    #[test]
    fn what_grows_beyond_the_allowance_is_stopped_and_freed() {
        let before = allocator::net();
        let ended = within(1 << 20, || {
            let mut rows: Vec<Vec<u8>> = Vec::new();
            loop {
                rows.push(vec![0; 1000]);
                check("rows");
            }
        });
        let ended: Result<((), u64), Unfinished> = ended;
        let over = over(ended);
        assert_eq!((over.what, over.allowance), ("rows", 1 << 20));
        assert!((1 << 20..(1 << 20) + 40_000).contains(&over.wanted), "{over:?}");
        assert!((allocator::net() - before).abs() < 1000, "{before} {}", allocator::net());
    }

    #[test]
    fn what_is_announced_is_not_allocated() {
        let over = over(within(1 << 20, || announce_rows::<u64>("words", 1 << 40)));
        assert_eq!(over, OverBudget { wanted: over.wanted, allowance: 1 << 20, what: "words" });
        assert!(over.wanted >= 8 << 40);
    }

    #[test]
    fn rows_are_stopped_before_they_double_beyond_the_allowance() {
        let most = std::cell::Cell::new(0);
        let over = over(within(1 << 20, || {
            let mut rows: Vec<u64> = Vec::new();
            loop {
                check_growth("rows", &rows);
                rows.push(0);
                most.set(rows.capacity());
            }
        }));
        let most = most.get();
        // Without its growth counted beforehand the next one would have been twice the allowance.
        assert!(over.wanted > 1 << 20 && (1 << 18..=1 << 20).contains(&(most * size_of::<u64>())), "{over:?} {most}");
    }

    #[test]
    fn work_says_what_it_holds() {
        let (rows, held) = within(1 << 20, || vec![1u8; 100_000]).unwrap();
        assert!((100_000..101_000).contains(&held), "{held}");
        drop(rows);
    }

    #[test]
    fn the_most_that_work_holds_is_measured() {
        let (kept, took) = measured(|| {
            drop(vec![0u8; 3 << 20]);
            vec![0u8; 1 << 20]
        });
        assert!((1 << 20..(1 << 20) + 1000).contains(&took.held), "{took:?}");
        assert!((3 << 20..(3 << 20) + 1000).contains(&took.most), "{took:?}");
        drop(kept);
        let (_, after) = measured(|| ());
        assert_eq!(after, Measured::default());
    }

    #[test]
    fn a_meter_tells_what_is_too_much_and_ends_nothing() {
        let meter = MemoryMeter::new(1 << 20);
        assert_eq!(meter.check("rows", 1 << 19), Ok(()));
        let rows = vec![0u8; 1 << 20];
        let over = meter.check("rows", 1000).unwrap_err();
        assert!((over.what, over.allowance) == ("rows", 1 << 20) && over.wanted >= (1 << 20) + 1000, "{over:?}");
        drop(rows);
        assert_eq!(meter.check("rows", 1000), Ok(()));
    }

    #[test]
    fn other_work_on_the_same_thread_does_not_count() {
        let (_, held) = within(1 << 20, || {
            let inner = within(1 << 22, || vec![0u8; 3 << 20]).unwrap();
            check("after it");
            inner.0.len()
        })
        .unwrap();
        assert!(held < 1000, "{held}");
    }

    #[test]
    fn outside_nothing_is_held_back() {
        announce("anything", u64::MAX);
    }

    #[test]
    #[should_panic(expected = "a defect")]
    fn a_panic_stays_a_panic() {
        let _ = within(1 << 20, || panic!("a defect"));
    }

    #[test]
    fn every_check_can_be_made_to_fail() {
        inject(Some(2));
        let ended = within(1 << 30, || {
            check("first");
            check("second");
            check("third");
        });
        inject(None);
        assert_eq!(over(ended).what, "third");
    }
}
