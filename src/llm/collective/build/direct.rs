//! Direct schedules, in which every member sends to every other at once: all-to-all with even or uneven shares, and the one- or two-step forms of the other
//! collectives.
//!
//! Layer: collective. A sender takes its destinations in turn, beginning after its own number, so that no member is the first destination of all.

use super::super::CollectiveOp;
use super::error::ScheduleError;
use super::writer::{How, Range, ScheduleWriter, span};

/// Offsets of the bytes that each member sends to each other. The buffers of all members lie one after another.
pub(super) struct Shares {
    bytes: u64,
    /// n + 1 offsets in a member's buffer. The part for member d is `offsets[d]..offsets[d + 1]`.
    offsets: Vec<u64>,
}

impl Shares {
    pub(super) fn new(bytes: u64, n: u32, weights: Option<&[u64]>) -> Result<Shares, ScheduleError> {
        let even;
        let weights = match weights {
            Some(w) => w,
            None => {
                even = vec![1; n as usize];
                &even
            }
        };
        let sum: u128 = weights.iter().map(|&w| w as u128).sum();
        if weights.len() != n as usize || sum == 0 {
            return Err(ScheduleError::Shares { given: weights.len(), n, sum });
        }
        let mut offsets = vec![0];
        let mut before = 0u128;
        for &weight in weights {
            before += weight as u128;
            offsets.push(share_of(bytes, before, sum));
        }
        Ok(Shares { bytes, offsets })
    }

    /// Number of members that receive anything.
    pub(super) fn receivers(&self) -> u64 {
        self.offsets.windows(2).filter(|w| w[1] > w[0]).count() as u64
    }

    /// The bytes that `src` sends to `dst`, as offsets in the space of all members' buffers.
    pub(super) fn range(&self, src: u32, dst: u32) -> Range {
        let base = src as u64 * self.bytes;
        Range { start: base + self.offsets[dst as usize], end: base + self.offsets[dst as usize + 1] }
    }
}

/// floor(bytes * before / sum) without overflow. Weights may be byte counts, so they can be large.
fn share_of(bytes: u64, before: u128, sum: u128) -> u64 {
    let bytes = bytes as u128;
    match bytes.checked_mul(before) {
        Some(product) => (product / sum) as u64,
        // The weights sum to more than 2^64. Their low 64 bits decide less than a byte.
        None => (bytes * (before >> 64) / (sum >> 64).max(1)) as u64,
    }
}

pub(super) fn all_to_all(w: &mut ScheduleWriter, shares: &Shares, channels: u16) {
    each_pair(w, shares, |w, src, dst| {
        for c in 0..channels {
            w.send(src, dst, c, span(shares.range(src, dst), c as u64, channels as u64), How::Copy);
        }
    });
}

/// Calls `send` with every sender and receiver of a nonempty part, turn by turn, until the schedule is full.
pub(super) fn each_pair(w: &mut ScheduleWriter, shares: &Shares, mut send: impl FnMut(&mut ScheduleWriter, u32, u32)) {
    let n = w.n();
    // If there are few bytes, most members receive nothing. Only receivers of a nonempty part are kept, since there are many pairs.
    let receivers: Vec<u32> =
        (0..n).filter(|&dst| shares.offsets[dst as usize + 1] > shares.offsets[dst as usize]).collect();
    w.announce(receivers.len() as u64 * u64::from(n.saturating_sub(1)));
    let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(receivers.len());
    for turn in 1..n {
        if w.is_full() {
            return;
        }
        pairs.clear();
        pairs.extend(receivers.iter().map(|&dst| ((dst + n - turn) % n, dst)));
        pairs.sort_unstable();
        pairs.iter().for_each(|&(src, dst)| send(w, src, dst));
    }
}

pub(super) fn write(w: &mut ScheduleWriter, op: CollectiveOp, bytes: u64, channels: u16, root: u32) {
    let n = w.n();
    let whole = Range { start: 0, end: bytes };
    let members: Vec<u32> = (0..n).collect();
    for c in 0..channels {
        let part = |range| span(range, c as u64, channels as u64);
        let shards: Vec<Vec<Range>> = (0..n).map(|m| vec![part(span(whole, m as u64, n as u64))]).collect();
        match op {
            CollectiveOp::Broadcast => {
                (1..n).for_each(|turn| w.send(root, (root + turn) % n, c, part(whole), How::Copy))
            }
            CollectiveOp::Reduce => {
                (1..n).for_each(|turn| w.send((root + turn) % n, root, c, part(whole), How::Reduce))
            }
            _ => {
                if op != CollectiveOp::AllGather {
                    reduce_scatter(w, &members, c, &shards);
                }
                if op != CollectiveOp::ReduceScatter {
                    all_gather(w, &members, c, &shards);
                }
            }
        }
    }
}

/// Each position sends every other its part. Afterwards position p holds the sum of `parts[p]`.
pub(super) fn reduce_scatter(w: &mut ScheduleWriter, members: &[u32], channel: u16, parts: &[Vec<Range>]) {
    let n = members.len();
    for turn in 1..n {
        for p in 0..n {
            let q = (p + turn) % n;
            w.send_all(members[p], members[q], channel, &parts[q], How::Reduce);
        }
    }
}

/// Each position p begins with `parts[p]` and sends it to every other.
pub(super) fn all_gather(w: &mut ScheduleWriter, members: &[u32], channel: u16, parts: &[Vec<Range>]) {
    let n = members.len();
    for turn in 1..n {
        for p in 0..n {
            w.send_all(members[p], members[(p + turn) % n], channel, &parts[p], How::Copy);
        }
    }
}
