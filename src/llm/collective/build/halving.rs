//! Recursive halving and doubling, and the dissemination barrier. The number of steps is logarithmic.
//!
//! Layer: collective. If the number of members is not a power of two, the first members work in pairs: one of a pair hands its data to the other and is handed
//! the result (Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH").

use super::super::CollectiveOp;
use super::writer::{How, Range, ScheduleWriter, span};

/// The members that take part (players). Each acts for a range of member numbers.
struct Halves {
    /// (player, first member it acts for, one past the last).
    players: Vec<(u32, u32, u32)>,
    n: u32,
}

impl Halves {
    fn new(n: u32) -> Halves {
        let power = 1 << n.ilog2();
        let pairs = n - power;
        let players = (0..power)
            .map(|j| if j < pairs { (2 * j + 1, 2 * j, 2 * j + 2) } else { (j + pairs, j + pairs, j + pairs + 1) })
            .collect();
        Halves { players, n }
    }

    /// The pairs: (member that waits, member that takes part).
    fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.players.iter().filter(|(_, first, last)| last - first == 2).map(|&(player, first, _)| (first, player))
    }

    /// This channel's share of the shards of members `first..last`.
    fn shards(&self, bytes: u64, first: u32, last: u32, c: u16, channels: u16) -> Vec<Range> {
        let whole = Range { start: 0, end: bytes };
        let n = self.n as u64;
        if first == last {
            return Vec::new();
        }
        if channels == 1 {
            return vec![Range { start: span(whole, first as u64, n).start, end: span(whole, last as u64 - 1, n).end }];
        }
        (first..last).map(|m| span(span(whole, m as u64, n), c as u64, channels as u64)).collect()
    }

    /// The range of members that players `start..end` act for.
    fn members(&self, start: usize, end: usize) -> (u32, u32) {
        (self.players[start].1, self.players[end - 1].2)
    }
}

pub(super) fn write(w: &mut ScheduleWriter, op: CollectiveOp, bytes: u64, channels: u16) {
    let halves = Halves::new(w.n());
    let players = halves.players.len();
    let steps = players.ilog2();
    for c in 0..channels {
        let shards = |first, last| halves.shards(bytes, first, last, c, channels);
        if op != CollectiveOp::AllGather {
            for (waits, plays) in halves.pairs() {
                w.send_all(waits, plays, c, &shards(0, halves.n), How::Reduce);
            }
            for distance in (0..steps).rev().map(|k| 1usize << k) {
                for j in 0..players {
                    let partner = j ^ distance;
                    let base = partner & !(distance - 1);
                    let (first, last) = halves.members(base, base + distance);
                    w.send_all(halves.players[j].0, halves.players[partner].0, c, &shards(first, last), How::Reduce);
                }
            }
            if op == CollectiveOp::ReduceScatter {
                for (waits, plays) in halves.pairs() {
                    w.send_all(plays, waits, c, &shards(waits, waits + 1), How::Copy);
                }
            }
        } else {
            for (waits, plays) in halves.pairs() {
                w.send_all(waits, plays, c, &shards(waits, waits + 1), How::Copy);
            }
        }
        if op != CollectiveOp::ReduceScatter {
            for distance in (0..steps).map(|k| 1usize << k) {
                for j in 0..players {
                    let base = j & !(distance - 1);
                    let (first, last) = halves.members(base, base + distance);
                    w.send_all(halves.players[j].0, halves.players[j ^ distance].0, c, &shards(first, last), How::Copy);
                }
            }
            for (waits, plays) in halves.pairs() {
                // In an all-gather, the waiting member already has its own shard.
                let all = if op == CollectiveOp::AllGather {
                    [shards(0, waits), shards(waits + 1, halves.n)].concat()
                } else {
                    shards(0, halves.n)
                };
                w.send_all(plays, waits, c, &all, How::Copy);
            }
        }
    }
}

/// Dissemination barrier: in step k each member tells the member 2^k further on all it knows, in one byte.
pub(super) fn barrier(w: &mut ScheduleWriter) {
    let n = w.n();
    let mut distance = 1;
    while distance < n {
        let pairs: Vec<(u32, u32)> = (0..n).map(|m| (m, (m + distance) % n)).collect();
        w.tokens(&pairs);
        distance *= 2;
    }
}
