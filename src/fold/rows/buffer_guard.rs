//! Proves that no switch came near a pause, a resume or a drop. If one comes near, the ports of the switch share a buffer and depend on each other.
//! Then the switch must be *coupled*: one partition has everything that crosses it, and nothing is to be proven for it.
//!
//! The proof is that of the system `classify`, with upper bounds instead of current levels. The bound of an ingress is the maximum that it held
//! during an *interval*: from one checkpoint of its partition to the next. A partition reports its peaks when an interval ends. At any time,
//! partitions together hold at most the sum of the peaks of the intervals that overlap that time. While the peaks over all time suffice for the
//! proof, intervals are not compared.
//!
//! Layer: fold/rows.

use hyperfold_base::units::PS_PER_S;
use hyperfold_columns::{NEVER, Port, PortIdx, Switch, SwitchIdx, Tables, mode};

/// Smallest unit of peaks, in bytes. Peaks are rounded up, so that a growing queue reports rarely (our choice).
const FINEST: u32 = 1 << 10;
/// Range of the largest unit, in bytes. Two steps of the fastest link bring this much, so a busy port does not count as a growing one.
const COARSEST: std::ops::RangeInclusive<u64> = 1 << 15..=1 << 17;
/// Rounding may take at most 1/`SHARE` of a buffer and of a threshold (our choice).
const SHARE: u64 = 8;

/// A switch is coupled before the proof fails: as soon as it would fail with this many times as much at every ingress (our choice). Each ingress is
/// assumed to hold at least one unit (grain), which two steps bring, so most switches are coupled in time.
const FORESIGHT: u32 = 2;

/// How near the proof is to failing, in steps: it would fail if every ingress held so many quarters of what it holds (our choice).
const APPROACH_QUARTERS: [u32; 3] = [4 * FORESIGHT, 6, 5];

/// The maximum that each ingress has held, and the switches that are coupled.
#[derive(Clone)]
pub struct BufferGuard {
    /// Peak of each ingress over all time, in bytes.
    peaks: Vec<u32>,
    /// For each ingress, the end (ps) and peak (bytes) of reported intervals, by time. An interval that ended before another one with at least the
    /// same peak is left out, so peaks decrease.
    reported: Vec<Vec<(u64, u32)>>,
    /// For each switch, whether the peaks of all time, times the [`margin`](Self::margin), do not suffice for the proof.
    crowded: Vec<bool>,
    /// Reported intervals with a peak above the minimum that are not checked yet: start, end, switch.
    unchecked: Vec<(u64, u64, SwitchIdx)>,
    /// Unit of peaks, in bytes.
    grain: u32,
    /// For each switch, whether all its active queue pairs belong to one partition; and whether there is any such switch.
    coupled: Vec<bool>,
    couples: bool,
    /// For each switch, whether it is coupled and its ports are processed jointly, so that nothing is to be proven.
    joint: Vec<bool>,
    /// Whether switches are coupled before the proof fails; and how much each ingress held in its last two intervals, as far as known.
    foresees: bool,
    recent: Vec<u32>,
    /// For each switch, whether `FORESIGHT` times the peaks of all time do not suffice for the proof.
    filling: Vec<bool>,
    /// Switches to couple before the proof fails.
    wanted: Vec<SwitchIdx>,
    /// For each switch, the time at which the proof would first have failed if all ingresses had held `near` times as much, in ps.
    near_since: Vec<u64>,
    /// Factor of `near_since`; 1: it is not used.
    near: u32,
    /// Whether `warned_at` is kept: steady phases may be skipped.
    warns: bool,
    /// End of the first interval, in ps, for which the proof would have failed at some switch if all ingresses had held `FORESIGHT` times as much; `NEVER`:
    /// there is none.
    warned_at: u64,
    /// Number of `APPROACH_QUARTERS` for which the proof would have failed at some switch, by what its ingresses hold in intervals that may not have ended.
    /// It is noted only if `warns`.
    approached: usize,
    /// Switches at which the proof failed at the instant of the first failure.
    failed: Vec<SwitchIdx>,
}

/// A failed proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    /// End of the first interval for which the proof failed, in ps.
    pub at: u64,
    pub switch: SwitchIdx,
}

impl BufferGuard {
    /// A guard with the given `coupled` switches; switches for which the proof fails even when they are empty are coupled too. It also notes which
    /// switches would fail if they held `near` times as much; with `near` 1 it does not.
    pub fn new(t: &Tables, coupled: &[SwitchIdx], near: u32) -> BufferGuard {
        let mut guard = BufferGuard {
            peaks: vec![0; t.ports.len()],
            reported: vec![Vec::new(); t.ports.len()],
            crowded: vec![false; t.switches.len()],
            unchecked: Vec::new(),
            grain: coarsest(t),
            coupled: vec![false; t.switches.len()],
            couples: false,
            joint: vec![false; t.switches.len()],
            foresees: t.exps[0].modes & mode::STEADY == 0,
            recent: vec![0; t.ports.len()],
            filling: vec![false; t.switches.len()],
            wanted: Vec::new(),
            near_since: vec![NEVER; t.switches.len()],
            near,
            warns: t.exps[0].modes & mode::STEADY != 0,
            warned_at: NEVER,
            approached: 0,
            failed: Vec::new(),
        };
        while guard.grain > FINEST && !t.switches.iter().all(|s| is_small(t, s, guard.grain)) {
            guard.grain /= 2;
        }
        let min_peak = guard.least();
        guard.peaks.fill(min_peak);
        guard.recent.fill(min_peak);
        for s in SwitchIdx::all(t.switches.len() as u32) {
            guard.coupled[s.usize()] = coupled.contains(&s) || !guard.holds(t, s, |p| guard.peaks[p.usize()]);
            guard.joint[s.usize()] = guard.coupled[s.usize()];
            guard.couples |= guard.coupled[s.usize()];
        }
        guard
    }

    /// Whether any switch is coupled.
    pub fn couples(&self) -> bool {
        self.couples
    }

    pub fn is_coupled(&self, s: SwitchIdx) -> bool {
        self.coupled[s.usize()]
    }

    /// Whether the ports of `s`, which is coupled, are processed jointly.
    pub fn is_joint(&self, s: SwitchIdx) -> bool {
        self.joint[s.usize()]
    }

    /// Couples `s`: from now on all active queue pairs through it belong to one partition. Until its ports are processed jointly, its ingresses are
    /// reported as before.
    pub fn couple(&mut self, s: SwitchIdx) {
        self.coupled[s.usize()] = true;
        self.couples = true;
    }

    /// Marks that the ports of `s` are processed jointly from now on.
    /// PRECONDITION: all intervals that concern `s` have been reported.
    pub fn process_jointly(&mut self, s: SwitchIdx) {
        self.joint[s.usize()] = true;
    }

    /// Takes a switch that must be coupled before the proof fails.
    pub fn take_wanted(&mut self) -> Option<SwitchIdx> {
        self.wanted.pop()
    }

    /// Number of coupled switches.
    pub fn n_coupled(&self) -> u64 {
        self.coupled.iter().map(|&coupled| u64::from(coupled)).sum()
    }

    /// Switches at which the proof failed at the instant of the first failure.
    pub fn failed(&self) -> &[SwitchIdx] {
        &self.failed
    }

    /// Switches that were near a failure by `at_ps`.
    pub fn near_by(&self, at_ps: u64) -> impl Iterator<Item = SwitchIdx> {
        self.near_since
            .iter()
            .enumerate()
            .filter(move |(_, near_since)| **near_since <= at_ps)
            .map(|(s, _)| SwitchIdx::new(s))
    }

    /// Largest factor of the peaks for which failures of the proof are noted.
    fn margin(&self) -> u32 {
        if self.warns { self.near.max(FORESIGHT) } else { self.near }
    }

    /// Whether some switch was filling up in the intervals that have been checked. It is noted only if steady phases may be skipped. It depends on the
    /// experiment alone.
    #[inline]
    pub fn warns(&self) -> bool {
        self.warned_at != NEVER
    }

    /// The largest number that [`BufferGuard::approached`] returns.
    pub const NEAREST: usize = APPROACH_QUARTERS.len();

    /// How near the proof is to failing at some switch, in steps; 0: it is far. When that is noted depends on turns and on the memo.
    #[inline]
    pub fn approached(&self) -> usize {
        self.approached
    }

    /// Couples switches before the proof fails from now on, because steady phases are not skipped any more.
    pub fn foresee_from_now(&mut self, t: &Tables) {
        (self.warns, self.warned_at, self.approached, self.foresees) = (false, NEVER, 0, true);
        self.recent.copy_from_slice(&self.peaks);
        for s in SwitchIdx::all(t.switches.len() as u32) {
            if self.coupled[s.usize()] {
                continue;
            }
            self.filling[s.usize()] = !self.holds(t, s, |p| self.peaks[p.usize()].saturating_mul(FORESIGHT));
            if self.filling[s.usize()] {
                self.wanted.push(s);
            }
        }
    }

    /// The unit of peaks, in bytes.
    pub fn grain(&self) -> u32 {
        self.grain
    }

    /// Minimum that any ingress is assumed to hold, in bytes. If one unit matters little, peaks below it need not be known.
    pub fn least(&self) -> u32 {
        if self.grain > FINEST { self.grain } else { 0 }
    }

    /// Bytes that an ingress is assumed to have held if it held `bytes`.
    pub fn coarse(&self, bytes: u32) -> u32 {
        bytes.next_multiple_of(self.grain).max(self.least())
    }

    /// Reports that ingresses `ends` of one partition held at most `peaks` bytes between `start` and `end` (ps).
    pub fn report_peaks(&mut self, t: &Tables, start: u64, end: u64, ends: &[PortIdx], peaks: &[u32]) {
        let min_peak = self.least();
        if self.warns {
            ends.iter().zip(peaks).for_each(|(&port, &peak)| self.recent[port.usize()] = peak);
        }
        if self.foresees {
            for (&port, &peak) in ends.iter().zip(peaks) {
                let before = std::mem::replace(&mut self.recent[port.usize()], peak);
                if peak > before {
                    self.foresee(t, port);
                }
            }
        }
        for (&port, &peak) in ends.iter().zip(peaks).filter(|x| *x.1 > min_peak) {
            let switch = t.ports[port].switch_idx;
            if self.joint[switch.usize()] {
                continue;
            }
            if self.unchecked.last() != Some(&(start, end, switch)) {
                self.unchecked.push((start, end, switch));
            }
            let reported = &mut self.reported[port.usize()];
            let later = reported.partition_point(|x| x.0 < end);
            if reported.get(later).is_none_or(|x| x.1 < peak) {
                let same = usize::from(reported.get(later).is_some_and(|x| x.0 == end));
                let less = reported[..later].partition_point(|x| x.1 > peak);
                reported.splice(less..later + same, [(end, peak)]);
            }
            let all_time_peak = &mut self.peaks[port.usize()];
            if peak > *all_time_peak {
                *all_time_peak = peak;
                self.crowded[switch.usize()] |= peak > t.exps[0].reserve
                    && !self.holds(t, switch, |p| self.peaks[p.usize()].saturating_mul(self.margin()));
            }
        }
    }

    /// Notes that ingress `port` held `peak` bytes in an interval that has not ended.
    pub fn note_peak(&mut self, t: &Tables, port: PortIdx, peak: u32) {
        if peak <= self.recent[port.usize()] {
            return;
        }
        if self.foresees {
            self.recent[port.usize()] = peak;
            self.foresee(t, port);
        } else if self.warns {
            self.recent[port.usize()] = peak;
            let s = t.ports[port].switch_idx;
            while let Some(&quarters) = APPROACH_QUARTERS.get(self.approached)
                && !self.coupled[s.usize()]
                && !self.holds(t, s, |p| (self.recent[p.usize()] / 4).saturating_mul(quarters))
            {
                self.approached += 1;
            }
        }
    }

    /// Checks whether the switch of ingress `port`, which held more than before, must be coupled.
    fn foresee(&mut self, t: &Tables, port: PortIdx) {
        let s = t.ports[port].switch_idx;
        if self.coupled[s.usize()] {
            return;
        }
        let recent = self.recent[port.usize()];
        if recent > self.peaks[port.usize()] {
            self.peaks[port.usize()] = recent;
            self.crowded[s.usize()] |= !self.holds(t, s, |p| self.peaks[p.usize()].saturating_mul(self.margin()));
            self.filling[s.usize()] |= !self.holds(t, s, |p| self.peaks[p.usize()].saturating_mul(FORESIGHT));
        }
        if self.filling[s.usize()]
            && !self.wanted.contains(&s)
            && !self.holds(t, s, |p| self.recent[p.usize()].saturating_mul(FORESIGHT))
        {
            self.wanted.push(s);
        }
    }

    /// Whether the proof holds for the switch of `port` while its ingresses hold `peak` bytes and those without a known peak hold little. If not, it
    /// will fail once this peak is reported.
    pub fn may_hold(&self, t: &Tables, port: PortIdx, peak: impl Fn(PortIdx) -> Option<u32>) -> bool {
        let min_peak = self.least();
        self.holds(t, t.ports[port].switch_idx, |p| peak(p).unwrap_or(min_peak))
    }

    /// The first failure of the proof before `now` (ps), if there is one. PRECONDITION: all intervals that ended before `now` have been reported.
    /// Intervals that ended at the same instant are checked together, each with all intervals that overlap it and did not end later.
    #[inline]
    pub fn failure_before(&mut self, t: &Tables, now: u64) -> Option<Failure> {
        if self.unchecked.last().is_none_or(|last| last.1 >= now) { None } else { self.check_reported(t, now) }
    }

    /// Checks the reported intervals that ended before `now` (ps). Returns the first failure of the proof, if there is one.
    fn check_reported(&mut self, t: &Tables, now: u64) -> Option<Failure> {
        let unchecked = std::mem::take(&mut self.unchecked);
        let min_peak = self.least();
        let held =
            |start: u64, p: PortIdx| self.reported[p.usize()].iter().find(|x| x.0 > start).map_or(min_peak, |x| x.1);
        let (due, not_due): (Vec<_>, Vec<_>) = unchecked.into_iter().partition(|x| x.1 < now);
        let mut near_failures: Vec<Failure> = Vec::new();
        let mut warned_at = self.warned_at;
        let mut failures: Vec<Failure> = Vec::new();
        for &(start, at_ps, switch) in due.iter().filter(|x| self.crowded[x.2.usize()]) {
            let failure = Failure { at: at_ps, switch };
            if !self.holds(t, switch, |p| held(start, p)) {
                failures.push(failure);
            } else if self.near > 1 && !self.holds(t, switch, |p| held(start, p).saturating_mul(self.near)) {
                near_failures.push(failure);
            }
            if self.warns && !self.holds(t, switch, |p| held(start, p).saturating_mul(FORESIGHT)) {
                warned_at = at_ps.min(warned_at);
            }
        }
        for failure in near_failures {
            let near_since = &mut self.near_since[failure.switch.usize()];
            *near_since = failure.at.min(*near_since);
        }
        self.unchecked = not_due;
        self.warned_at = warned_at;
        let first = failures.iter().min().copied()?;
        self.failed = failures.iter().filter(|f| f.at == first.at).map(|f| f.switch).collect();
        Some(first)
    }

    /// Whether the proof holds for switch `s` while its ingresses hold `peak` bytes.
    fn holds(&self, t: &Tables, s: SwitchIdx, peak: impl Fn(PortIdx) -> u32) -> bool {
        let sw = &t.switches[s];
        let reserve = t.exps[0].reserve;
        let pfc = t.exps[0].modes & mode::PFC != 0;
        let mut ports = sw.ports();
        let (mut max_excess, mut shared, mut held) = (0, 0, 0);
        for p in ports.clone() {
            let peak = peak(p);
            let excess = u64::from(peak.saturating_sub(reserve));
            max_excess = excess.max(max_excess);
            shared += excess;
            held += u64::from(peak);
        }
        let free = sw.shared_size.saturating_sub(shared);
        held <= t.exps[0].buffer
            && ports.all(|p| {
                let row = &t.ports[p];
                let threshold = free >> row.shift;
                (max_excess < threshold || u64::from(peak(p).saturating_sub(reserve)) < threshold)
                    && (!pfc || sw.max_wire <= row.headroom || u64::from(sw.max_wire) + shared <= threshold)
            })
    }
}

/// The largest useful unit of peaks, in bytes.
fn coarsest(t: &Tables) -> u32 {
    let on_the_way = |row: &Port| (u128::from(row.delay) * u128::from(row.rate) / (8 * u128::from(PS_PER_S))) as u64;
    let max_bytes = t.ports.iter().map(on_the_way).max().unwrap_or(0);
    max_bytes.saturating_mul(2).clamp(*COARSEST.start(), *COARSEST.end()).next_power_of_two() as u32
}

/// Whether it matters little if each ingress of `sw` is assumed to hold `grain` bytes.
fn is_small(t: &Tables, sw: &Switch, grain: u32) -> bool {
    let all = u64::from(sw.port_n) * u64::from(grain);
    let free = sw.shared_size.saturating_sub(all);
    let ports = &t.ports[sw.port_first.places(sw.port_n)];
    all * SHARE <= sw.shared_size && ports.iter().all(|row| u64::from(grain) * SHARE <= free >> row.shift)
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;
    use hyperfold_columns::{Exp, OwnedTables};

    /// One switch of `n` ports whose buffer is all shared.
    fn switch(n: u32, shared_size: u64) -> OwnedTables {
        OwnedTables {
            exps: vec![Exp { buffer: shared_size, ..Exp::zeroed() }],
            switches: vec![Switch { port_n: n, shared_size, ..Switch::zeroed() }],
            ports: vec![Port { shift: 3, ..Port::zeroed() }; n as usize],
            ..OwnedTables::default()
        }
    }

    #[test]
    fn grains_take_little_of_any_buffer() {
        for (ports, buffer, grain, min_peak) in
            [(32, 32 << 20, 32 << 10, 32 << 10), (16, 1 << 20, 8 << 10, 8 << 10), (16, 1 << 16, 1 << 10, 0)]
        {
            let guard = BufferGuard::new(&switch(ports, buffer).view(), &[], 1);
            assert!(!guard.couples(), "an empty switch is safe");
            assert_eq!((guard.grain(), guard.least()), (grain, min_peak), "{ports} ports, {buffer} bytes");
            assert_eq!([0, 1, grain, grain + 1].map(|x| guard.coarse(x)), [min_peak, grain, grain, 2 * grain]);
        }
    }

    /// Whether the proof holds if ingresses hold (start, end, ingress, bytes) and nothing else.
    fn is_safe(t: &Tables, intervals: &[(u64, u64, u32, u32)]) -> bool {
        let mut guard = BufferGuard::new(t, &[], 1);
        assert!(!guard.couples(), "an empty switch is safe");
        intervals.iter().all(|&(start, end, port, bytes)| {
            let kept = guard.failure_before(t, end).is_none();
            let peak = guard.coarse(bytes);
            guard.report_peaks(t, start, end, &[PortIdx(port)], &[peak]);
            kept
        }) && guard.failure_before(t, u64::MAX).is_none()
    }

    #[test]
    fn what_comes_near_a_threshold_fails_the_guard() {
        let mut owned = switch(16, 1 << 20);
        let t = owned.view();
        // The others hold 8 KiB each: the free (1,048,576 - 122,880 - x) / 8 must be above x.
        assert!(is_safe(&t, &[(0, 9, 3, 90_000)]));
        assert!(!is_safe(&t, &[(0, 9, 3, 110_000)]));
    }

    #[test]
    fn a_failure_names_its_switch_and_those_that_are_near() {
        let mut owned = switch(16, 1 << 20);
        owned.switches.push(Switch { port_first: PortIdx(16), port_n: 16, shared_size: 1 << 20, ..Switch::zeroed() });
        owned.ports.extend(vec![Port { switch_idx: SwitchIdx(1), shift: 3, ..Port::zeroed() }; 16]);
        let t = owned.view();
        let failed = |coupled: &[SwitchIdx]| {
            let mut guard = BufferGuard::new(&t, coupled, 2);
            guard.report_peaks(&t, 0, 9, &[PortIdx(3), PortIdx(20)], &[guard.coarse(70_000), guard.coarse(70_000)]);
            assert_eq!(guard.failure_before(&t, 10), None);
            guard.report_peaks(&t, 9, 12, &[PortIdx(3)], &[guard.coarse(110_000)]);
            assert_eq!(guard.failure_before(&t, 12), None, "it has not ended before");
            (guard.failure_before(&t, 13), guard.near_by(12).collect::<Vec<_>>(), guard.near_by(8).count())
        };
        let both = vec![SwitchIdx(0), SwitchIdx(1)];
        assert_eq!(failed(&[]), (Some(Failure { at: 12, switch: SwitchIdx(0) }), both, 0));
        assert_eq!(
            failed(&[SwitchIdx(0)]),
            (None, vec![SwitchIdx(1)], 0),
            "nothing is to be proven of a coupled switch"
        );
    }

    #[test]
    fn a_switch_that_fills_up_is_named_before_it_fails() {
        let mut owned = switch(16, 1 << 20);
        let t = owned.view();
        let mut guard = BufferGuard::new(&t, &[], 1);
        // One ingress may hold 98,304 bytes. Twice as much as it holds must not be too much.
        guard.note_peak(&t, PortIdx(3), guard.coarse(40_000));
        assert_eq!(guard.take_wanted(), None);
        guard.note_peak(&t, PortIdx(3), guard.coarse(50_000));
        assert_eq!(guard.take_wanted(), Some(SwitchIdx(0)));
        assert_eq!(guard.take_wanted(), None, "it was named");
        guard.couple(SwitchIdx(0));
        assert!(guard.couples() && guard.is_coupled(SwitchIdx(0)) && !guard.is_joint(SwitchIdx(0)));
        guard.report_peaks(&t, 0, 9, &[PortIdx(3)], &[guard.coarse(110_000)]);
        assert_eq!(guard.take_wanted(), None, "it is coupled");
        let failure = Some(Failure { at: 9, switch: SwitchIdx(0) });
        assert_eq!(guard.failure_before(&t, 10), failure, "it is proven until its ports are processed jointly");
        guard.process_jointly(SwitchIdx(0));
        guard.report_peaks(&t, 9, 12, &[PortIdx(3)], &[guard.coarse(110_000)]);
        assert_eq!(guard.failure_before(&t, 13), None);
    }

    #[test]
    fn what_an_ingress_held_two_intervals_ago_is_forgotten() {
        let mut owned = switch(16, 1 << 20);
        let t = owned.view();
        let mut guard = BufferGuard::new(&t, &[], 1);
        for (start, port) in [(0, 3), (9, 4), (18, 5), (27, 6)] {
            // Each alone is well below, all together are not.
            guard.report_peaks(&t, start, start + 9, &[PortIdx(port)], &[guard.coarse(40_000)]);
            guard.report_peaks(&t, start, start + 9, &[PortIdx(port)], &[guard.coarse(0)]);
        }
        assert_eq!(guard.take_wanted(), None);
        for port in 3..7 {
            guard.note_peak(&t, PortIdx(port), guard.coarse(40_000));
        }
        assert_eq!(guard.take_wanted(), Some(SwitchIdx(0)));
    }

    #[test]
    fn what_was_held_is_known_in_whatever_order_it_is_told() {
        let mut owned = switch(16, 1 << 20);
        let t = owned.view();
        let reported = [
            (0, 9, 24_000),
            (0, 12, 16_000),
            (0, 12, 40_000),
            (0, 5, 80_000),
            (0, 7, 30_000),
            (0, 20, 20_000),
            (0, 15, 20_000),
        ];
        for first in 0..reported.len() {
            let mut guard = BufferGuard::new(&t, &[], 1);
            for k in 0..reported.len() {
                let (start, end, bytes) = reported[(first + k * 3) % reported.len()];
                guard.report_peaks(&t, start, end, &[PortIdx(3)], &[bytes]);
            }
            assert_eq!(guard.reported[3], [(5, 80_000), (12, 40_000), (20, 20_000)], "from {first}");
        }
    }

    #[test]
    fn only_what_was_there_together_counts_together() {
        let mut owned = switch(16, 1 << 20);
        let t = owned.view();
        // One ingress may hold 98,304 bytes, two 90,112 each, three less than that.
        let [a, b, c] = [(0, 9, 3, 90_000), (5, 12, 4, 90_000), (9, 14, 5, 90_000)];
        assert!(is_safe(&t, &[a, b]));
        assert!(is_safe(&t, &[a, c, (14, 20, 6, 90_000), (20, 30, 7, 90_000)]));
        assert!(!is_safe(&t, &[a, (5, 9, 4, 90_000), (0, 9, 5, 90_000), (8, 9, 6, 90_000)]));
        // The second interval overlaps all others, which do not overlap each other.
        assert!(!is_safe(&t, &[a, c, (14, 20, 6, 90_000), (3, 20, 4, 90_000)]));
        assert!(!is_safe(&t, &[a, c, (3, 20, 4, 90_000), (14, 20, 6, 90_000)]));
        assert!(is_safe(&t, &[a, c, (14, 20, 6, 20_000), (14, 21, 4, 90_000)]));
    }
}
