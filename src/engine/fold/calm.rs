//! Shared buffers couple the ports of a switch where a pause, resume or drop is in reach. Folding goes on only while it can prove that none ever was.
//!
//! The proof is `settle`'s, with the most that each ingress held during a *stretch* of its partition's life (from one cut to the next) in place of what it holds now:
//! stretches are told when they end, and what partitions hold at one time is no more than the most they held in those stretches that share it. As long as the most that
//! ingresses ever held will do, nothing else is asked.

use crate::columns::{Port, Switch, Tables};
use crate::units::PS_PER_S;

/// Peaks are kept in units of this many bytes at least, rounded up, so that a growing queue is looked at once in a while only (our choice).
const FINEST: u32 = 1 << 10;
/// And at most in one of these: what two steps of the fastest link bring, so that a busy port is not taken for one that rises.
const COARSEST: std::ops::RangeInclusive<u64> = 1 << 15..=1 << 17;
/// What rounding may take from a buffer and from a threshold: this share (our choice).
const SHARE: u64 = 8;

/// The most that each ingress has held.
pub struct Calm {
    /// Ever.
    peaks: Vec<u32>,
    /// In the stretches that were told, but for those that ended before one of at least as much: when they ended, and the most. The later the less.
    told: Vec<Vec<(u64, u32)>>,
    /// Of each switch whether the most that its ingresses ever held is too much.
    crowded: Vec<bool>,
    /// Stretches told of late in which anything above the least was held: beginning, end, switch.
    late: Vec<(u64, u64, u32)>,
    grain: u32,
}

impl Calm {
    /// `None`: some switch is not calm even when it is empty.
    pub fn new(t: &Tables) -> Option<Calm> {
        let mut calm = Calm {
            peaks: vec![0; t.ports.len()],
            told: vec![Vec::new(); t.ports.len()],
            crowded: vec![false; t.switches.len()],
            late: Vec::new(),
            grain: coarsest(t),
        };
        while calm.grain > FINEST && !t.switches.iter().all(|s| is_small(t, s, calm.grain)) {
            calm.grain /= 2;
        }
        let least = calm.least();
        calm.peaks.fill(least);
        (0..t.switches.len()).all(|s| calm.holds(t, s, |p| calm.peaks[p])).then_some(calm)
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

    /// Between `start` and `end` ingresses `ends` of one partition held `peaks` bytes at most.
    pub fn tell(&mut self, t: &Tables, start: u64, end: u64, ends: &[u32], peaks: &[u32]) {
        let least = self.least();
        for (&port, &peak) in ends.iter().zip(peaks).filter(|x| *x.1 > least) {
            let switch = t.ports[port as usize].switch_idx;
            if self.late.last() != Some(&(start, end, switch)) {
                self.late.push((start, end, switch));
            }
            let told = &mut self.told[port as usize];
            let later = told.partition_point(|x| x.0 < end);
            if told.get(later).is_none_or(|x| x.1 < peak) {
                let same = usize::from(told.get(later).is_some_and(|x| x.0 == end));
                let less = told[..later].partition_point(|x| x.1 > peak);
                told.splice(less..later + same, [(end, peak)]);
            }
            let ever = &mut self.peaks[port as usize];
            if peak > *ever {
                *ever = peak;
                self.crowded[switch as usize] |=
                    peak > t.exps[0].reserve && !self.holds(t, switch as usize, |p| self.peaks[p]);
            }
        }
    }

    /// Whether the switch of `port` is provably calm while its ingresses hold `peak` bytes and no others hold much: if not, it will not be when this is told.
    pub fn may_hold(&self, t: &Tables, port: u32, peak: impl Fn(usize) -> Option<u32>) -> bool {
        let least = self.least();
        self.holds(t, t.ports[port as usize].switch_idx as usize, |p| peak(p).unwrap_or(least))
    }

    /// All that ended before `now` has been told. Returns whether all switches were provably calm up to then: stretches that ended at one instant are looked at together,
    /// each with all that it shares time with and that did not end later.
    #[inline]
    pub fn was_kept(&mut self, t: &Tables, now: u64) -> bool {
        self.late.last().is_none_or(|last| last.1 >= now) || self.look_back(t, now)
    }

    fn look_back(&mut self, t: &Tables, now: u64) -> bool {
        let late = std::mem::take(&mut self.late);
        let least = self.least();
        let held = |start: u64, p: usize| self.told[p].iter().find(|x| x.0 > start).map_or(least, |x| x.1);
        let (over, still): (Vec<_>, Vec<_>) = late.into_iter().partition(|x| x.1 < now);
        let kept = over.iter().all(|&(start, _, switch)| {
            !self.crowded[switch as usize] || self.holds(t, switch as usize, |p| held(start, p))
        });
        self.late = still;
        kept
    }

    /// Whether switch `s` is provably calm while its ingresses hold `peak` bytes.
    fn holds(&self, t: &Tables, s: usize, peak: impl Fn(usize) -> u32) -> bool {
        let sw = &t.switches[s];
        let reserve = t.exps[0].reserve;
        let ports = sw.port_first as usize..(sw.port_first + sw.port_n) as usize;
        let (mut most, mut shared, mut held) = (0, 0, 0);
        for p in ports.clone() {
            let peak = peak(p);
            let excess = u64::from(peak.saturating_sub(reserve));
            most = excess.max(most);
            shared += excess;
            held += u64::from(peak);
        }
        let free = sw.shared_size.saturating_sub(shared);
        held <= t.exps[0].buffer
            && ports.into_iter().all(|p| {
                let row = &t.ports[p];
                let threshold = free >> row.shift;
                (most < threshold || u64::from(peak(p).saturating_sub(reserve)) < threshold)
                    && (sw.max_wire <= row.headroom || u64::from(sw.max_wire) + shared <= threshold)
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
        for (ports, buffer, grain, least) in
            [(32, 32 << 20, 32 << 10, 32 << 10), (16, 1 << 20, 8 << 10, 8 << 10), (16, 1 << 16, 1 << 10, 0)]
        {
            let calm = Calm::new(&switch(ports, buffer)).expect("an empty switch is calm");
            assert_eq!((calm.grain(), calm.least()), (grain, least), "{ports} ports, {buffer} bytes");
            assert_eq!([0, 1, grain, grain + 1].map(|x| calm.coarse(x)), [least, grain, grain, 2 * grain]);
        }
    }

    /// Whether all is calm if ingresses hold (beginning, end, ingress, bytes) and nothing else.
    fn is_calm(t: &Tables, stretches: &[(u64, u64, u32, u32)]) -> bool {
        let mut calm = Calm::new(t).expect("an empty switch is calm");
        stretches.iter().all(|&(start, end, port, bytes)| {
            let kept = calm.was_kept(t, end);
            let peak = calm.coarse(bytes);
            calm.tell(t, start, end, &[port], &[peak]);
            kept
        }) && calm.was_kept(t, u64::MAX)
    }

    #[test]
    fn what_comes_near_a_threshold_is_not_calm() {
        let t = switch(16, 1 << 20);
        // With the others at 8 KiB: the free (1,048,576 - 122,880 - x) / 8 must be above x.
        assert!(is_calm(&t, &[(0, 9, 3, 90_000)]));
        assert!(!is_calm(&t, &[(0, 9, 3, 110_000)]));
    }

    #[test]
    fn what_was_held_is_known_in_whatever_order_it_is_told() {
        let t = switch(16, 1 << 20);
        let told = [
            (0, 9, 24_000),
            (0, 12, 16_000),
            (0, 12, 40_000),
            (0, 5, 80_000),
            (0, 7, 30_000),
            (0, 20, 20_000),
            (0, 15, 20_000),
        ];
        for first in 0..told.len() {
            let mut calm = Calm::new(&t).expect("an empty switch is calm");
            for k in 0..told.len() {
                let (start, end, bytes) = told[(first + k * 3) % told.len()];
                calm.tell(&t, start, end, &[3], &[bytes]);
            }
            assert_eq!(calm.told[3], [(5, 80_000), (12, 40_000), (20, 20_000)], "from {first}");
        }
    }

    #[test]
    fn only_what_was_there_together_counts_together() {
        let t = switch(16, 1 << 20);
        // One may hold 98,304, of two each 90,112, of three none that much.
        let [a, b, c] = [(0, 9, 3, 90_000), (5, 12, 4, 90_000), (9, 14, 5, 90_000)];
        assert!(is_calm(&t, &[a, b]));
        assert!(is_calm(&t, &[a, c, (14, 20, 6, 90_000), (20, 30, 7, 90_000)]));
        assert!(!is_calm(&t, &[a, (5, 9, 4, 90_000), (0, 9, 5, 90_000), (8, 9, 6, 90_000)]));
        // The second shares time with all others, which share none with each other.
        assert!(!is_calm(&t, &[a, c, (14, 20, 6, 90_000), (3, 20, 4, 90_000)]));
        assert!(!is_calm(&t, &[a, c, (3, 20, 4, 90_000), (14, 20, 6, 90_000)]));
        assert!(is_calm(&t, &[a, c, (14, 20, 6, 20_000), (14, 21, 4, 90_000)]));
    }
}
