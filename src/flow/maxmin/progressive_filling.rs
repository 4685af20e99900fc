//! Progressive filling of the carriers that a change affects. All other rates stay.
//!
//! Layer: flow level. Rates are max-min fair if every carrier has a bottleneck: a full link on which no other carrier is faster. So the carriers at changed
//! links are filled first. Any other carrier that thereby loses its bottleneck, or is faster than the carriers that a full link has stopped, is then filled
//! with them, until no such carrier is left.

use std::cmp::Reverse;

use super::fill_state::{CarrierState, NEVER};
use super::{LinkShare, MaxMin, SHARE_BITS};
use hyperfold_engine::fair_rates::{EQUALS, MANY, PRECISE_ROUNDS};

impl MaxMin {
    /// Fills the carriers at dirty links, which are clean afterwards, and all others that must change. Returns the filled carriers; their new rates and
    /// bottlenecks are in `fill`.
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
            self.fill.state[carrier as usize] = CarrierState::Outside;
            let rate = self.fill.rate[carrier as usize];
            let c = self.carriers[carrier as usize];
            for crossing_idx in c.first..c.first + c.n {
                let (link, weight) = self.crossing(crossing_idx, c.flows);
                let l = &mut self.links[link as usize];
                l.load = l.load.wrapping_add(weight * rate);
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

    /// The link of a crossing, and the weight of `flows` flows on it.
    fn crossing(&self, crossing_idx: u32, flows: u32) -> (u32, u64) {
        let LinkShare { link, share } = self.crossings[crossing_idx as usize];
        (link, u64::from(share >> (SHARE_BITS - self.share_bits)) * u64::from(flows))
    }

    /// Adds a carrier to the filling, and removes its load from its links.
    fn take(&mut self, carrier: u32) {
        if self.fill.state[carrier as usize] != CarrierState::Outside {
            return;
        }
        self.fill.state[carrier as usize] = CarrierState::Rising;
        self.fill.filled.push(carrier);
        let c = self.carriers[carrier as usize];
        for crossing_idx in c.first..c.first + c.n {
            let (link, weight) = self.crossing(crossing_idx, c.flows);
            let l = &mut self.links[link as usize];
            l.load = l.load.wrapping_sub(weight.wrapping_mul(c.rate));
            if !self.fill.is_touched[link as usize] {
                self.fill.is_touched[link as usize] = true;
                self.fill.touched.push(link);
            }
        }
    }

    /// The rate at which a link stops rising carriers.
    fn level(&self, link: u32) -> u64 {
        self.fill.free[link as usize] / self.fill.weight[link as usize]
    }

    /// Raises the rates of all filled carriers from 0, with the rates of other carriers fixed.
    fn raise_rates(&mut self) {
        for &link in &self.fill.touched {
            let l = &self.links[link as usize];
            let for_data = (l.capacity - l.reserved.min(l.capacity)) << self.share_bits;
            self.fill.free[link as usize] = for_data.saturating_sub(l.load);
            self.fill.weight[link as usize] = 0;
            self.fill.stopped_at[link as usize] = NEVER;
            self.fill.fastest[link as usize] = 0;
        }
        for k in 0..self.fill.filled.len() {
            let carrier = self.fill.filled[k] as usize;
            self.fill.state[carrier] = CarrierState::Rising;
            let c = self.carriers[carrier];
            for crossing_idx in c.first..c.first + c.n {
                let (link, weight) = self.crossing(crossing_idx, c.flows);
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
            // Carriers that were stopped elsewhere have freed capacity.
            let now = self.level(link);
            if now > level {
                full_first.push(Reverse((now, link)));
                continue;
            }
            self.fill.stopped_at[link as usize] = now;
            for place in 0..self.members[link as usize].len() {
                let carrier = self.owner[self.members[link as usize][place] as usize];
                if self.fill.state[carrier as usize] == CarrierState::Rising {
                    self.stop(carrier, now, link);
                }
            }
        }
        self.fill.full_first = full_first;
    }

    /// Stops a rising carrier at a rate.
    fn stop(&mut self, carrier: u32, rate: u64, bottleneck: u32) {
        self.fill.state[carrier as usize] = CarrierState::Stopped;
        self.fill.rate[carrier as usize] = rate;
        self.fill.bottleneck[carrier as usize] = bottleneck;
        let c = self.carriers[carrier as usize];
        for crossing_idx in c.first..c.first + c.n {
            let (link, weight) = self.crossing(crossing_idx, c.flows);
            let link = link as usize;
            self.fill.free[link] = self.fill.free[link].saturating_sub(weight * rate);
            self.fill.weight[link] -= weight;
            self.fill.fastest[link] = self.fill.fastest[link].max(rate);
        }
    }

    /// Adds carriers whose rates cannot stay: they are faster than the carriers that their link has stopped, or the link is no longer their bottleneck.
    fn take_displaced(&mut self) {
        for k in 0..self.fill.touched.len() {
            let link = self.fill.touched[k] as usize;
            let (stopped_at, fastest) = (self.fill.stopped_at[link], self.fill.fastest[link]);
            let l = self.links[link];
            let unused = (2 * EQUALS * l.weight).max((l.capacity << self.share_bits) >> self.tolerance_shift);
            let not_full = self.fill.free[link] > unused;
            let may_be_too_fast = stopped_at != NEVER && l.fastest > stopped_at + self.tolerance(stopped_at);
            let may_be_too_slow = l.slowest != NEVER && (not_full || fastest > l.slowest + self.tolerance(l.slowest));
            if !may_be_too_fast && !may_be_too_slow {
                continue;
            }
            let (mut fastest_rate, mut slowest_rate) = (0, NEVER);
            for place in 0..self.members[link].len() {
                let carrier = self.owner[self.members[link][place] as usize];
                let c = &self.carriers[carrier as usize];
                let (mut rate, mut bottleneck) = (c.rate, c.bottleneck);
                if self.fill.state[carrier as usize] == CarrierState::Outside {
                    let too_fast = stopped_at != NEVER && rate > stopped_at + self.tolerance(stopped_at);
                    let too_slow = bottleneck == link as u32 && (not_full || fastest > rate + self.tolerance(rate));
                    if too_fast || too_slow {
                        self.take(carrier);
                    }
                } else {
                    (rate, bottleneck) = (self.fill.rate[carrier as usize], self.fill.bottleneck[carrier as usize]);
                }
                fastest_rate = fastest_rate.max(rate);
                if bottleneck == link as u32 {
                    slowest_rate = slowest_rate.min(rate);
                }
            }
            (self.links[link].fastest, self.links[link].slowest) = (fastest_rate, slowest_rate);
        }
    }

    /// The absolute tolerance of a rate.
    fn tolerance(&self, rate: u64) -> u64 {
        EQUALS.max(rate >> self.tolerance_shift)
    }

    /// Adds all carriers that share a link with filled ones; with `all`, also those that share a link with these, and so on.
    ///
    /// It does so only if the rate of some carrier cannot stay.
    fn take_neighbours(&mut self, all: bool) {
        let before = self.fill.filled.len();
        self.take_displaced();
        if self.fill.filled.len() == before {
            return;
        }
        self.take_connected(if all { usize::MAX } else { self.fill.touched.len() });
    }

    /// Adds all carriers on the first `until` touched links, including links that become touched meanwhile.
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
