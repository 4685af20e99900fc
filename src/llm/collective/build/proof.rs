//! A symbolic interpreter of schedules. It proves from the content of each message that every member ends with the right data, whatever the timing.
//!
//! Contributions are sets of members. It finds a sum that counts one contribution twice, a copy of data that the sender may not have yet, and an overwrite of
//! data that is still to be sent.

use super::writer::{How, Range, ScheduleWriter, span};
use super::{ScheduleOptions, Shape, write};
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

/// For each transfer, the set of transfers that are surely delivered when it is sent, and when it is delivered (itself not included).
fn certain(w: &ScheduleWriter) -> (Vec<Set>, Vec<Set>) {
    let s = &w.schedule;
    let n = s.transfers.len();
    let (mut at_send, mut at_delivery): (Vec<Set>, Vec<Set>) = (Vec::new(), Vec::new());
    let mut last = std::collections::BTreeMap::new();
    for (i, t) in s.transfers.iter().enumerate() {
        assert!(t.from != t.to && t.bytes >= 1 && t.from.max(t.to) < w.parties(), "{t:?}");
        let mut send = Set::new(n);
        for &a in &s.after[t.after_first as usize..(t.after_first + t.after_n) as usize] {
            assert!((a as usize) < i && s.transfers[a as usize].to == t.from, "transfer {i} waits for {a}");
            send.add(a);
            send.join(&at_delivery[a as usize]);
        }
        let mut delivery = send.clone();
        if let Some(&previous) = last.get(&(t.from, t.to, t.channel)) {
            // Messages of a connection are sent in order and delivered in order.
            send.join(&at_send[previous as usize]);
            delivery.join(&at_delivery[previous as usize]);
            delivery.join(&at_send[previous as usize]);
            delivery.add(previous);
        }
        last.insert((t.from, t.to, t.channel), i as u32);
        at_send.push(send);
        at_delivery.push(delivery);
    }
    (at_send, at_delivery)
}

/// Builds a schedule and interprets it; panics with what is wrong.
pub(super) fn prove(op: CollectiveOp, algorithm: Algorithm, bytes: u64, shape: &Shape, options: &ScheduleOptions) {
    check(&write(op, algorithm, bytes, shape, options).unwrap(), op, algorithm, bytes, shape, options);
}

/// Interprets the schedule of a writer; panics with what is wrong.
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
    let case = format!("{op:?} {algorithm:?} {bytes} B {:?} {options:?}", shape.members);
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
    let cell = |offset: u64| cuts.binary_search(&offset).unwrap();

    // The value of each datum: a sum of all members' contributions, or one copy (bit 0).
    let summed = matches!(op, CollectiveOp::AllReduce | CollectiveOp::Reduce | CollectiveOp::ReduceScatter)
        || op == CollectiveOp::Barrier && algorithm != Algorithm::Direct;
    let begins = |m: u64, offset: u64| match op {
        _ if summed => 1u64 << m,
        CollectiveOp::Broadcast => (m == options.root as u64) as u64,
        CollectiveOp::Barrier => (offset == m) as u64,
        CollectiveOp::AllToAll => (offset / bytes.max(1) == m) as u64,
        _ => (shard(m).start <= offset && offset < shard(m).end) as u64,
    };
    // Switches begin with nothing.
    let value_of = |party: u64, offset: u64| if party < n { begins(party, offset) } else { 0 };
    let parties = u64::from(w.parties());
    let mut state: Vec<Vec<u64>> = (0..parties).map(|m| (0..cells).map(|i| value_of(m, cuts[i])).collect()).collect();
    let mut read: Vec<Vec<Vec<u32>>> = vec![vec![Vec::new(); cells]; parties as usize];
    let mut written: Vec<Vec<Vec<u32>>> = vec![vec![Vec::new(); cells]; parties as usize];
    for (i, (t, carried)) in s.transfers.iter().zip(&w.carried).enumerate() {
        assert_eq!(t.bytes, carried.ranges.iter().map(|r| r.end - r.start).sum::<u64>(), "{case}: transfer {i}");
        assert!(options.chunk_bytes == 0 || t.bytes <= options.chunk_bytes, "{case}: transfer {i} is too long");
        let (src, dst) = (t.from as usize, t.to as usize);
        for k in carried.ranges.iter().flat_map(|r| cell(r.start)..cell(r.end)) {
            for &d in &written[src][k] {
                // A dissemination token carries what its sender knows when it leaves; a later token carries more.
                let token = op == CollectiveOp::Barrier && algorithm == Algorithm::HalvingDoubling;
                assert!(at_send[i].has(d) || token, "{case}: transfer {i} sends what {d} may not have brought yet");
            }
            let value = state[src][k];
            assert!(value != 0, "{case}: transfer {i} sends what {src} does not have");
            for &r in &read[dst][k] {
                let harmless = carried.how == How::Copy && state[dst][k] == value || op == CollectiveOp::Barrier;
                assert!(
                    at_delivery[i].has(r) || harmless,
                    "{case}: transfer {i} may overwrite what {r} has yet to send"
                );
            }
            // What a member sends to a switch comes from its input, and sums have a buffer of their own.
            if t.to < s.n {
                read[src][k].push(i as u32);
            }
            match carried.how {
                How::Copy => {
                    for &d in &written[dst][k] {
                        assert!(at_delivery[i].has(d), "{case}: transfer {i} copies over {d} in either order");
                    }
                    state[dst][k] = value;
                }
                How::Reduce => {
                    assert!(
                        state[dst][k] & value == 0 || op == CollectiveOp::Barrier,
                        "{case}: transfer {i} adds twice"
                    );
                    state[dst][k] |= value;
                }
            }
            written[dst][k].push(i as u32);
        }
    }
    let full = if summed { (1 << n) - 1 } else { 1 };
    for m in 0..n {
        for k in 0..cells {
            let offset = cuts[k];
            let due = match op {
                CollectiveOp::AllReduce | CollectiveOp::AllGather | CollectiveOp::Broadcast => offset < bytes,
                CollectiveOp::Reduce => m == options.root as u64 && offset < bytes,
                CollectiveOp::ReduceScatter => shard(m).start <= offset && offset < shard(m).end,
                CollectiveOp::Barrier => offset < if algorithm == Algorithm::Direct { n } else { 1 },
                CollectiveOp::Experts(_) => false,
                CollectiveOp::AllToAll => {
                    let shares = super::direct::Shares::new(bytes, n as u32, options.shares).unwrap();
                    let mine = shares.range((offset / bytes.max(1)) as u32 % n as u32, m as u32);
                    mine.start <= offset && offset < mine.end
                }
            };
            assert!(
                !due || state[m as usize][k] == full,
                "{case}: member {m} ends without byte {offset}: {:b}",
                state[m as usize][k]
            );
        }
    }
}
