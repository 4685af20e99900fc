//! PAT, parallel aggregated trees: an all-gather or reduce-scatter by one binomial tree for each member, all of them at once.
//!
//! Layer: collective. Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", 2025 (NCCL 2.23). Far members are reached first, by
//! few bytes; most bytes go to the nearest. What a member sends to another in one step is of several trees, and counts as one message of a channel.

use super::super::CollectiveOp;
use super::writer::{How, Range, ScheduleWriter, span};

/// This channel's part of the data of member `m`, of `n`.
fn shard(bytes: u64, m: u32, n: u32, c: u16, channels: u16) -> Range {
    let own = span(Range { start: 0, end: bytes }, m.into(), n.into());
    span(own, c.into(), channels.into())
}

pub(super) fn write(w: &mut ScheduleWriter, op: CollectiveOp, bytes: u64, channels: u16) {
    let n = w.n();
    let levels = u32::BITS - (n - 1).leading_zeros();
    for c in 0..channels {
        // In the tree of member `root`, place `p` is member `root + p`. Each place that is a multiple of `2 distance` has a child `distance` further on.
        let between = |parent: u32, distance: u32| -> Vec<Range> {
            let trees = (0..n).filter(|root| {
                let place = (parent + n - root) % n;
                place.is_multiple_of(2 * distance) && place + distance < n
            });
            trees.map(|root| shard(bytes, root, n, c, channels)).collect()
        };
        let distances = (0..levels).map(|level| 1 << level);
        if op == CollectiveOp::AllGather {
            for distance in distances.rev() {
                for parent in 0..n {
                    w.send_all(parent, (parent + distance) % n, c, &between(parent, distance), How::Copy);
                }
            }
        } else {
            for distance in distances {
                for parent in 0..n {
                    w.send_all((parent + distance) % n, parent, c, &between(parent, distance), How::Reduce);
                }
            }
        }
    }
}
