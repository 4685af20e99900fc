//! The most that ingresses hold, by what arrives and leaves in the order of time: a window's bytes must not count as there together, else how time was cut into windows,
//! which signals of others and the memo have a say in, would decide whether folding goes on.
//!
//! Layer: engine. Only ingresses that may have held more in a window than ever before are looked at.

use crate::columns::{NONE, Tables, meta};
use crate::engine::cpu::egress;
use crate::engine::cpu::plan::want_word;

/// Ingresses that may rise in a window, and what happens to them in it.
#[derive(Default)]
pub struct Rise {
    risers: Vec<Riser>,
    /// (time, bytes), those of a riser side by side.
    arrived: Vec<(u64, u32)>,
    /// (riser, time, bytes).
    left: Vec<(u32, u64, u32)>,
    /// The same without the riser, those of one side by side, in the order of time; and where each riser's begin.
    sorted: Vec<(u64, u32)>,
    begins: Vec<usize>,
    /// Of each port its place among the risers, else `NONE`.
    rising: Vec<u32>,
}

/// An ingress that may hold more than ever before.
struct Riser {
    /// Its place among the link ends of its partition, and its number.
    place: usize,
    port: u32,
    /// Bytes that it held before the window.
    held: u32,
    /// Where its arrivals begin in the list of all.
    first: usize,
}

impl Rise {
    pub fn clear(&mut self) {
        self.risers.iter().for_each(|riser| self.rising[riser.port as usize] = NONE);
        self.risers.clear();
        self.arrived.clear();
        self.left.clear();
    }

    /// What was just planned for ingress `port`, at `place` among its partition's ends, may let it rise; it held `held` bytes.
    pub fn arrivals(&mut self, t: &Tables, place: usize, port: u32, held: u32) {
        let switch = &t.switches[t.ports[port as usize].switch_idx as usize];
        let local = port - switch.port_first;
        let first = self.arrived.len();
        for out in 0..switch.port_n {
            if t.shared[want_word(t, switch.port_first + out, local) as usize] & 1 << (local % 32) == 0 {
                continue;
            }
            let mut p = t.plans[(switch.plan_first + local * switch.port_n + out) as usize].head;
            while p != NONE {
                let row = &t.packets[p as usize];
                self.arrived.push((row.t, row.meta & meta::WIRE_MASK));
                p = row.next;
            }
        }
        self.arrived[first..].sort_unstable();
        self.risers.push(Riser { place, port, held, first });
        self.rising.resize(t.ports.len(), NONE);
        self.rising[port as usize] = self.risers.len() as u32 - 1;
    }

    /// Whether departures matter.
    pub fn is_watching(&self) -> bool {
        !self.risers.is_empty()
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
                let began = packet.t - row.delay - egress::duration(t, port, bytes);
                self.left.push((riser, began, bytes));
            }
            p = packet.next;
        }
    }

    /// The most that each riser held: its place and number, and how many bytes. What leaves at an instant is still there for what arrives then.
    pub fn peaks(&mut self) -> impl Iterator<Item = (usize, u32, u32)> {
        self.sort();
        self.risers.iter().enumerate().map(|(k, riser)| {
            let end = self.risers.get(k + 1).map_or(self.arrived.len(), |next| next.first);
            let mut left = self.sorted[self.begins[k]..self.begins[k + 1]].iter().peekable();
            let (mut held, mut most) = (riser.held, 0);
            for &(at, bytes) in &self.arrived[riser.first..end] {
                while let Some(&(_, bytes)) = left.next_if(|x| x.0 < at) {
                    held -= bytes;
                }
                held += bytes;
                most = most.max(held);
            }
            (riser.place, riser.port, most)
        })
    }

    /// Puts what left by riser and time: few a riser, so this is for each a matter of its own.
    fn sort(&mut self) {
        self.begins.clear();
        self.begins.resize(self.risers.len() + 1, 0);
        for &(riser, ..) in &self.left {
            self.begins[riser as usize + 1] += 1;
        }
        for k in 1..self.begins.len() {
            self.begins[k] += self.begins[k - 1];
        }
        self.sorted.clear();
        self.sorted.resize(self.left.len(), (0, 0));
        // Filling moves each beginning to its end, where the next one's is.
        for &(riser, at, bytes) in &self.left {
            let place = &mut self.begins[riser as usize];
            self.sorted[*place] = (at, bytes);
            *place += 1;
        }
        self.begins.rotate_right(1);
        self.begins[0] = 0;
        for k in 0..self.risers.len() {
            self.sorted[self.begins[k]..self.begins[k + 1]].sort_unstable();
        }
    }
}
