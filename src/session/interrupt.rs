//! A flag that asks a run to stop.
//!
//! Layer: session. Who sets it (Ctrl-C, a signal, an iterator that is dropped) is the caller's to decide.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user has asked to stop. Cloning shares the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Whether to stop.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks to stop. True if that was asked before.
    pub fn request(&self) -> bool {
        self.0.swap(true, Ordering::SeqCst)
    }

    /// The flag itself, for a signal handler.
    pub(crate) fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}
