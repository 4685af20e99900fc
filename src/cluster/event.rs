//! Events of a cluster, and the queue of those to come.
//!
//! Layer: cluster. Events at the same time come in the order of the variants below, then of their numbers. So the order in which they were entered does not
//! matter.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One event. If the version in an event is not the current one, something has overtaken the event and it is ignored.
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
    /// A slow server is fast again.
    Mended {
        server: u32,
        version: u32,
    },
    Arrives {
        job: u32,
    },
    /// A part fails. `part` is its index among the parts whose failures are drawn.
    Fails {
        part: u32,
    },
    /// A failure that a trace lists. `failure` is its index in the trace.
    Listed {
        failure: u32,
    },
    Drains {
        nth: u32,
    },
    /// The grace time for the jobs of a drained server is over.
    DrainEnds {
        server: u32,
        version: u32,
    },
    /// A job whose start was delayed may start now.
    Wakes {
        job: u32,
    },
    /// A job begins or ends writing a checkpoint.
    Turns {
        job: u32,
        version: u32,
    },
}

/// Queue of the events to come, by time in ms.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(u64, Event)>>,
}

impl Events {
    /// Enters an event at `at_ms`.
    pub(super) fn add(&mut self, at_ms: u64, event: Event) {
        self.heap.push(Reverse((at_ms, event)));
    }

    /// Time of the next event, in ms.
    pub(super) fn next_ms(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_ms, _))| *at_ms)
    }

    /// Removes and returns the next event, if it is at `at_ms`.
    pub(super) fn take_at(&mut self, at_ms: u64) -> Option<Event> {
        if self.next_ms() == Some(at_ms) { self.heap.pop().map(|Reverse((_, event))| event) } else { None }
    }
}
