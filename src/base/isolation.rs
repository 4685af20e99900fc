//! Makes a panic in one experiment a failure of that experiment only.
//!
//! Layer: the lowest; knows no simulator. [`isolated`] runs the work of one experiment and turns a panic inside it into a [`Defect`]. In a program that has
//! called [`install_hook`], the defect also has a place and a backtrace, and nothing is printed. Defects are kept until [`take_defects`] is called, so that a
//! caller with a folder can write them there.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// Maximum number of defects that are kept with their backtraces. The first ones are enough to report a defect that occurs in every experiment.
const MAX_KEPT: usize = 100;

/// A panic that was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Its number, counted from 1 in this process.
    pub number: u64,
    /// The message of the panic.
    pub message: String,
    /// The file, line and column of the panic. It is empty without the hook.
    pub place: String,
    /// The backtrace. It is empty without the hook.
    pub backtrace: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let place_text = if self.place.is_empty() { String::new() } else { format!(" at {}", self.place) };
        write!(
            f,
            "a defect in hyperfold {}: {}{place_text}; other experiments are not touched by it; please report it",
            env!("CARGO_PKG_VERSION"),
            self.message
        )
    }
}

/// The number of defects so far, and those that nobody has taken yet.
static DEFECTS: Mutex<(u64, Vec<Defect>)> = Mutex::new((0, Vec::new()));

thread_local! {
    /// Number of calls of [`isolated`] that this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The place and the backtrace of the last panic inside [`isolated`].
    static LAST: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Runs `work`.
///
/// # Errors
/// The work panicked. What it was working on is dropped.
pub fn isolated<T>(work: impl FnOnce() -> T) -> Result<T, Defect> {
    DEPTH.set(DEPTH.get() + 1);
    // Callers discard what an experiment had. Data that experiments share is not left half changed by anything that can panic.
    let ended = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    ended.map_err(|payload| defect(&*payload))
}

fn defect(payload: &(dyn Any + Send)) -> Defect {
    let message = message_of_panic(payload);
    let (place, backtrace) = LAST.take().unwrap_or_default();
    let mut defects = DEFECTS.lock().unwrap_or_else(PoisonError::into_inner);
    defects.0 += 1;
    let defect = Defect { number: defects.0, message, place, backtrace };
    if defects.1.len() < MAX_KEPT {
        defects.1.push(defect.clone());
    }
    defect
}

/// Returns the message of a panic in one line, because it becomes a cell of a table.
pub fn message_of_panic(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".into()).replace(['\n', '\r'], " ")
}

/// Returns the oldest defect whose text is in `error`, the error of the experiment that met it. It is not returned again.
pub fn take_defect(error: &str) -> Option<Defect> {
    let mut defects = DEFECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = defects.1.iter().position(|defect| error.contains(&defect.to_string()))?;
    Some(defects.1.remove(place))
}

/// Returns the defects that nobody has taken, the oldest first.
pub fn take_defects() -> Vec<Defect> {
    std::mem::take(&mut DEFECTS.lock().unwrap_or_else(PoisonError::into_inner).1)
}

/// From now on, panics inside [`isolated`] print nothing, and their place and backtrace are kept. Other panics go to the hook that was installed before.
pub fn install_hook() {
    let previous_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if DEPTH.get() == 0 {
            return previous_hook(info);
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
        assert_eq!(take_defect("it ended well"), None);
        assert_eq!(take_defect(&format!("it failed: {text}")).map(|found| found.number), Some(defect.number));
        assert!(take_defects().iter().all(|d| d.number != defect.number));
    }
}
