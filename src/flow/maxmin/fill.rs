//! Progressive filling of those carriers that a change reaches, the rest being as it was.
//!
//! Layer: flow level. Rates are max-min fair if every carrier has a bottleneck: a full link on which nobody is faster. So those at the changed links are
//! filled first. Whoever outside has lost its bottleneck by that, or is faster than those that a full link has stopped, is filled with them, until nobody is left.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{LinkShare, MaxMin, NONE, SHARE_BITS};
use crate::engine::fair_rates::{EQUALS, MANY, PRECISE_ROUNDS};

/// What a filling needs beside rates.
#[derive(Debug, Default)]
pub(super) struct Fill {
    /// By link: data that may be added; flows times shares that are not stopped; the rate at which it has stopped some; the fastest that crosses it.
    room: Vec<u64>,
    weight: Vec<u64>,
    stopped_at: Vec<u64>,
    fastest: Vec<u64>,
    is_touched: Vec<bool>,
    touched: Vec<u32>,
    /// By carrier.
    rate: Vec<u64>,
    bottleneck: Vec<u32>,
    state: Vec<State>,
    filled: Vec<u32>,
    full_first: BinaryHeap<Reverse<(u64, u32)>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Keeps its rate.
    #[default]
    Outside,
    Rising,
    Stopped,
}

impl Fill {
    pub(super) fn new(links: usize) -> Fill {
        Fill {
            room: vec![0; links],
            weight: vec![0; links],
            stopped_at: vec![NEVER; links],
            fastest: vec![0; links],
            is_touched: vec![false; links],
            ..Fill::default()
        }
    }

    pub(super) fn add(&mut self) {
        self.rate.push(0);
        self.bottleneck.push(NONE);
        self.state.push(State::Outside);
    }

    pub(super) fn rate(&self, carrier: u32) -> u64 {
        self.rate[carrier as usize]
    }

    pub(super) fn bottleneck(&self, carrier: u32) -> u32 {
        self.bottleneck[carrier as usize]
    }

    /// Takes the list of a filling back, for the next one.
    pub(super) fn give_back(&mut self, mut filled: Vec<u32>) {
        filled.clear();
        self.filled = filled;
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.room.len() * 34 + self.rate.len() * 13 + self.full_first.capacity() * 16) as u64
    }
}

/// No rate: the link has stopped nobody.
const NEVER: u64 = u64::MAX;

impl MaxMin {
    /// Fills those that the dirty links reach, which are clean afterwards. Their new rates and bottlenecks are in `fill`.
    pub(super) fn refill(&mut self) -> Vec<u32> {
        for link in std::mem::take(&mut self.dirty) {
            self.links[link as usize].dirty = false;
            for place in 0..self.members[link as usize].len() {
                self.take(self.owner[self.members[link as usize][place] as usize]);
            }
        }
        for round in 0.. {
            self.raise_rates();
            let before = self.fill.filled.len();
            match round {
                0..PRECISE_ROUNDS => self.take_displaced(),
                _ => self.take_neighbours(round >= 2 * PRECISE_ROUNDS),
            }
            if self.fill.filled.len() > before && MANY as usize * self.fill.filled.len() >= self.n_active {
                self.take_connected(usize::MAX);
            }
            if self.fill.filled.len() == before {
                break;
            }
        }
        let solved = std::mem::take(&mut self.fill.filled);
        for &carrier in &solved {
            self.fill.state[carrier as usize] = State::Outside;
            let rate = self.fill.rate[carrier as usize];
            let c = self.carriers[carrier as usize];
            for at in c.first..c.first + c.n {
                let (link, weight) = self.crossing(at, c.flows);
                let l = &mut self.links[link as usize];
                l.load += weight * rate;
                l.fastest = l.fastest.max(rate);
                if self.fill.bottleneck[carrier as usize] == link {
                    l.slowest = l.slowest.min(rate);
                }
            }
        }
        for link in std::mem::take(&mut self.fill.touched) {
            self.fill.is_touched[link as usize] = false;
        }
        solved
    }

    /// The link of a crossing, and what so many flows weigh there.
    fn crossing(&self, at: u32, flows: u32) -> (u32, u64) {
        let LinkShare { link, share } = self.crossings[at as usize];
        (link, u64::from(share >> (SHARE_BITS - self.share_bits)) * u64::from(flows))
    }

    /// Fills a carrier with the others: it gives back what it has of its links.
    fn take(&mut self, carrier: u32) {
        if self.fill.state[carrier as usize] != State::Outside {
            return;
        }
        self.fill.state[carrier as usize] = State::Rising;
        self.fill.filled.push(carrier);
        let c = self.carriers[carrier as usize];
        for at in c.first..c.first + c.n {
            let (link, weight) = self.crossing(at, c.flows);
            self.links[link as usize].load -= weight * c.rate;
            if !self.fill.is_touched[link as usize] {
                self.fill.is_touched[link as usize] = true;
                self.fill.touched.push(link);
            }
        }
    }

    /// The rate at which a link stops those that rise.
    fn level(&self, link: u32) -> u64 {
        self.fill.room[link as usize] / self.fill.weight[link as usize]
    }

    /// Lets all that are filled rise from 0, beside those outside.
    fn raise_rates(&mut self) {
        for &link in &self.fill.touched {
            let l = &self.links[link as usize];
            let all = (l.capacity - l.reserved.min(l.capacity)) << self.share_bits;
            self.fill.room[link as usize] = all.saturating_sub(l.load);
            self.fill.weight[link as usize] = 0;
            self.fill.stopped_at[link as usize] = NEVER;
            self.fill.fastest[link as usize] = 0;
        }
        for k in 0..self.fill.filled.len() {
            let carrier = self.fill.filled[k] as usize;
            self.fill.state[carrier] = State::Rising;
            let c = self.carriers[carrier];
            for at in c.first..c.first + c.n {
                let (link, weight) = self.crossing(at, c.flows);
                self.fill.weight[link as usize] += weight;
            }
        }
        let mut full_first = std::mem::take(&mut self.fill.full_first);
        let touched = self.fill.touched.iter().filter(|&&link| self.fill.weight[link as usize] > 0);
        full_first.extend(touched.map(|&link| Reverse((self.level(link), link))));
        while let Some(Reverse((level, link))) = full_first.pop() {
            if self.fill.weight[link as usize] == 0 {
                continue;
            }
            // Those that were stopped elsewhere have left room.
            let now = self.level(link);
            if now > level {
                full_first.push(Reverse((now, link)));
                continue;
            }
            self.fill.stopped_at[link as usize] = now;
            for place in 0..self.members[link as usize].len() {
                let carrier = self.owner[self.members[link as usize][place] as usize];
                if self.fill.state[carrier as usize] == State::Rising {
                    self.stop(carrier, now, link);
                }
            }
        }
        self.fill.full_first = full_first;
    }

    /// Stops a carrier that rises.
    fn stop(&mut self, carrier: u32, rate: u64, bottleneck: u32) {
        self.fill.state[carrier as usize] = State::Stopped;
        self.fill.rate[carrier as usize] = rate;
        self.fill.bottleneck[carrier as usize] = bottleneck;
        let c = self.carriers[carrier as usize];
        for at in c.first..c.first + c.n {
            let (link, weight) = self.crossing(at, c.flows);
            let link = link as usize;
            self.fill.room[link] = self.fill.room[link].saturating_sub(weight * rate);
            self.fill.weight[link] -= weight;
            self.fill.fastest[link] = self.fill.fastest[link].max(rate);
        }
    }

    /// Takes those outside whose rates cannot stay: they are faster than those that their link has stopped, or it is no bottleneck of theirs any more.
    fn take_displaced(&mut self) {
        for k in 0..self.fill.touched.len() {
            let link = self.fill.touched[k] as usize;
            let (stopped_at, fastest) = (self.fill.stopped_at[link], self.fill.fastest[link]);
            let l = self.links[link];
            let unused = (2 * EQUALS * l.weight).max((l.capacity << self.share_bits) >> self.tolerance_shift);
            let not_full = self.fill.room[link] > unused;
            let may_be_too_fast = stopped_at != NEVER && l.fastest > stopped_at + self.tolerance(stopped_at);
            let may_be_too_slow = l.slowest != NEVER && (not_full || fastest > l.slowest + self.tolerance(l.slowest));
            if !may_be_too_fast && !may_be_too_slow {
                continue;
            }
            let (mut most, mut least) = (0, NEVER);
            for place in 0..self.members[link].len() {
                let carrier = self.owner[self.members[link][place] as usize];
                let c = &self.carriers[carrier as usize];
                let (mut rate, mut bottleneck) = (c.rate, c.bottleneck);
                if self.fill.state[carrier as usize] == State::Outside {
                    let too_fast = stopped_at != NEVER && rate > stopped_at + self.tolerance(stopped_at);
                    let too_slow = bottleneck == link as u32 && (not_full || fastest > rate + self.tolerance(rate));
                    if too_fast || too_slow {
                        self.take(carrier);
                    }
                } else {
                    (rate, bottleneck) = (self.fill.rate[carrier as usize], self.fill.bottleneck[carrier as usize]);
                }
                most = most.max(rate);
                if bottleneck == link as u32 {
                    least = least.min(rate);
                }
            }
            (self.links[link].fastest, self.links[link].slowest) = (most, least);
        }
    }

    /// By how much a rate may be off.
    fn tolerance(&self, rate: u64) -> u64 {
        EQUALS.max(rate >> self.tolerance_shift)
    }

    /// Takes all that share a link with those that are filled; `all`: and all that share one with them, and so on.
    ///
    /// Only where somebody's rate cannot stay.
    fn take_neighbours(&mut self, all: bool) {
        let before = self.fill.filled.len();
        self.take_displaced();
        if self.fill.filled.len() == before {
            return;
        }
        self.take_connected(if all { usize::MAX } else { self.fill.touched.len() });
    }

    /// Takes all that cross the first `until` of the links touched, those that are touched by that among them.
    fn take_connected(&mut self, until: usize) {
        let mut k = 0;
        while k < self.fill.touched.len().min(until) {
            let link = self.fill.touched[k] as usize;
            for place in 0..self.members[link].len() {
                self.take(self.owner[self.members[link][place] as usize]);
            }
            k += 1;
        }
    }
}
