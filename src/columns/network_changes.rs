//! Changes of an experiment's network that are still to come. No column: the host makes them between two steps.

use super::index::{FlowIdx, LinkEndIdx};
use super::rows::Port;

/// Bit of [`Port::peer`](super::Port::peer) that says that the port's link is down.
pub const LINK_DOWN: u32 = 1 << 31;
/// Value of [`Nic::paused`](super::Nic::paused) while the NIC's link is down.
pub const HOLDS: u32 = 2;

impl Port {
    /// Whether its link is down. PRECONDITION: it has a link.
    #[inline(always)]
    pub fn is_cut_off(&self) -> bool {
        self.peer.0 & LINK_DOWN != 0
    }

    /// The link end at the other end of its link, whether the link is up or down; `NONE`: it has no link.
    #[inline]
    pub fn other_end(&self) -> LinkEndIdx {
        if self.peer.is_none() { self.peer } else { LinkEndIdx(self.peer.0 & !LINK_DOWN) }
    }
}

/// Entries of `paths` that hold some paths one behind the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSpan {
    /// First entry.
    pub first: u32,
    /// Number of entries of one path.
    pub len: u32,
    /// Number of paths.
    pub n: u32,
}

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableChange {
    /// The link between these two ends fails.
    LinkDown([LinkEndIdx; 2]),
    /// The link between these two ends comes back.
    LinkUp([LinkEndIdx; 2]),
    /// Packets of a queue pair take other paths from now on.
    NewPaths {
        /// The queue pair.
        flow: FlowIdx,
        /// Paths of its data.
        data: PathSpan,
        /// Paths of the answers to it.
        answers: PathSpan,
    },
}

/// The changes of an experiment's network. Until the next one, `Exp::time_limit` is its time at the latest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkChanges {
    /// Time in ps and kind of each change, in the order in which they happen.
    pub list: Vec<(u64, TableChange)>,
    /// Index of the next change.
    pub next: usize,
    /// Simulated time at which the experiment ends at the latest, in ps: the time limit after the last change.
    pub time_limit: u64,
}

impl NetworkChanges {
    /// Time of the next change, in ps; `None`: there is none.
    #[inline]
    pub fn next_time(&self) -> Option<u64> {
        self.list.get(self.next).map(|&(time, _)| time)
    }
}
