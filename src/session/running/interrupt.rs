//! A flag that asks a run to stop.
//!
//! Layer: session. The caller decides what sets it: Ctrl-C, a signal, an iterator that is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user has asked to stop. Cloning shares the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    own: Arc<AtomicBool>,
    /// Flags of the larger pieces of work that this one is a part of; each stops this one as well.
    others: Vec<Arc<AtomicBool>>,
}

impl Interrupt {
    /// Whether to stop.
    pub fn requested(&self) -> bool {
        self.own.load(Ordering::Relaxed) || self.others.iter().any(|other| other.load(Ordering::Relaxed))
    }

    /// Asks to stop. Returns whether that was asked before.
    pub fn request(&self) -> bool {
        self.own.swap(true, Ordering::SeqCst)
    }

    /// Creates a flag for a part of the work. It is set with the whole; the whole is not set with it.
    pub fn part(&self) -> Interrupt {
        let others = self.others.iter().chain([&self.own]).map(Arc::clone).collect();
        Interrupt { own: Arc::default(), others }
    }

    /// Returns the flag itself, for a signal handler.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stops_with_the_whole_and_not_the_other_way_round() {
        let whole = Interrupt::default();
        let (one, other) = (whole.part(), whole.part().part());
        assert!(!one.request() && one.requested() && !whole.requested() && !other.requested());
        whole.request();
        assert!(other.requested() && whole.part().requested());
    }
}
