//! Ring schedules: reduce-scatter and all-gather around a ring, chains for broadcast and reduction.
//!
//! Layer: collective. Each channel has its own order of members, so that channels leave servers by different NICs.

use super::super::CollectiveOp;
use super::options::ScheduleOptions;
use super::shape::Shape;
use super::writer::{How, Range, ScheduleWriter, span};

/// The order of members in the ring of channel `c`.
///
/// Across servers, the ring of channel c enters a server at place c and leaves it at place c - 1. It passes every other server backwards, so that a hop between
/// servers stays on its rail. Within one server, rings step by different strides, so that all links of a mesh are used. If pairs have links of their own, rings
/// across servers zigzag through each server (Walecki's paths). Then k channels of an even number k of members use every link once in each direction.
///
/// Rings that may cross rails pass all servers forwards, as NCCL's search orders the GPUs of all servers alike. A hop then leads from place c - 1 to place c.
pub(in crate::collective) fn order(shape: &Shape, c: u16, options: &ScheduleOptions) -> Vec<u32> {
    let servers = shape.by_server();
    if servers.len() == 1 {
        let members = &servers[0];
        let n = members.len();
        let strides: Vec<usize> = (1..n.max(2)).filter(|&s| gcd(s, n) == 1).collect();
        let stride = strides[c as usize % strides.len()];
        return (0..n).map(|i| members[i * stride % n]).collect();
    }
    let mut ring = Vec::with_capacity(shape.members.len());
    for (s, members) in servers.iter().enumerate() {
        let k = members.len();
        let step = |i: usize| match (options.own_links, i % 2) {
            (false, _) => i,
            (true, 1) => i.div_ceil(2),
            (true, _) => k - i / 2,
        };
        let turned = (0..k).map(|i| members[(step(i) + c as usize) % k]);
        if s % 2 == 0 || options.cross_nic {
            ring.extend(turned);
        } else {
            ring.extend(turned.rev());
        }
    }
    ring
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

pub(super) fn write(w: &mut ScheduleWriter, op: CollectiveOp, bytes: u64, shape: &Shape, options: &ScheduleOptions) {
    let (channels, root) = (options.channels.max(1), options.root);
    let n = w.n() as u64;
    let whole = Range { start: 0, end: bytes };
    for c in 0..channels {
        let ring = order(shape, c, options);
        // The shard of member m belongs to m on every channel. A channel takes its share of each shard.
        let share: Vec<Range> =
            ring.iter().map(|&m| span(span(whole, m as u64, n), c as u64, channels as u64)).collect();
        match op {
            CollectiveOp::AllReduce => {
                reduce_scatter(w, &ring, c, &share);
                all_gather(w, &ring, c, &share);
            }
            CollectiveOp::ReduceScatter => reduce_scatter(w, &ring, c, &share),
            CollectiveOp::AllGather => all_gather(w, &ring, c, &share),
            _ => {
                let root_position = ring.iter().position(|&m| m == root).expect("the root is a member");
                let chain: Vec<u32> = ring[root_position..].iter().chain(&ring[..root_position]).copied().collect();
                let part = span(whole, c as u64, channels as u64);
                if op == CollectiveOp::Broadcast {
                    chain_down(w, &chain, c, part);
                } else {
                    chain_up(w, &chain, c, part);
                }
            }
        }
    }
}

/// Reduce-scatter in n - 1 steps. Afterwards position p of the ring holds the sum of `blocks[p]`.
pub(super) fn reduce_scatter(w: &mut ScheduleWriter, ring: &[u32], channel: u16, blocks: &[Range]) {
    let n = ring.len();
    for step in 0..n.saturating_sub(1) {
        for p in 0..n {
            w.send(ring[p], ring[(p + 1) % n], channel, blocks[(p + n - step - 1) % n], How::Reduce);
        }
    }
}

/// All-gather in n - 1 steps. Position p begins with `blocks[p]`, and all positions end with all blocks.
pub(super) fn all_gather(w: &mut ScheduleWriter, ring: &[u32], channel: u16, blocks: &[Range]) {
    let n = ring.len();
    for step in 0..n.saturating_sub(1) {
        for p in 0..n {
            w.send(ring[p], ring[(p + 1) % n], channel, blocks[(p + n - step) % n], How::Copy);
        }
    }
}

/// Sends a range from the first member of a chain to the last.
pub(super) fn chain_down(w: &mut ScheduleWriter, chain: &[u32], channel: u16, range: Range) {
    for pair in chain.windows(2) {
        w.send(pair[0], pair[1], channel, range, How::Copy);
    }
}

/// Sends a range from the last member of a chain to the first, and sums it up on the way.
pub(super) fn chain_up(w: &mut ScheduleWriter, chain: &[u32], channel: u16, range: Range) {
    for pair in chain.windows(2).rev() {
        w.send(pair[1], pair[0], channel, range, How::Reduce);
    }
}
