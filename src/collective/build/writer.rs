//! Writes a schedule from "these bytes go from here to there", and finds what each message has to wait for.
//!
//! Layer: collective. Every member's buffer is one space of offsets; the writer remembers which delivery last touched which bytes of which member.

use std::collections::BTreeMap;

use super::MOST_TRANSFERS;
use crate::budget;
use crate::collective::{Schedule, Transfer};

/// Bytes `start..end` of the collective's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub start: u64,
    pub end: u64,
}

/// What a delivery does at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Takes the place of what was there.
    Copy,
    /// Is added to it.
    Reduce,
}

/// Part `i` of `parts` of a range; parts differ by at most a byte and cover the range without gap.
pub(super) fn span(range: Range, i: u64, parts: u64) -> Range {
    let length = (range.end - range.start) as u128;
    let at = |k: u64| range.start + (length * k as u128 / parts as u128) as u64;
    Range { start: at(i), end: at(i + 1) }
}

/// What a message carried: for the proofs in the tests.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(super) struct CarriedData {
    pub ranges: Vec<Range>,
    pub how: How,
}

/// Deliveries that something is made of. Nearly always one: no allocation then.
#[derive(Clone)]
struct By {
    first: u32,
    rest: Vec<u32>,
}

impl By {
    fn one(index: u32) -> By {
        By { first: index, rest: Vec::new() }
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }
}

/// Deliveries that made each stretch of a member's buffer, by its start: end, transfers. What is in no stretch is as at the start.
type Made = BTreeMap<u64, (u64, By)>;

/// A schedule in the making.
pub(super) struct ScheduleWriter {
    pub(super) schedule: Schedule,
    made: Vec<Made>,
    chunk: u64,
    waits: Vec<u32>,
    full: bool,
    #[cfg(test)]
    pub carried: Vec<CarriedData>,
}

impl ScheduleWriter {
    pub(super) fn new(n: u32, chunk: u64) -> ScheduleWriter {
        ScheduleWriter {
            schedule: Schedule::new(n),
            made: vec![Made::new(); n as usize],
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

    /// Whether there was more to write than a schedule has room for; what is here is then not all.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn finish(self) -> Schedule {
        self.schedule
    }

    /// Sends a range in messages of at most the chunk size, as equal as bytes allow.
    pub(super) fn send(&mut self, from: u32, to: u32, channel: u16, range: Range, how: How) {
        let length = range.end - range.start;
        let pieces = length.div_ceil(self.chunk);
        for i in 0..pieces {
            if self.full {
                return;
            }
            self.message(from, to, channel, &[span(range, i, pieces)], how);
        }
    }

    /// Stops at once where at least so many transfers have no room: in a schedule, or in memory.
    pub(super) fn announce(&mut self, transfers: u64) {
        self.full |= transfers > MOST_TRANSFERS as u64;
        if !self.full {
            budget::announce_rows::<Transfer>("transfers of a collective", transfers);
        }
    }

    /// Sends several ranges, those that fit together in one message.
    pub(super) fn send_all(&mut self, from: u32, to: u32, channel: u16, ranges: &[Range], how: How) {
        let (mut together, mut bytes) = (Vec::new(), 0);
        for &range in ranges.iter().filter(|r| r.end > r.start) {
            let length = range.end - range.start;
            if bytes + length > self.chunk && bytes > 0 {
                self.message(from, to, channel, &together, how);
                together.clear();
                bytes = 0;
            }
            if length > self.chunk {
                self.send(from, to, channel, range, how);
            } else {
                together.push(range);
                bytes += length;
            }
        }
        if bytes > 0 {
            self.message(from, to, channel, &together, how);
        }
    }

    /// One byte each, all sent before any of them arrives: what a sender waits for is of earlier rounds.
    pub(super) fn tokens(&mut self, round: &[(u32, u32)]) {
        let token = Range { start: 0, end: 1 };
        let waits: Vec<Vec<u32>> = round
            .iter()
            .map(|(from, _)| self.made[*from as usize].get(&0).map_or(Vec::new(), |(_, by)| by.iter().collect()))
            .collect();
        budget::check("transfers of a collective");
        for ((from, to), waits) in round.iter().zip(&waits) {
            let index = self.schedule.push(*from, *to, 1, 0, waits);
            deliver(&mut self.made[*to as usize], token, index, How::Reduce);
            #[cfg(test)]
            self.carried.push(CarriedData { ranges: vec![token], how: How::Reduce });
        }
    }

    fn message(&mut self, from: u32, to: u32, channel: u16, ranges: &[Range], how: How) {
        budget::check("transfers of a collective");
        self.full |= self.schedule.transfers.len() >= MOST_TRANSFERS;
        if self.full {
            return;
        }
        let mut waits = std::mem::take(&mut self.waits);
        waits.clear();
        for &range in ranges {
            collect(&self.made[from as usize], range, &mut waits);
        }
        waits.sort_unstable();
        waits.dedup();
        let bytes = ranges.iter().map(|r| r.end - r.start).sum();
        let index = self.schedule.push(from, to, bytes, channel, &waits);
        self.waits = waits;
        for &range in ranges {
            deliver(&mut self.made[to as usize], range, index, how);
        }
        #[cfg(test)]
        self.carried.push(CarriedData { ranges: ranges.to_vec(), how });
    }
}

fn collect(made: &Made, range: Range, into: &mut Vec<u32>) {
    // The common case: the same stretch as it was delivered in.
    if let Some((end, by)) = made.get(&range.start)
        && *end >= range.end
    {
        into.extend(by.iter());
        return;
    }
    let before = made.range(..=range.start).next_back();
    for (_, (end, by)) in before.into_iter().chain(made.range(range.start + 1..range.end)) {
        if *end > range.start {
            into.extend(by.iter());
        }
    }
}

/// Makes stretches begin and end at `at`.
fn cut(made: &mut Made, at: u64) {
    if let Some((&start, (end, by))) = made.range_mut(..at).next_back()
        && *end > at
        && start < at
    {
        let rest = (*end, by.clone());
        *end = at;
        made.insert(at, rest);
    }
}

fn deliver(made: &mut Made, range: Range, index: u32, how: How) {
    // The common case: the same stretch as before.
    if let Some((end, by)) = made.get_mut(&range.start)
        && *end == range.end
    {
        match how {
            How::Copy => *by = By::one(index),
            How::Reduce => by.rest.push(index),
        }
        return;
    }
    // The other: nothing was delivered there before.
    if made.range(..range.end).next_back().is_none_or(|(_, (end, _))| *end <= range.start) {
        made.insert(range.start, (range.end, By::one(index)));
        return;
    }
    cut(made, range.start);
    cut(made, range.end);
    let inside: Vec<u64> = made.range(range.start..range.end).map(|(&start, _)| start).collect();
    if how == How::Copy {
        for start in inside {
            made.remove(&start);
        }
        made.insert(range.start, (range.end, By::one(index)));
        return;
    }
    let mut at = range.start;
    for start in inside {
        if start > at {
            made.insert(at, (start, By::one(index)));
        }
        let (end, by) = made.get_mut(&start).expect("its key was just read");
        by.rest.push(index);
        at = *end;
    }
    if at < range.end {
        made.insert(at, (range.end, By::one(index)));
    }
}
