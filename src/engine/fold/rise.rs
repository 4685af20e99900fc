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
    /// (ingress, time, bytes).
    left: Vec<(u32, u64, u32)>,
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
            let bytes = packet.meta & meta::WIRE_MASK;
            let began = packet.t - row.delay - egress::duration(t, port, bytes);
            self.left.push((packet.in_port, began, bytes));
            p = packet.next;
        }
    }

    /// The most that each riser held: its place and number, and how many bytes. What leaves at an instant is still there for what arrives then.
    pub fn peaks(&mut self) -> impl Iterator<Item = (usize, u32, u32)> {
        self.left.sort_unstable();
        self.risers.iter().enumerate().map(|(k, riser)| {
            let end = self.risers.get(k + 1).map_or(self.arrived.len(), |next| next.first);
            let mut gone = self.left.partition_point(|x| x.0 < riser.port);
            let (mut held, mut most) = (riser.held, 0);
            for &(at, bytes) in &self.arrived[riser.first..end] {
                while let Some(&(_, _, bytes)) = self.left.get(gone).filter(|x| x.0 == riser.port && x.1 < at) {
                    held -= bytes;
                    gone += 1;
                }
                held += bytes;
                most = most.max(held);
            }
            (riser.place, riser.port, most)
        })
    }
}
