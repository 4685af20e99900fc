//! Whether skipping is worth its error. Where it leaves out less than half of an experiment's packet-hops, less than a
//! factor of two is gained, and the experiment starts over without it.
//!
//! Layer: fold/run. Decides by counts that nothing but the experiment determines: packet-hops that its messages need,
//! and those of them that no skip left out, whoever simulated them.

use crate::columns::{Tables, Task, mode, task as bits};
use crate::engine::fold::run::stats::FoldStats;
use crate::engine::fold::steady::sampling::{hops_there_and_back, is_steadying};
use crate::engine::packet_hops;

/// One in so many packet-hops must be skipped.
const LEAST_SHARE: u64 = 2;

/// Turns that are counted together. When a look falls due must not depend on how many turns are taken in one go: what was
/// simulated until then is counted.
const TURNS_TOGETHER: u64 = 256;

/// What an experiment may take without skips.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeastGain {
    /// The most packet-hops that are not skipped; `u64::MAX`: nobody asks.
    most: u64,
    /// Turns between looks, as counting takes as long as there are rows; and those since the last.
    every: u64,
    turns: u64,
    /// Of those counted together.
    counted: u64,
}

impl LeastGain {
    /// PRECONDITION: nothing of `t` has happened.
    pub(crate) fn of(t: &Tables) -> LeastGain {
        let asked = is_steadying(t) && t.exps[0].modes & mode::MUST_GAIN != 0;
        let most = if asked { hops_needed(t) / LEAST_SHARE } else { u64::MAX };
        LeastGain { most, every: (t.nics.len() + t.ports.len()) as u64, turns: 0, counted: 0 }
    }

    /// Of a copy, of which nobody asks what it gains.
    pub(crate) fn unasked() -> LeastGain {
        LeastGain { most: u64::MAX, every: u64::MAX, turns: 0, counted: 0 }
    }

    /// Counts a turn that is about to be taken. Whether it is time to look.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        let first = self.counted == 0;
        self.counted = (self.counted + 1) % TURNS_TOGETHER;
        first && self.are_due()
    }

    fn are_due(&mut self) -> bool {
        self.turns += TURNS_TOGETHER;
        self.most != u64::MAX && self.turns >= self.every && std::mem::take(&mut self.turns) > 0
    }

    /// Whether what was skipped, rounded or left out gains too little. Once that is so it remains so, so it does not matter when
    /// anybody looks.
    pub(crate) fn is_too_little(&self, t: &Tables, stats: &FoldStats) -> bool {
        self.most != u64::MAX
            && (stats.skips > 0 || stats.rounded > 0 || stats.unpaused > 0)
            && packet_hops(t).saturating_sub(stats.hops_skipped) > self.most
    }
}

/// The packet-hops that the messages of `t` and their acknowledgements need.
pub(crate) fn hops_needed(t: &Tables) -> u64 {
    t.tasks.iter().map(|row| message_hops(t, row)).sum()
}

/// The packet-hops that task `row` needs; none if it is no message.
pub(crate) fn message_hops(t: &Tables, row: &Task) -> u64 {
    if row.flags & bits::MESSAGE == 0 {
        return 0;
    }
    let payload = u64::from(t.exps[0].payload.max(1));
    row.bytes.div_ceil(payload).max(1) * hops_there_and_back(t, row.flow)
}
