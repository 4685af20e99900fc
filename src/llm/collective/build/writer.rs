//! Writes a schedule from ranges of bytes to send, and finds the deliveries that each message has to wait for.
//!
//! Layer: collective. Every member's buffer is one space of offsets. The writer remembers which delivery last touched which bytes of which member.

use std::collections::BTreeMap;

use super::error::MAX_TRANSFERS;
use crate::collective::{Schedule, Transfer};
use hyperfold_base::budget;

/// Bytes `start..end` of the collective's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub start: u64,
    pub end: u64,
}

/// The effect of a delivery at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The data replaces what was there.
    Copy,
    /// The data is added to what was there.
    Reduce,
}

/// Part `i` of `parts` of a range. Parts differ by at most a byte and cover the range without gaps.
pub(super) fn span(range: Range, i: u64, parts: u64) -> Range {
    let length = (range.end - range.start) as u128;
    let part_start = |k: u64| range.start + (length * k as u128 / parts as u128) as u64;
    Range { start: part_start(i), end: part_start(i + 1) }
}

/// The content of a message, for the proofs in the tests.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(super) struct CarriedData {
    pub ranges: Vec<Range>,
    pub how: How,
}

/// The deliveries that the content of a stretch comes from. Nearly always it is one, which needs no allocation.
#[derive(Clone)]
struct Deliveries {
    first: u32,
    rest: Vec<u32>,
}

impl Deliveries {
    fn one(index: u32) -> Deliveries {
        Deliveries { first: index, rest: Vec::new() }
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }
}

/// The stretches of a member's buffer that were delivered, by their start: (end, deliveries). Bytes outside of all stretches are unchanged.
type Made = BTreeMap<u64, (u64, Deliveries)>;

/// A schedule that is being written.
pub(super) struct ScheduleWriter {
    pub(super) schedule: Schedule,
    /// Delivered stretches of each member's buffer.
    made: Vec<Made>,
    chunk: u64,
    /// Scratch list of the deliveries that a message waits for.
    waits: Vec<u32>,
    full: bool,
    #[cfg(test)]
    pub carried: Vec<CarriedData>,
}

impl ScheduleWriter {
    /// A writer for `n` members and, numbered behind them, `switches` switches that reduce.
    pub(super) fn with_switches(n: u32, switches: u32, chunk: u64) -> ScheduleWriter {
        ScheduleWriter {
            schedule: Schedule::new(n),
            made: vec![Made::new(); (n + switches) as usize],
            chunk: if chunk == 0 { u64::MAX } else { chunk },
            waits: Vec::new(),
            full: false,
            #[cfg(test)]
            carried: Vec::new(),
        }
    }

    pub(super) fn n(&self) -> u32 {
        self.schedule.n
    }

    /// Number of members and switches.
    #[cfg(test)]
    pub(super) fn parties(&self) -> u32 {
        self.made.len() as u32
    }

    /// Whether there was more to write than a schedule may hold. Then the schedule is incomplete.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn finish(self) -> Schedule {
        self.schedule
    }

    /// Sends a range in messages of at most the chunk size, as equal as bytes allow.
    pub(super) fn send(&mut self, src: u32, dst: u32, channel: u16, range: Range, how: How) {
        let length = range.end - range.start;
        let pieces = length.div_ceil(self.chunk);
        for i in 0..pieces {
            if self.full {
                return;
            }
            self.message(src, &[dst], channel, &[span(range, i, pieces)], how);
        }
    }

    /// Stops writing now if at least `transfers` transfers follow and these do not fit, into a schedule or into memory.
    pub(super) fn announce(&mut self, transfers: u64) {
        self.full |= transfers > MAX_TRANSFERS as u64;
        if !self.full {
            budget::announce_rows::<Transfer>("transfers of a collective", transfers);
        }
    }

    /// Sends several ranges. Ranges that fit together go in one message.
    pub(super) fn send_all(&mut self, src: u32, dst: u32, channel: u16, ranges: &[Range], how: How) {
        for message in self.messages(ranges) {
            self.message(src, &[dst], channel, &message, how);
        }
    }

    /// Sends the same ranges from a switch to several at once, message by message.
    pub(super) fn spread(&mut self, switch: u32, to: &[u32], channel: u16, ranges: &[Range]) {
        for message in self.messages(ranges) {
            self.message(switch, to, channel, &message, How::Copy);
        }
    }

    /// Cuts ranges into messages. Ranges that fit together go in one message; one that is too long is cut into pieces that are as equal as bytes allow.
    pub(super) fn messages(&self, ranges: &[Range]) -> Vec<Vec<Range>> {
        let (mut messages, mut together, mut bytes) = (Vec::new(), Vec::new(), 0);
        for &range in ranges.iter().filter(|r| r.end > r.start) {
            let length = range.end - range.start;
            if bytes + length > self.chunk && bytes > 0 {
                messages.push(std::mem::take(&mut together));
                bytes = 0;
            }
            if length > self.chunk {
                let pieces = length.div_ceil(self.chunk);
                messages.extend((0..pieces).map(|i| vec![span(range, i, pieces)]));
            } else {
                together.push(range);
                bytes += length;
            }
        }
        if bytes > 0 {
            messages.push(together);
        }
        messages
    }

    /// Sends one byte from the first to the second member of each pair, all before any byte arrives. So each sender waits only for tokens of earlier calls.
    pub(super) fn tokens(&mut self, pairs: &[(u32, u32)]) {
        let token = Range { start: 0, end: 1 };
        let waits: Vec<Vec<u32>> = pairs
            .iter()
            .map(|(src, _)| {
                self.made[*src as usize].get(&0).map_or(Vec::new(), |(_, deliveries)| deliveries.iter().collect())
            })
            .collect();
        budget::check("transfers of a collective");
        for ((src, dst), waits) in pairs.iter().zip(&waits) {
            let index = self.schedule.push(*src, *dst, 1, 0, waits);
            deliver(&mut self.made[*dst as usize], token, index, How::Reduce);
            #[cfg(test)]
            self.carried.push(CarriedData { ranges: vec![token], how: How::Reduce });
        }
    }

    /// Appends a message to each of `to` with its dependencies, and records their deliveries.
    pub(super) fn message(&mut self, src: u32, to: &[u32], channel: u16, ranges: &[Range], how: How) {
        budget::check("transfers of a collective");
        self.full |= self.schedule.transfers.len() + to.len() > MAX_TRANSFERS;
        if self.full {
            return;
        }
        let mut waits = std::mem::take(&mut self.waits);
        waits.clear();
        for &range in ranges {
            collect(&self.made[src as usize], range, &mut waits);
        }
        waits.sort_unstable();
        waits.dedup();
        let bytes = ranges.iter().map(|r| r.end - r.start).sum();
        for (nth, &dst) in to.iter().enumerate() {
            let index = match nth {
                0 => self.schedule.push(src, dst, bytes, channel, &waits),
                _ => self.schedule.push_copy_to(dst),
            };
            for &range in ranges {
                deliver(&mut self.made[dst as usize], range, index, how);
            }
            #[cfg(test)]
            self.carried.push(CarriedData { ranges: ranges.to_vec(), how });
        }
        self.waits = waits;
    }
}

/// Appends the deliveries that the bytes of a range come from to `out`.
fn collect(made: &Made, range: Range, out: &mut Vec<u32>) {
    // The common case: the range is within one delivered stretch.
    if let Some((end, deliveries)) = made.get(&range.start)
        && *end >= range.end
    {
        out.extend(deliveries.iter());
        return;
    }
    let before = made.range(..=range.start).next_back();
    for (_, (end, deliveries)) in before.into_iter().chain(made.range(range.start + 1..range.end)) {
        if *end > range.start {
            out.extend(deliveries.iter());
        }
    }
}

/// Splits the stretch that contains `offset` there.
fn cut(made: &mut Made, offset: u64) {
    if let Some((&start, (end, deliveries))) = made.range_mut(..offset).next_back()
        && *end > offset
        && start < offset
    {
        let rest = (*end, deliveries.clone());
        *end = offset;
        made.insert(offset, rest);
    }
}

/// Records that transfer `index` delivers a range.
fn deliver(made: &mut Made, range: Range, index: u32, how: How) {
    // The common case: exactly this stretch was delivered before.
    if let Some((end, deliveries)) = made.get_mut(&range.start)
        && *end == range.end
    {
        match how {
            How::Copy => *deliveries = Deliveries::one(index),
            How::Reduce => deliveries.rest.push(index),
        }
        return;
    }
    // The other common case: nothing in this range was delivered before.
    if made.range(..range.end).next_back().is_none_or(|(_, (end, _))| *end <= range.start) {
        made.insert(range.start, (range.end, Deliveries::one(index)));
        return;
    }
    cut(made, range.start);
    cut(made, range.end);
    let inside: Vec<u64> = made.range(range.start..range.end).map(|(&start, _)| start).collect();
    if how == How::Copy {
        for start in inside {
            made.remove(&start);
        }
        made.insert(range.start, (range.end, Deliveries::one(index)));
        return;
    }
    let mut position = range.start;
    for start in inside {
        if start > position {
            made.insert(position, (start, Deliveries::one(index)));
        }
        let (end, deliveries) = made.get_mut(&start).expect("its key was just read");
        deliveries.rest.push(index);
        position = *end;
    }
    if position < range.end {
        made.insert(position, (range.end, Deliveries::one(index)));
    }
}
