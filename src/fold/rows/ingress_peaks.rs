//! Computes the maximum number of bytes that an ingress holds within a window, from arrivals and departures in order of time. A simple sum of a
//! window's arrivals would depend on where windows begin and end, which the memo and other experiments influence.
//!
//! Layer: fold/rows. Examines only ingresses that may exceed their known peak in a window.

use hyperfold_columns::{NONE, PacketIdx, PortIdx, SwitchIdx, Tables, meta};
use hyperfold_engine::cpu::switch::cut_through::time_on_wire;
use hyperfold_engine::cpu::switch::egress;
use hyperfold_engine::cpu::switch::plan::request_word;

/// Maximum number of bins of a window; there are at least half as many.
const BINS: usize = 16;

/// Ingresses that may exceed their peak in a window, with their arrivals and departures.
#[derive(Default)]
pub(crate) struct IngressPeaks {
    ingresses: Vec<WatchedIngress>,
    /// Arrivals: (time in ps, bytes), grouped by ingress.
    arrived: Vec<(u64, u32)>,
    /// Departures: (index into `ingresses`, time in ps, bytes).
    left: Vec<(u32, u64, u32)>,
    /// For each port, its index into `ingresses`, or `NONE`.
    place_of_port: Vec<u32>,
    /// For each switch, whether one of its ports is in `ingresses`.
    watched: Vec<bool>,
    /// The window's start in ps, and the binary logarithm of a bin's length in ps.
    start: u64,
    shift: u32,
}

/// An ingress that may exceed its peak.
struct WatchedIngress {
    /// Its place among the link ends of its partition, and its port number.
    place: usize,
    port: PortIdx,
    switch: SwitchIdx,
    /// Bytes that it held before the window, and its known peak in bytes.
    held: u32,
    peak: u32,
    /// Index of its first arrival in `IngressPeaks::arrived`.
    first: usize,
    /// Bytes that arrived and bytes that left, by bin.
    arrived: [u32; BINS],
    left: [u32; BINS],
}

impl IngressPeaks {
    /// Begins a window from `start` up to `end`, in ps.
    pub(crate) fn begin(&mut self, start: u64, end: u64) {
        for ingress in &self.ingresses {
            self.place_of_port[ingress.port.usize()] = NONE;
            self.watched[ingress.switch.usize()] = false;
        }
        self.ingresses.clear();
        self.arrived.clear();
        self.left.clear();
        self.start = start;
        self.shift = ((end - start).max(1).ilog2() + 1).saturating_sub(BINS.ilog2());
    }

    fn bin(&self, at_ps: u64) -> usize {
        (at_ps.saturating_sub(self.start) >> self.shift).min(BINS as u64 - 1) as usize
    }

    /// Adds ingress `port`, at `place` among its partition's ends. It held `held` bytes; the packets just planned may lift it above `peak`.
    pub(crate) fn arrivals(&mut self, t: &Tables, place: usize, port: PortIdx, held: u32, peak: u32) {
        let switch_idx = t.ports[port].switch_idx;
        let switch = &t.switches[switch_idx];
        let local = port - switch.port_first;
        self.add(
            WatchedIngress {
                place,
                port,
                switch: switch_idx,
                held,
                peak,
                first: self.arrived.len(),
                arrived: [0; BINS],
                left: [0; BINS],
            },
            t.ports.len(),
            t.switches.len(),
        );
        for out in 0..switch.port_n {
            if t.shared[request_word(t, switch.port_first + out, local) as usize] & 1 << (local % 32) == 0 {
                continue;
            }
            let mut p = t.plans[(switch.plan_first + local * switch.port_n + out) as usize].head;
            while p.is_some() {
                let row = &t.packets[p];
                self.arrive(row.t, row.meta & meta::WIRE_MASK);
                p = row.next;
            }
        }
    }

    /// Adds an ingress. `ports` and `switches`: number of all ports and of all switches.
    fn add(&mut self, ingress: WatchedIngress, ports: usize, switches: usize) {
        self.place_of_port.resize(ports, NONE);
        self.place_of_port[ingress.port.usize()] = self.ingresses.len() as u32;
        self.watched.resize(switches, false);
        self.watched[ingress.switch.usize()] = true;
        self.ingresses.push(ingress);
    }

    /// Adds an arrival of `bytes` at time `at_ps` at the ingress added last.
    fn arrive(&mut self, at_ps: u64, bytes: u32) {
        let bin = self.bin(at_ps);
        if let Some(ingress) = self.ingresses.last_mut() {
            ingress.arrived[bin] += bytes;
            self.arrived.push((at_ps, bytes));
        }
    }

    /// Adds a departure: `bytes` started to leave the ingress with index `ingress` at time `at_ps`.
    fn leave(&mut self, ingress: u32, at_ps: u64, bytes: u32) {
        let bin = self.bin(at_ps);
        self.ingresses[ingress as usize].left[bin] += bytes;
        self.left.push((ingress, at_ps, bytes));
    }

    /// Whether departures of switch number `switch` matter.
    pub(crate) fn is_watching(&self, switch: SwitchIdx) -> bool {
        self.watched.get(switch.usize()).is_some_and(|&watched| watched)
    }

    /// Adds the packets that `port` sent after packet `tail`, which was the last on its wire (`NONE`: all of the wire). A packet leaves its ingress
    /// when its transmission starts.
    pub(crate) fn departures(&mut self, t: &Tables, port: PortIdx, tail: PacketIdx) {
        let row = &t.ports[port];
        let mut p = if tail.is_none() { t.wires[row.peer].head } else { t.packets[tail].next };
        while p.is_some() {
            let packet = &t.packets[p];
            let ingress = self.place_of_port[packet.in_port.usize()];
            if ingress != NONE {
                let bytes = packet.meta & meta::WIRE_MASK;
                let x = egress::duration(t, port, bytes);
                let on_wire = if t.exps[0].cut_through == 0 { x } else { time_on_wire(t, row.peer, row.rate, p, x) };
                self.leave(ingress, packet.t - row.delay - on_wire, bytes);
            }
            p = packet.next;
        }
    }

    /// The peaks of ingresses that exceeded their known one: place and bytes.
    pub(crate) fn peaks(&mut self) -> impl Iterator<Item = (usize, u32)> {
        (0..self.ingresses.len()).filter_map(|k| {
            let peak = if self.ingresses[k].bound() > self.ingresses[k].peak { self.peak_of(k) } else { 0 };
            let ingress = &self.ingresses[k];
            (peak > ingress.peak).then_some((ingress.place, peak))
        })
    }

    /// Maximum that ingress `k` held, in bytes. A packet that leaves at an instant still counts for arrivals at that instant.
    fn peak_of(&mut self, k: usize) -> u32 {
        let end = self.ingresses.get(k + 1).map_or(self.arrived.len(), |next| next.first);
        let ingress = &self.ingresses[k];
        let arrived = &mut self.arrived[ingress.first..end];
        arrived.sort_unstable();
        let mut left: Vec<(u64, u32)> = self.left.iter().filter(|x| x.0 == k as u32).map(|x| (x.1, x.2)).collect();
        left.sort_unstable();
        let mut left = left.iter().peekable();
        let (mut held, mut held_max) = (ingress.held, 0);
        for &mut (at_ps, bytes) in arrived {
            while let Some(&(_, bytes)) = left.next_if(|x| x.0 < at_ps) {
                held -= bytes;
            }
            held += bytes;
            held_max = held_max.max(held);
        }
        held_max
    }
}

impl WatchedIngress {
    /// An upper bound of the maximum, in bytes: all arrivals in a bin count before any departure in it.
    fn bound(&self) -> u32 {
        let (mut held, mut held_max) = (self.held, 0);
        for (arrived, left) in self.arrived.iter().zip(&self.left) {
            held += arrived;
            held_max = held_max.max(held);
            held -= left;
        }
        held_max
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The most that is held if `packets` (arrival, time held, bytes) come and go, all sent by `end`, and `held` bytes
    /// stay.
    fn by_hand(packets: &[(u64, u64, u32)], held: u32) -> u32 {
        let there = |time: u64| packets.iter().filter(|p| p.0 <= time && time <= p.0 + p.1).map(|p| p.2).sum::<u32>();
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
            let within = |share: f64| (share * len as f64) as u64;
            let packets: Vec<(u64, u64, u32)> = packets.iter().map(|&(a, b, bytes)| (start + within(a), within((1.0 - a) * b), bytes)).collect();
            let mut ingress_peaks = IngressPeaks::default();
            for _again in 0..2 {
                ingress_peaks.begin(start, start + len);
                prop_assert!(!ingress_peaks.is_watching(SwitchIdx(1)));
                for (place, port) in [(4, 2), (7, 5)] {
                    let first = ingress_peaks.arrived.len();
                    ingress_peaks.add(WatchedIngress { place, port: PortIdx(port), switch: SwitchIdx(1), held, peak, first, arrived: [0; BINS], left: [0; BINS] }, 6, 2);
                    if place == 4 {
                        packets.iter().for_each(|p| ingress_peaks.arrive(p.0, p.2));
                    } else {
                        other.iter().for_each(|&a| ingress_peaks.arrive(start + within(a), 1_000));
                    }
                }
                packets.iter().for_each(|p| ingress_peaks.leave(0, p.0 + p.1, p.2));
                prop_assert!(ingress_peaks.is_watching(SwitchIdx(1)) && !ingress_peaks.is_watching(SwitchIdx(0)));
                let stays: Vec<(u64, u64, u32)> = other.iter().map(|&a| (start + within(a), len, 1_000)).collect();
                let expected = [(4, by_hand(&packets, held)), (7, by_hand(&stays, held))];
                prop_assert!(ingress_peaks.ingresses[0].bound() >= expected[0].1);
                let expected: Vec<_> = expected.into_iter().filter(|x| x.1 > peak && (x.0 == 4 || !other.is_empty())).collect();
                prop_assert_eq!(ingress_peaks.peaks().collect::<Vec<_>>(), expected);
            }
        }
    }
}
