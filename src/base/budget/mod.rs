//! How much memory the process may use, and what happens when an experiment would use more.
//!
//! Layer: the lowest; knows no simulator. It has three parts:
//! - `available`: what the machine, its container and `ulimit -v` leave.
//! - [`CountingAllocator`]: counts what each thread allocates. Programs install it. Without it, only what is announced counts.
//! - [`within`]: runs a piece of work under an allowance, and until the process is asked to end ([`stop_on`]). The work calls [`check`] while something grows,
//!   or [`announce`] before it allocates something large. Beyond the allowance both unwind to `within`, which returns [`OverBudget`]. So the functions in
//!   between need no error for it, and what the work had allocated is freed on the way.
//!
//! Unwinding uses `resume_unwind`: it is no panic, prints nothing and runs no hook.

mod allocator;
mod available;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use allocator::inject;
pub use allocator::{CountingAllocator, give_back};
pub use available::{available, free_memory, kib_of};

/// The error of work that would have taken more memory than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// Bytes that it wanted when it was stopped. The whole of it may need more.
    pub wanted: u64,
    /// Bytes that it may take.
    pub allowance: u64,
    /// The object that was being made at that time.
    pub what: &'static str,
}

/// Why work was not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// It would have held more than its allowance.
    OverBudget(OverBudget),
    /// The process was asked to end ([`stop_on`]).
    Interrupted,
}

/// The payload with which [`check`] unwinds when the process is asked to end.
struct Interrupted;

/// An allowance that is in force on a thread.
#[derive(Clone, Copy)]
struct Allowance {
    bytes: u64,
    /// The value of [`allocator::net`] when it began.
    start: i64,
}

thread_local! {
    static ALLOWANCE: Cell<Option<Allowance>> = const { Cell::new(None) };
}

/// Bytes that the whole process may use, or 0 if they are not set yet.
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Says that the process should end.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on, work under an allowance stops at its next check once `flag` is set. Programs call this once; only the first call counts.
pub fn stop_on(flag: &Arc<AtomicBool>) {
    let _ = STOP.set(Arc::clone(flag));
}

/// Sets the bytes that the whole process may use. The last call counts.
pub fn set_total(bytes: u64) {
    TOTAL.store(bytes.max(1), Ordering::Relaxed);
}

/// Returns the bytes that the whole process may use: those that were set, or what is available at the first call.
pub fn total() -> u64 {
    match TOTAL.load(Ordering::Relaxed) {
        0 => {
            let found = available().max(1);
            // Another thread may have stored its value first.
            match TOTAL.compare_exchange(0, found, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => found,
                Err(set) => set,
            }
        }
        set => set,
    }
}

/// Returns the name of the work that is under way, to show to people who wait.
static DOING: Mutex<&'static str> = Mutex::new("");

/// Notes what is made from now on. Work calls this before it begins something that may take long. With several threads, the last that began something counts.
pub fn doing(what: &'static str) {
    *DOING.lock().unwrap_or_else(PoisonError::into_inner) = what;
}

/// Returns what is being made at present. It is empty if nothing has begun yet.
pub fn current_work() -> &'static str {
    *DOING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work`, which may hold up to `allowance` bytes at a time, and returns how many it holds at its end.
///
/// # Errors
/// The work wanted more, or the process should end. What the work had allocated is free again.
pub fn within<T>(allowance: u64, work: impl FnOnce() -> T) -> Result<(T, u64), Unfinished> {
    let start = allocator::net();
    let outer = ALLOWANCE.replace(Some(Allowance { bytes: allowance, start }));
    // What was being made is dropped during the unwinding. Data that experiments share is behind locks, which are not held while it is made.
    let ended = catch_unwind(AssertUnwindSafe(work));
    ALLOWANCE.set(outer);
    let held = held(start);
    if outer.is_some() {
        // A thread of a pool took on this work while it waited for other work. Its bytes do not belong to the outer work.
        allocator::set_net(start);
    }
    match ended {
        Ok(value) => Ok((value, held)),
        Err(thrown) => match thrown.downcast::<OverBudget>() {
            Ok(stopped) => Err(Unfinished::OverBudget(*stopped)),
            Err(other) if other.is::<Interrupted>() => Err(Unfinished::Interrupted),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// The memory that a piece of work took, in bytes, according to this thread's allocations. All are 0 if [`CountingAllocator`] is not installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// The bytes that it held at its end, beyond what was held before.
    pub held: u64,
    /// Maximum that it held at a time.
    pub peak: u64,
}

/// Runs `work` and returns what it took. What other threads allocate for it does not count.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, Measured) {
    let (start, outer_peak) = (allocator::net(), allocator::peak());
    allocator::set_peak(start);
    let value = work();
    let peak = allocator::peak();
    allocator::set_peak(peak.max(outer_peak));
    (value, Measured { held: held(start), peak: u64::try_from(peak - start).unwrap_or(0) })
}

/// The memory that a piece of work on this thread may hold. It is for work that ends with an error of its own instead of unwinding, and that a request to stop
/// does not end.
#[derive(Clone, Copy, Debug)]
pub struct MemoryMeter {
    start: i64,
    allowance: u64,
}

impl MemoryMeter {
    /// Returns a meter that counts from now on.
    pub fn new(allowance: u64) -> MemoryMeter {
        MemoryMeter { start: allocator::net(), allowance }
    }

    /// Checks that what the work holds and `more` bytes are within the allowance.
    ///
    /// # Errors
    /// They exceed it. `what` says what was being made.
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

/// Unwinds to [`within`] if the thread holds more than its allowance. A call costs a few nanoseconds, so loops in which something grows call it for every
/// element, or for every few.
#[inline]
pub fn check(what: &'static str) {
    announce(what, 0);
}

/// Does the same as [`check`] as if `bytes` more were held. It is called before something large is allocated at once.
#[inline]
pub fn announce(what: &'static str, bytes: u64) {
    if let Some(allowance) = ALLOWANCE.get() {
        let wanted = held(allowance.start).saturating_add(bytes);
        if wanted > allowance.bytes || allocator::injected() {
            unwind_over_budget(what, wanted, allowance.bytes);
        }
        if STOP.get().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            interrupted();
        }
    }
}

/// Calls [`announce`] for `n` elements of type `T`.
#[inline]
pub fn announce_rows<T>(what: &'static str, n: u64) {
    announce(what, n.saturating_mul(size_of::<T>() as u64));
}

/// Calls [`check`] before `rows` gets another element. If `rows` is full, its capacity is about to double, and the additional memory must fit as well.
#[inline]
pub fn check_growth<T>(what: &'static str, rows: &Vec<T>) {
    let more = if rows.len() == rows.capacity() { rows.capacity() as u64 } else { 0 };
    announce_rows::<T>(what, more);
}

#[cold]
fn unwind_over_budget(what: &'static str, wanted: u64, allowance: u64) -> ! {
    resume_unwind(Box::new(OverBudget { wanted, allowance, what }))
}

#[cold]
fn interrupted() -> ! {
    resume_unwind(Box::new(Interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over_budget(ended: Result<impl Sized, Unfinished>) -> OverBudget {
        match ended {
            Err(Unfinished::OverBudget(stopped)) => stopped,
            _ => panic!("it was not over the budget"),
        }
    }

    #[test]
    fn what_grows_beyond_the_allowance_is_stopped_and_freed() {
        let net_before = allocator::net();
        let ended = within(1 << 20, || {
            let mut rows: Vec<Vec<u8>> = Vec::new();
            loop {
                rows.push(vec![0; 1000]);
                check("rows");
            }
        });
        let ended: Result<((), u64), Unfinished> = ended;
        let stopped = over_budget(ended);
        assert_eq!((stopped.what, stopped.allowance), ("rows", 1 << 20));
        assert!((1 << 20..(1 << 20) + 40_000).contains(&stopped.wanted), "{stopped:?}");
        assert!((allocator::net() - net_before).abs() < 1000, "{net_before} {}", allocator::net());
    }

    #[test]
    fn what_is_announced_is_not_allocated() {
        let stopped = over_budget(within(1 << 20, || announce_rows::<u64>("words", 1 << 40)));
        assert_eq!(stopped, OverBudget { wanted: stopped.wanted, allowance: 1 << 20, what: "words" });
        assert!(stopped.wanted >= 8 << 40);
    }

    #[test]
    fn rows_are_stopped_before_they_double_beyond_the_allowance() {
        let capacity = std::cell::Cell::new(0);
        let stopped = over_budget(within(1 << 20, || {
            let mut rows: Vec<u64> = Vec::new();
            loop {
                check_growth("rows", &rows);
                rows.push(0);
                capacity.set(rows.capacity());
            }
        }));
        let capacity = capacity.get();
        // Without counting the growth in advance, the next capacity would have been twice the allowance.
        assert!(
            stopped.wanted > 1 << 20 && (1 << 18..=1 << 20).contains(&(capacity * size_of::<u64>())),
            "{stopped:?} {capacity}"
        );
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
        assert!((3 << 20..(3 << 20) + 1000).contains(&took.peak), "{took:?}");
        drop(kept);
        let (_, after) = measured(|| ());
        assert_eq!(after, Measured::default());
    }

    #[test]
    fn a_meter_tells_what_is_too_much_and_ends_nothing() {
        let meter = MemoryMeter::new(1 << 20);
        assert_eq!(meter.check("rows", 1 << 19), Ok(()));
        let rows = vec![0u8; 1 << 20];
        let stopped = meter.check("rows", 1000).unwrap_err();
        assert!(
            (stopped.what, stopped.allowance) == ("rows", 1 << 20) && stopped.wanted >= (1 << 20) + 1000,
            "{stopped:?}"
        );
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
        assert_eq!(over_budget(ended).what, "third");
    }
}
