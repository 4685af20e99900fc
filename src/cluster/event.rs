//! What happens when.
//!
//! Layer: cluster. Events of one time come in the order of the variants below, then of their numbers: nothing depends on how they were entered.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One event. Versions tell events that still hold from those that something else has overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Ends {
        job: u32,
        version: u32,
    },
    /// A server is back from repair or maintenance.
    Returns {
        server: u32,
        version: u32,
    },
    /// A slow server is mended.
    Mended {
        server: u32,
        version: u32,
    },
    Arrives {
        job: u32,
    },
    /// A part that has failures drawn, by its number.
    Fails {
        part: u32,
    },
    /// A failure that a trace lists, by its number.
    Listed {
        failure: u32,
    },
    Drains {
        round: u32,
    },
    /// The jobs of a drained server have had their time.
    DrainEnds {
        server: u32,
        version: u32,
    },
    /// A job may start that was delayed.
    Wakes {
        job: u32,
    },
    /// A job begins to write a checkpoint, or has written it.
    Turns {
        job: u32,
        version: u32,
    },
}

/// What is still to come.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(u64, Event)>>,
}

impl Events {
    /// Enters an event.
    pub(super) fn add(&mut self, at_ms: u64, event: Event) {
        self.heap.push(Reverse((at_ms, event)));
    }

    /// When the next one is.
    pub(super) fn next_ms(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The next one of this time.
    pub(super) fn take_at(&mut self, at_ms: u64) -> Option<Event> {
        if self.next_ms() == Some(at_ms) { self.heap.pop().map(|Reverse((_, event))| event) } else { None }
    }
}
