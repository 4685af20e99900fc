//! A panic in one experiment is that experiment's failure.
//!
//! Layer: the lowest; knows no simulator. [`isolated`] runs the work of one experiment and makes a panic inside it a [`Defect`]. A program
//! that has called [`install_hook`] gets its place and backtrace too, and nothing is printed. Defects are kept until [`take_defects`]
//! asks for them, so that whoever has a folder can write them there.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// Backtraces that are kept: a defect that strikes every experiment is reported well enough by its first ones.
const MOST_KEPT: usize = 100;

/// A panic that was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Counted from 1 in this process.
    pub number: u64,
    /// What the panic said.
    pub message: String,
    /// File, line and column; empty without the hook.
    pub place: String,
    /// Empty without the hook.
    pub backtrace: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let at = if self.place.is_empty() { String::new() } else { format!(" at {}", self.place) };
        write!(
            f,
            "a defect in hyperfold {}, number {} of this run: {}{at}; other experiments are not touched by it; please report it",
            env!("CARGO_PKG_VERSION"),
            self.number,
            self.message
        )
    }
}

/// Those that nobody has asked for yet, and how many there were.
static DEFECTS: Mutex<(u64, Vec<Defect>)> = Mutex::new((0, Vec::new()));

thread_local! {
    /// How many calls of [`isolated`] this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Place and backtrace of the last panic inside.
    static LAST: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Runs `work`.
///
/// # Errors
/// It panicked. What it had in hand is dropped.
pub fn isolated<T>(work: impl FnOnce() -> T) -> Result<T, Defect> {
    DEPTH.set(DEPTH.get() + 1);
    // Callers throw away what an experiment had; what experiments share is not changed in the middle of anything that can panic.
    let ended = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    ended.map_err(|payload| defect(&*payload))
}

fn defect(payload: &(dyn Any + Send)) -> Defect {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    // One line: it becomes a cell of a table.
    let message = text.unwrap_or_else(|| "a panic without a message".into()).replace(['\n', '\r'], " ");
    let (place, backtrace) = LAST.take().unwrap_or_default();
    let mut defects = DEFECTS.lock().unwrap_or_else(PoisonError::into_inner);
    defects.0 += 1;
    let defect = Defect { number: defects.0, message, place, backtrace };
    if defects.1.len() < MOST_KEPT {
        defects.1.push(defect.clone());
    }
    defect
}

/// Defects since the last call, the oldest first.
pub fn take_defects() -> Vec<Defect> {
    std::mem::take(&mut DEFECTS.lock().unwrap_or_else(PoisonError::into_inner).1)
}

/// From now on panics inside [`isolated`] print nothing, and their place and backtrace are kept. Other panics go to the hook that was there.
pub fn install_hook() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if DEPTH.get() == 0 {
            return before(info);
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        LAST.set(Some((place, Backtrace::force_capture().to_string())));
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_defect_with_its_place() {
        assert_eq!(isolated(|| 7), Ok(7));
        let defect = isolated(|| -> u32 { panic!("row {}\nis gone", 3) }).unwrap_err();
        assert_eq!(defect.message, "row 3 is gone");
        let text = defect.to_string();
        assert!(text.starts_with("a defect in hyperfold ") && text.contains("row 3 is gone"), "{text}");
        assert!(take_defects().iter().any(|d| d.number == defect.number));
    }
}
