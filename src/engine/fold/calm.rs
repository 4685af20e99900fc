//! Shared buffers couple the ports of a switch where a pause, resume or drop is in reach. Folding goes on only while it can prove that none ever was.
//!
//! The proof is `settle`'s, with the most that each ingress has ever held in place of what it holds now: partitions have clocks of their own, and what they hold at
//! one time is no more than the sum of the most they ever held.

use crate::columns::Tables;

/// Peaks are kept in units of this many bytes, rounded up, so that a growing queue is looked at once in a while only.
const UNIT: u32 = 1024;

/// The most that each ingress has held.
#[derive(Clone)]
pub struct Calm {
    peaks: Vec<u32>,
}

impl Calm {
    /// `None`: some switch is not calm even when it is empty.
    pub fn new(t: &Tables) -> Option<Calm> {
        let calm = Calm { peaks: vec![0; t.ports.len()] };
        (0..t.switches.len()).all(|s| calm.holds(t, s)).then_some(calm)
    }

    /// Port `port` holds `bytes` of what came in by it. Returns whether its switch is still provably calm.
    #[inline]
    pub fn saw(&mut self, t: &Tables, port: u32, bytes: u32) -> bool {
        if bytes <= self.peaks[port as usize] {
            return true;
        }
        let peak = bytes.next_multiple_of(UNIT);
        self.peaks[port as usize] = peak;
        peak <= t.exps[0].reserve || self.holds(t, t.ports[port as usize].switch_idx as usize)
    }

    fn holds(&self, t: &Tables, s: usize) -> bool {
        let sw = &t.switches[s];
        let reserve = t.exps[0].reserve;
        let ports = sw.port_first as usize..(sw.port_first + sw.port_n) as usize;
        let excess = |p: usize| self.peaks[p].saturating_sub(reserve) as u64;
        let shared: u64 = ports.clone().map(excess).sum();
        let held: u64 = ports.clone().map(|p| self.peaks[p] as u64).sum();
        let free = sw.shared_size.saturating_sub(shared);
        held <= t.exps[0].buffer
            && ports.clone().all(|p| {
                let row = &t.ports[p];
                let threshold = free >> row.shift;
                excess(p) < threshold && (sw.max_wire <= row.headroom || sw.max_wire as u64 + shared <= threshold)
            })
    }
}
