//! The most that ingresses hold, by what arrives and leaves in the order of time: a window's bytes must not count as there together, else how time was cut into windows,
//! which signals of others and the memo have a say in, would decide whether folding goes on.
//!
//! Layer: engine. Only ingresses that may have held more in a window than ever before are looked at.

use crate::columns::{NONE, Tables, meta};
use crate::engine::cpu::egress;
use crate::engine::cpu::plan::want_word;

/// A window is looked at in so many parts at most, and at least half as many.
const PARTS: usize = 16;

/// Ingresses that may rise in a window, and what happens to them in it.
#[derive(Default)]
pub struct Rise {
    risers: Vec<Riser>,
    /// (time, bytes), those of a riser side by side.
    arrived: Vec<(u64, u32)>,
    /// (riser, time, bytes).
    left: Vec<(u32, u64, u32)>,
    /// Of each port its place among the risers, else `NONE`.
    rising: Vec<u32>,
    /// Of each switch whether any of its ports is among them.
    watched: Vec<bool>,
    /// When the window begins, and the binary logarithm of the length of its parts, ps.
    start: u64,
    shift: u32,
}

/// An ingress that may hold more than ever before.
struct Riser {
    /// Its place among the link ends of its partition, and its number.
    place: usize,
    port: u32,
    switch: u32,
    /// Bytes that it held before the window, and the most that it is known to have held.
    held: u32,
    peak: u32,
    /// Where its arrivals begin in the list of all.
    first: usize,
    /// Bytes that arrived and left, by part of the window.
    arrived: [u32; PARTS],
    left: [u32; PARTS],
}

impl Rise {
    /// A window from `start` up to `end` begins, ps.
    pub fn begin(&mut self, start: u64, end: u64) {
        for riser in &self.risers {
            self.rising[riser.port as usize] = NONE;
            self.watched[riser.switch as usize] = false;
        }
        self.risers.clear();
        self.arrived.clear();
        self.left.clear();
        self.start = start;
        self.shift = ((end - start).max(1).ilog2() + 1).saturating_sub(PARTS.ilog2());
    }

    fn part(&self, at: u64) -> usize {
        (at.saturating_sub(self.start) >> self.shift).min(PARTS as u64 - 1) as usize
    }

    /// What was just planned for ingress `port`, at `place` among its partition's ends, may let it rise above `peak`; it held `held` bytes.
    pub fn arrivals(&mut self, t: &Tables, place: usize, port: u32, held: u32, peak: u32) {
        let switch_idx = t.ports[port as usize].switch_idx;
        let switch = &t.switches[switch_idx as usize];
        let local = port - switch.port_first;
        self.add(
            Riser {
                place,
                port,
                switch: switch_idx,
                held,
                peak,
                first: self.arrived.len(),
                arrived: [0; PARTS],
                left: [0; PARTS],
            },
            t.ports.len(),
            t.switches.len(),
        );
        for out in 0..switch.port_n {
            if t.shared[want_word(t, switch.port_first + out, local) as usize] & 1 << (local % 32) == 0 {
                continue;
            }
            let mut p = t.plans[(switch.plan_first + local * switch.port_n + out) as usize].head;
            while p != NONE {
                let row = &t.packets[p as usize];
                self.arrive(row.t, row.meta & meta::WIRE_MASK);
                p = row.next;
            }
        }
    }

    /// A riser of one of `ports` ports and one of `switches` switches.
    fn add(&mut self, riser: Riser, ports: usize, switches: usize) {
        self.rising.resize(ports, NONE);
        self.rising[riser.port as usize] = self.risers.len() as u32;
        self.watched.resize(switches, false);
        self.watched[riser.switch as usize] = true;
        self.risers.push(riser);
    }

    /// `bytes` arrived at the last riser added, at `at`.
    fn arrive(&mut self, at: u64, bytes: u32) {
        let part = self.part(at);
        if let Some(riser) = self.risers.last_mut() {
            riser.arrived[part] += bytes;
            self.arrived.push((at, bytes));
        }
    }

    /// `bytes` began to leave riser `riser` at `at`.
    fn leave(&mut self, riser: u32, at: u64, bytes: u32) {
        let part = self.part(at);
        self.risers[riser as usize].left[part] += bytes;
        self.left.push((riser, at, bytes));
    }

    /// Whether departures of switch number `switch` matter.
    pub fn is_watching(&self, switch: u32) -> bool {
        self.watched.get(switch as usize).is_some_and(|&watched| watched)
    }

    /// What `port` has put on its wire behind packet `tail` (`NONE`: all of it) left the ingress by which it came when it began to be sent.
    pub fn departures(&mut self, t: &Tables, port: u32, tail: u32) {
        let row = &t.ports[port as usize];
        let mut p = if tail == NONE { t.wires[row.peer as usize].head } else { t.packets[tail as usize].next };
        while p != NONE {
            let packet = &t.packets[p as usize];
            let riser = self.rising[packet.in_port as usize];
            if riser != NONE {
                let bytes = packet.meta & meta::WIRE_MASK;
                self.leave(riser, packet.t - row.delay - egress::duration(t, port, bytes), bytes);
            }
            p = packet.next;
        }
    }

    /// The most that each riser held which held more than before: its place, and how many bytes.
    pub fn peaks(&mut self) -> impl Iterator<Item = (usize, u32)> {
        (0..self.risers.len()).filter_map(|k| {
            let most = if self.risers[k].bound() > self.risers[k].peak { self.most(k) } else { 0 };
            let riser = &self.risers[k];
            (most > riser.peak).then_some((riser.place, most))
        })
    }

    /// The most that riser `k` held. What leaves at an instant is still there for what arrives then.
    fn most(&mut self, k: usize) -> u32 {
        let end = self.risers.get(k + 1).map_or(self.arrived.len(), |next| next.first);
        let riser = &self.risers[k];
        let arrived = &mut self.arrived[riser.first..end];
        arrived.sort_unstable();
        let mut left: Vec<(u64, u32)> = self.left.iter().filter(|x| x.0 == k as u32).map(|x| (x.1, x.2)).collect();
        left.sort_unstable();
        let mut left = left.iter().peekable();
        let (mut held, mut most) = (riser.held, 0);
        for &mut (at, bytes) in arrived {
            while let Some(&(_, bytes)) = left.next_if(|x| x.0 < at) {
                held -= bytes;
            }
            held += bytes;
            most = most.max(held);
        }
        most
    }
}

impl Riser {
    /// No more than this was held at any time of the window: all that arrives in a part of it is there before anything leaves.
    fn bound(&self) -> u32 {
        let (mut held, mut most) = (self.held, 0);
        for (arrived, left) in self.arrived.iter().zip(&self.left) {
            held += arrived;
            most = most.max(held);
            held -= left;
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The most that is held if `packets` (arrival, time held, bytes) come and go, all sent by `end`, and `held` bytes stay.
    fn by_hand(packets: &[(u64, u64, u32)], held: u32) -> u32 {
        let there = |at: u64| packets.iter().filter(|p| p.0 <= at && at <= p.0 + p.1).map(|p| p.2).sum::<u32>();
        held + packets.iter().map(|p| there(p.0)).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn the_most_held_is_found_unless_it_was_seen_before(
            start in 0_u64..5_000_000,
            len in 1_u64..3_000_000,
            packets in prop::collection::vec((0.0..1.0, 0.0..1.0, 64_u32..9_100), 1..40),
            other in prop::collection::vec(0.0..1.0, 0..9),
            held in 0_u32..20_000,
            peak in 0_u32..100_000,
        ) {
            let at = |share: f64| (share * len as f64) as u64;
            let packets: Vec<(u64, u64, u32)> = packets.iter().map(|&(a, b, bytes)| (start + at(a), at((1.0 - a) * b), bytes)).collect();
            let mut rise = Rise::default();
            for _again in 0..2 {
                rise.begin(start, start + len);
                prop_assert!(!rise.is_watching(1));
                for (place, port) in [(4, 2), (7, 5)] {
                    let first = rise.arrived.len();
                    rise.add(Riser { place, port, switch: 1, held, peak, first, arrived: [0; PARTS], left: [0; PARTS] }, 6, 2);
                    if place == 4 {
                        packets.iter().for_each(|p| rise.arrive(p.0, p.2));
                    } else {
                        other.iter().for_each(|&a| rise.arrive(start + at(a), 1_000));
                    }
                }
                packets.iter().for_each(|p| rise.leave(0, p.0 + p.1, p.2));
                prop_assert!(rise.is_watching(1) && !rise.is_watching(0));
                let stays: Vec<(u64, u64, u32)> = other.iter().map(|&a| (start + at(a), len, 1_000)).collect();
                let expected = [(4, by_hand(&packets, held)), (7, by_hand(&stays, held))];
                prop_assert!(rise.risers[0].bound() >= expected[0].1);
                let expected: Vec<_> = expected.into_iter().filter(|x| x.1 > peak && (x.0 == 4 || !other.is_empty())).collect();
                prop_assert_eq!(rise.peaks().collect::<Vec<_>>(), expected);
            }
        }
    }
}
