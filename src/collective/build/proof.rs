//! A symbolic interpreter of schedules: proves that every member ends with the right data whatever the timing, from what each message carried.
//!
//! Contributions are sets of members; a sum that counts one twice, a copy of something the sender need not have, an overwrite of what is yet to be sent are found.

use super::writer::{How, Range, ScheduleWriter};
use super::{ScheduleOptions, Shape, span, write};
use crate::collective::{Algorithm, CollectiveOp};

/// A set of transfers.
#[derive(Clone)]
struct Set(Vec<u64>);

impl Set {
    fn new(n: usize) -> Set {
        Set(vec![0; n.div_ceil(64)])
    }
    fn add(&mut self, i: u32) {
        self.0[i as usize / 64] |= 1 << (i % 64);
    }
    fn has(&self, i: u32) -> bool {
        self.0[i as usize / 64] >> (i % 64) & 1 == 1
    }
    fn join(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

/// For each transfer what was delivered for certain when it is sent, and when it is delivered (itself not counted).
fn certain(w: &ScheduleWriter) -> (Vec<Set>, Vec<Set>) {
    let s = &w.schedule;
    let n = s.transfers.len();
    let (mut at_send, mut at_delivery): (Vec<Set>, Vec<Set>) = (Vec::new(), Vec::new());
    let mut last = std::collections::BTreeMap::new();
    for (i, t) in s.transfers.iter().enumerate() {
        assert!(t.from != t.to && t.bytes >= 1 && t.from < s.n && t.to < s.n, "{t:?}");
        let mut send = Set::new(n);
        for &a in &s.after[t.after_first as usize..(t.after_first + t.after_n) as usize] {
            assert!((a as usize) < i && s.transfers[a as usize].to == t.from, "transfer {i} waits for {a}");
            send.add(a);
            send.join(&at_delivery[a as usize]);
        }
        let mut delivery = send.clone();
        if let Some(&before) = last.get(&(t.from, t.to, t.channel)) {
            // Sent in order, delivered in order.
            send.join(&at_send[before as usize]);
            delivery.join(&at_delivery[before as usize]);
            delivery.join(&at_send[before as usize]);
            delivery.add(before);
        }
        last.insert((t.from, t.to, t.channel), i as u32);
        at_send.push(send);
        at_delivery.push(delivery);
    }
    (at_send, at_delivery)
}

/// Builds and interprets; panics with what is wrong.
pub(super) fn prove(op: CollectiveOp, algorithm: Algorithm, bytes: u64, shape: &Shape, options: &ScheduleOptions) {
    check(&write(op, algorithm, bytes, shape, options).unwrap(), op, algorithm, bytes, shape, options);
}

/// Interprets what a writer wrote.
pub(super) fn check(
    w: &ScheduleWriter,
    op: CollectiveOp,
    algorithm: Algorithm,
    bytes: u64,
    shape: &Shape,
    options: &ScheduleOptions,
) {
    let s = &w.schedule;
    let n = s.n as u64;
    let what = format!("{op:?} {algorithm:?} {bytes} B {:?} {options:?}", shape.members);
    let (at_send, at_delivery) = certain(w);

    let space = if op == CollectiveOp::AllToAll { n * bytes } else { bytes.max(n) };
    let mut cuts: Vec<u64> = w
        .carried
        .iter()
        .flat_map(|c| c.ranges.iter().flat_map(|r| [r.start, r.end]))
        .chain([0, bytes, space])
        .collect();
    let shard = |m: u64| span(Range { start: 0, end: bytes }, m, n);
    cuts.extend(
        (0..n).flat_map(|m| [shard(m).start, shard(m).end, m, m * bytes * (op == CollectiveOp::AllToAll) as u64]),
    );
    cuts.sort_unstable();
    cuts.dedup();
    cuts.retain(|&c| c <= space);
    let cells = cuts.len() - 1;
    let cell = |at: u64| cuts.binary_search(&at).unwrap();

    // What is the datum: a sum of all members' contributions, or one copy (bit 0).
    let summed = matches!(op, CollectiveOp::AllReduce | CollectiveOp::Reduce | CollectiveOp::ReduceScatter)
        || op == CollectiveOp::Barrier && algorithm != Algorithm::Direct;
    let begins = |m: u64, at: u64| match op {
        _ if summed => 1u64 << m,
        CollectiveOp::Broadcast => (m == options.root as u64) as u64,
        CollectiveOp::Barrier => (at == m) as u64,
        CollectiveOp::AllToAll => (at / bytes.max(1) == m) as u64,
        _ => (shard(m).start <= at && at < shard(m).end) as u64,
    };
    let mut state: Vec<Vec<u64>> = (0..n).map(|m| (0..cells).map(|i| begins(m, cuts[i])).collect()).collect();
    let mut read: Vec<Vec<Vec<u32>>> = vec![vec![Vec::new(); cells]; n as usize];
    let mut written: Vec<Vec<Vec<u32>>> = vec![vec![Vec::new(); cells]; n as usize];
    for (i, (t, carried)) in s.transfers.iter().zip(&w.carried).enumerate() {
        assert_eq!(t.bytes, carried.ranges.iter().map(|r| r.end - r.start).sum::<u64>(), "{what}: transfer {i}");
        assert!(options.chunk_bytes == 0 || t.bytes <= options.chunk_bytes, "{what}: transfer {i} is too long");
        let (from, to) = (t.from as usize, t.to as usize);
        for k in carried.ranges.iter().flat_map(|r| cell(r.start)..cell(r.end)) {
            for &d in &written[from][k] {
                // A dissemination token says what its sender knows when it leaves; a later one says more.
                let token = op == CollectiveOp::Barrier && algorithm == Algorithm::HalvingDoubling;
                assert!(at_send[i].has(d) || token, "{what}: transfer {i} sends what {d} may not have brought yet");
            }
            let value = state[from][k];
            assert!(value != 0, "{what}: transfer {i} sends what {from} does not have");
            for &r in &read[to][k] {
                let harmless = carried.how == How::Copy && state[to][k] == value || op == CollectiveOp::Barrier;
                assert!(
                    at_delivery[i].has(r) || harmless,
                    "{what}: transfer {i} may overwrite what {r} has yet to send"
                );
            }
            read[from][k].push(i as u32);
            match carried.how {
                How::Copy => {
                    for &d in &written[to][k] {
                        assert!(at_delivery[i].has(d), "{what}: transfer {i} copies over {d} in either order");
                    }
                    state[to][k] = value;
                }
                How::Reduce => {
                    assert!(
                        state[to][k] & value == 0 || op == CollectiveOp::Barrier,
                        "{what}: transfer {i} adds twice"
                    );
                    state[to][k] |= value;
                }
            }
            written[to][k].push(i as u32);
        }
    }
    let full = if summed { (1 << n) - 1 } else { 1 };
    for m in 0..n {
        for k in 0..cells {
            let at = cuts[k];
            let due = match op {
                CollectiveOp::AllReduce | CollectiveOp::AllGather | CollectiveOp::Broadcast => at < bytes,
                CollectiveOp::Reduce => m == options.root as u64 && at < bytes,
                CollectiveOp::ReduceScatter => shard(m).start <= at && at < shard(m).end,
                CollectiveOp::Barrier => at < if algorithm == Algorithm::Direct { n } else { 1 },
                CollectiveOp::AllToAll => {
                    let shares = super::direct::Shares::new(bytes, n as u32, options.shares).unwrap();
                    let mine = shares.range((at / bytes.max(1)) as u32 % n as u32, m as u32);
                    mine.start <= at && at < mine.end
                }
            };
            assert!(
                !due || state[m as usize][k] == full,
                "{what}: member {m} ends without byte {at}: {:b}",
                state[m as usize][k]
            );
        }
    }
}
