//! Shared buffers couple the ports of a switch where a pause, resume or drop is in reach. Folding goes on only while it can prove that none ever was.
//!
//! The proof is `settle`'s, with the most that each ingress has ever held in place of what it holds now: partitions have clocks of their own, and what they hold at
//! one time is no more than the sum of the most they ever held.

use crate::columns::{Port, Switch, Tables};
use crate::units::PS_PER_S;

/// Peaks are kept in units of this many bytes at least, rounded up, so that a growing queue is looked at once in a while only (our choice).
const FINEST: u32 = 1 << 10;
/// And at most in one of these: what two steps of the fastest link bring, so that a busy port is not taken for one that rises.
const COARSEST: std::ops::RangeInclusive<u64> = 1 << 15..=1 << 17;
/// What rounding may take from a buffer and from a threshold: this share (our choice).
const SHARE: u64 = 8;

/// The most that each ingress has held.
#[derive(Clone)]
pub struct Calm {
    peaks: Vec<u32>,
    grain: u32,
}

impl Calm {
    /// `None`: some switch is not calm even when it is empty.
    pub fn new(t: &Tables) -> Option<Calm> {
        let mut calm = Calm { peaks: vec![0; t.ports.len()], grain: coarsest(t) };
        while calm.grain > FINEST && !t.switches.iter().all(|s| is_small(t, s, calm.grain)) {
            calm.grain /= 2;
        }
        let least = calm.least();
        calm.peaks.fill(least);
        (0..t.switches.len()).all(|s| calm.holds(t, s)).then_some(calm)
    }

    /// The unit of peaks, bytes.
    pub fn grain(&self) -> u32 {
        self.grain
    }

    /// The least that any ingress is taken to have held: below a grain its peak need not be known, where all of these matter little.
    pub fn least(&self) -> u32 {
        if self.grain > FINEST { self.grain } else { 0 }
    }

    /// What an ingress that held `bytes` is taken to have held.
    pub fn coarse(&self, bytes: u32) -> u32 {
        bytes.next_multiple_of(self.grain).max(self.least())
    }

    /// Port `port` is taken to have held `peak` bytes of what came in by it. Returns whether its switch is still provably calm.
    #[inline]
    pub fn saw(&mut self, t: &Tables, port: u32, peak: u32) -> bool {
        if peak <= self.peaks[port as usize] {
            return true;
        }
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

/// The coarsest unit worth while, bytes.
fn coarsest(t: &Tables) -> u32 {
    let on_the_way = |row: &Port| (u128::from(row.delay) * u128::from(row.rate) / (8 * u128::from(PS_PER_S))) as u64;
    let most = t.ports.iter().map(on_the_way).max().unwrap_or(0);
    most.saturating_mul(2).clamp(*COARSEST.start(), *COARSEST.end()).next_power_of_two() as u32
}

/// Whether it matters little if each ingress of `sw` is taken to hold `grain` bytes.
fn is_small(t: &Tables, sw: &Switch, grain: u32) -> bool {
    let all = u64::from(sw.port_n) * u64::from(grain);
    let free = sw.shared_size.saturating_sub(all);
    let ports = &t.ports[sw.port_first as usize..(sw.port_first + sw.port_n) as usize];
    all * SHARE <= sw.shared_size && ports.iter().all(|row| u64::from(grain) * SHARE <= free >> row.shift)
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;
    use crate::columns::Exp;

    /// One switch of `n` ports, whose shared buffer is all there is.
    fn switch(n: u32, shared_size: u64) -> Tables {
        Tables {
            exps: vec![Exp { buffer: shared_size, ..Exp::zeroed() }],
            switches: vec![Switch { port_n: n, shared_size, ..Switch::zeroed() }],
            ports: vec![Port { shift: 3, ..Port::zeroed() }; n as usize],
            ..Tables::default()
        }
    }

    #[test]
    fn grains_take_little_of_any_buffer() {
        for (ports, buffer, grain, least) in [(32, 32 << 20, 32 << 10, 32 << 10), (16, 1 << 20, 8 << 10, 8 << 10), (16, 1 << 16, 1 << 10, 0)] {
            let calm = Calm::new(&switch(ports, buffer)).expect("an empty switch is calm");
            assert_eq!((calm.grain(), calm.least()), (grain, least), "{ports} ports, {buffer} bytes");
            assert_eq!([0, 1, grain, grain + 1].map(|x| calm.coarse(x)), [least, grain, grain, 2 * grain]);
        }
    }

    #[test]
    fn what_comes_near_a_threshold_is_not_calm() {
        let t = switch(16, 1 << 20);
        let mut calm = Calm::new(&t).expect("an empty switch is calm");
        // With the others at 8 KiB: the free (1,048,576 - 122,880 - x) / 8 must be above x.
        let below = calm.coarse(90_000);
        assert!(calm.saw(&t, 3, below));
        let above = calm.coarse(110_000);
        assert!(!calm.saw(&t, 3, above));
    }
}
