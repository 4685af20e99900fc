//! When a partition is steady. It is looked at at fixed instants of its own time, so that neither turns nor the memo can be seen in what is decided.
//!
//! The criterion is Wormhole's (NSDI '26, Eq. 6): over a window of samples no queue pair's metric moves by more than a share theta of its mean. Under contention that alone
//! errs by several percent (rates wander for milliseconds within theta); so what the two halves of the window differ by, and what queues grow by, limits how far ahead it holds.

use std::collections::VecDeque;

use super::memo::Piece;
use super::nap::{FRACTION, Sleep};
use super::part::{Member, Part, is_idle};
use super::run::Run;
use super::stream::Stream;
use crate::columns::{NEVER, NONE, Tables, cc, metric, mode, qp};
use crate::units::{PS_PER_NS, PS_PER_S};

/// The default of theta where nothing about the partition asks for more (Wormhole, section 7).
const THETA_PPM: u64 = 50_000;
/// At most this, whatever Appendix F asks for (our choice).
const MOST_THETA_PPM: u64 = 200_000;
/// Samples in a window at least (our choice): two halves of four.
const LEAST_SAMPLES: u64 = 8;
/// Packets of a queue pair's fair share in an interval, times theta: that one packet more or less is a quarter of theta (our choice).
const PACKETS_THETA: u64 = 4;
/// Where several senders meet at a port, shares wander for milliseconds: windows are this many times as long (our choice).
const CONTENDED: u64 = 4;
/// How far the mean rate of what is skipped may lie from that of the window if it goes on drifting as it does, in millionths (our choice: a tenth of theta).
const DRIFT_PPM: u64 = 5_000;
/// How much the queues of a partition may have grown by the end if they go on growing as they do, in packets (our choice).
const QUEUE_DRIFT: u64 = 8;

/// How a partition is watched.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub theta_ppm: u64,
    samples: usize,
    pub interval: u64,
}

/// What was seen of a partition since something happened to it that may have changed its rates.
#[derive(Clone, Default)]
pub struct Watch {
    pub from: u64,
    rule: Option<Rule>,
    seen: VecDeque<Seen>,
    /// Samples taken since `from`.
    taken: u64,
}

/// One look.
#[derive(Clone)]
struct Seen {
    /// Of each queue pair: bytes acknowledged in all, and the metric.
    members: Vec<(u64, u64)>,
    /// Bytes queued in all ports.
    queued: u64,
    /// Of each port, so far: integral of its queue, marks.
    ports: Vec<(u64, u64)>,
}

/// A partition is steady.
#[derive(Clone)]
pub struct Steady {
    /// The window in which that was seen, ps.
    pub window: u64,
    /// For how long it may be taken to stay so, ps; `NEVER` where nothing drifts.
    pub holds: u64,
    /// How many packets of each queue pair were acknowledged in it.
    pub packets: Vec<u64>,
    pub theta_ppm: u64,
    /// How many times in a row it had slept and had found its rates unchanged.
    pub level: u32,
    /// No congestion control is at work: rates are the lines' and stay so.
    pub settled: bool,
    /// What each port's integral and marks gained in it.
    pub ports: Vec<(u64, u64)>,
}

impl Steady {
    /// The same for `piece` of the partition.
    pub fn of(&self, piece: &Piece) -> Steady {
        Steady {
            packets: piece.members.iter().map(|&m| self.packets[m as usize]).collect(),
            ports: piece.ports.iter().map(|&p| self.ports[p as usize]).collect(),
            ..*self
        }
    }
}

impl Watch {
    pub fn new(from: u64) -> Watch {
        Watch { from, ..Watch::default() }
    }

    /// When the next look is due.
    pub fn next(&self) -> u64 {
        self.rule.map_or(NEVER, |r| self.from + (self.taken + 1) * r.interval)
    }

    /// Whether a whole window has been seen.
    pub fn is_full(&self) -> bool {
        self.rule.is_some_and(|r| self.seen.len() > r.samples)
    }

    /// Begins anew at `from`.
    pub fn reset(&mut self, from: u64) {
        self.from = self.from.max(from);
        self.seen.clear();
        self.taken = 0;
    }

    /// Looks at `part`. PRECONDITION: all before [`Watch::next`] has happened, nothing at or after.
    fn look(&mut self, t: &Tables, part: &Part) {
        let Some(rule) = self.rule else { return };
        self.taken += 1;
        let last = |m: usize| self.seen.back().map(|s| s.members[m].0);
        let members = part.members.iter().enumerate().map(|(m, x)| (t.flow_tx[x.flow as usize].snd_una, measure(t, x.flow, last(m)))).collect();
        let queued = part.ports.iter().map(|&p| u64::from(t.ports[p as usize].q_bytes)).sum();
        let ports = part.ports.iter().map(|&p| (t.ports[p as usize].q_area, t.ports[p as usize].marks)).collect();
        self.seen.push_back(Seen { members, queued, ports });
        if self.seen.len() > rule.samples + 1 {
            self.seen.pop_front();
        }
    }

    /// Whether queue pair `m` meets the criterion, and for how long, ps.
    fn member_holds(&self, m: usize, t: &Tables, f: u32) -> Option<u64> {
        let rule = self.rule?;
        let n = rule.samples;
        let by_rate = (t.exps[0].modes >> mode::METRIC_SHIFT) & mode::METRIC_MASK == metric::RATE;
        let acked = |k: usize| self.seen[k].members[m].0;
        let value = |k: usize| if by_rate { acked(k) - acked(k - 1) } else { self.seen[k].members[m].1 };
        let (mut least, mut most, mut sum) = (u64::MAX, 0, 0);
        for k in 1..=n {
            let x = value(k);
            (least, most, sum) = (least.min(x), most.max(x), sum + x);
        }
        let payload = u64::from(t.exps[0].payload);
        // Queues of a packet or two are as steady as can be.
        let slack = if by_rate { 0 } else { 2 * payload };
        let spread = (most - least).saturating_sub(slack);
        let steady = u128::from(spread) * n as u128 * 1_000_000 < u128::from(rule.theta_ppm) * u128::from(sum) || (spread == 0 && !by_rate);
        let moved = acked(n) - acked(0);
        if !steady || moved == 0 {
            return None;
        }
        let tx = &t.flow_tx[f as usize];
        let window = n as u64 * rule.interval;
        if timers_pend(t, f, self.next() - rule.interval + window) || tx.n_paths > 1 || tx.snd_nxt >= tx.size {
            return None;
        }
        let half = n / 2;
        let (first, second) = (acked(half) - acked(0), acked(n) - acked(n - half));
        let drift = first.abs_diff(second).saturating_sub(2 * payload);
        Some(match drift {
            0 => NEVER,
            // K windows on, 2K halves, rates are off by 2K drifts, on average by K.
            _ => (u128::from(window) * u128::from(first) * u128::from(DRIFT_PPM) / (u128::from(drift) * 1_000_000)).min(u128::from(NEVER)) as u64,
        })
    }

    /// For how long the queues hold, ps.
    fn queues_hold(&self, payload: u64) -> u64 {
        let Some(rule) = self.rule else { return 0 };
        let half = rule.samples / 2;
        let sum = |from: usize| self.seen.iter().skip(from).take(half).map(|s| s.queued).sum::<u64>() / half.max(1) as u64;
        let trend = sum(1).abs_diff(sum(1 + rule.samples - half)).saturating_sub(2 * payload);
        let window = rule.samples as u64 * rule.interval;
        match trend {
            0 => NEVER,
            // The halves' middles lie half a window apart.
            _ => (u128::from(window) * u128::from(QUEUE_DRIFT * payload) / (2 * u128::from(trend))).min(u128::from(NEVER)) as u64,
        }
    }
}

/// The metric of queue pair `f` that is not simply what was acknowledged; `last`: what had been at the last look.
fn measure(t: &Tables, f: u32, last: Option<u64>) -> u64 {
    let tx = &t.flow_tx[f as usize];
    let flying = tx.snd_nxt - tx.snd_una;
    match (t.exps[0].modes >> mode::METRIC_SHIFT) & mode::METRIC_MASK {
        metric::WINDOW if tx.win > 0 => tx.win,
        metric::WINDOW => tx.rate,
        metric::INFLIGHT => flying,
        metric::QUEUE => {
            let path = tx.path_first as usize..(tx.path_first + tx.path_len) as usize;
            t.paths[path].iter().map(|&p| u64::from(t.ports[p as usize].q_bytes)).sum()
        }
        // In intervals, with 20 bits of fraction.
        metric::RTT => (flying << 20) / last.map_or(1, |last| tx.snd_una - last).max(1),
        _ => 0,
    }
}

/// Whether a congestion-control timer of queue pair `f` that would move its rate is due only after `end`: what is not seen in the window is no steadiness.
fn timers_pend(t: &Tables, f: u32, end: u64) -> bool {
    let tx = &t.flow_tx[f as usize];
    if t.exps[0].cc != cc::DCQCN || tx.flags & qp::STARTED == 0 {
        return false;
    }
    let line = t.nics[tx.nic as usize].rate;
    tx.rate < line && [tx.t_inc, tx.t_dec].iter().any(|&x| x != NEVER && x > end)
}

/// Whether queue pair `f` sends at line rate and has never been told of congestion.
fn is_settled(t: &Tables, f: u32) -> bool {
    let cc = t.exps[0].cc;
    cc == cc::NONE || (cc == cc::DCQCN && t.flow_tx[f as usize].flags & qp::STARTED == 0)
}

impl Sleep {
    /// Whether rates in a `window` after it, in which each queue pair sent `packets`, are what they were in it.
    fn held(&self, packets: &[u64], window: u64) -> bool {
        // Both in packets times windows.
        let scale = |x: u64, w: u64| u128::from(x) * u128::from(w);
        let near = |was: u64, is: u64, slack: u64| {
            let (was, is) = (scale(was, window) >> FRACTION, scale(is, self.window));
            was.abs_diff(is) * 1_000_000 <= was * u128::from(DRIFT_PPM) + scale(slack, window.max(self.window)) * 1_000_000
        };
        let was = self.paces.iter().map(|p| p.packets);
        // A queue pair's packets in a window are off by one at either end, those of all by less.
        let all = near(was.clone().sum(), packets.iter().sum(), (packets.len() as u64).isqrt());
        all && self.paces.len() == packets.len() && was.zip(packets).all(|(was, &is)| near(was, is, 2))
    }
}

impl Run {
    pub(super) fn is_steadying(t: &Tables) -> bool {
        t.exps[0].modes & mode::STEADY != 0
    }

    /// Something happened to `p` at `at` that may change its rates.
    pub(super) fn disturb(&mut self, t: &Tables, p: u32, at: u64) {
        if !Run::is_steadying(t) {
            return;
        }
        self.parts[p as usize].watch.reset(at);
        self.parts[p as usize].faith = None;
        self.arm(t, p);
    }

    /// The next look at `p` is put down, if it is simulated.
    pub(super) fn arm(&mut self, t: &Tables, p: u32) {
        if !Run::is_steadying(t) || self.parts[p as usize].replay || !self.parts[p as usize].fit {
            return;
        }
        if self.parts[p as usize].watch.rule.is_none() {
            self.parts[p as usize].watch.rule = Some(self.rule(t, p));
        }
        let part = &self.parts[p as usize];
        self.looks.push(std::cmp::Reverse((part.watch.next(), part.first)));
    }

    /// Other rows belong to `p` now.
    pub(super) fn forget_rule(&mut self, p: u32) {
        self.parts[p as usize].watch.rule = None;
    }

    /// The first look at any simulated partition, and at which.
    pub(super) fn next_look(&mut self) -> Option<(u64, u32)> {
        while let Some(&std::cmp::Reverse((at, n))) = self.looks.peek() {
            let p = self.nic_part[n as usize];
            if p != NONE {
                let part = &self.parts[p as usize];
                if !part.replay && part.fit && part.first == n && part.watch.next() == at {
                    return Some((at, p));
                }
            }
            self.looks.pop();
        }
        None
    }

    /// Looks at `p`, which is simulated again from where it stood, without consequences: they came at the time.
    pub(super) fn look_again(&mut self, t: &Tables, p: u32) {
        let mut watch = std::mem::take(&mut self.parts[p as usize].watch);
        watch.look(t, &self.parts[p as usize]);
        self.parts[p as usize].watch = watch;
    }

    /// Chooses how `p` is watched, where that is not given: Wormhole's Appendix F, from capacity, round-trip time and the number of queue pairs that share a transmitter.
    fn rule(&self, t: &Tables, p: u32) -> Rule {
        let e = &t.exps[0];
        let part = &self.parts[p as usize];
        let mut sharing = vec![0u64; part.nics.len() + part.ports.len()];
        let mut from = vec![NONE; part.ports.len()];
        let mut contended = false;
        let (mut bdp, mut rtt, mut packet) = (u64::MAX, 1, 1);
        for m in part.members.iter().filter(|m| m.routed) {
            let tx = &t.flow_tx[m.flow as usize];
            let nic = &t.nics[tx.nic as usize];
            sharing[self.nic_local[tx.nic as usize] as usize] += 1;
            for &q in &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize] {
                let port = self.port_local[q as usize] as usize;
                sharing[part.nics.len() + port] += 1;
                contended |= from[port] != NONE && from[port] != tx.nic;
                from[port] = tx.nic;
            }
            let base = u64::from(tx.base_rtt_ns) * 1000;
            rtt = rtt.max(base);
            packet = packet.max(nic.tx_full);
            bdp = bdp.min((u128::from(nic.rate) * u128::from(base) / (8 * u128::from(PS_PER_S) * u128::from(e.payload.max(1)))) as u64);
        }
        let flows = sharing.iter().copied().max().unwrap_or(1).max(1);
        let bdp = bdp.clamp(1, 1 << 40);
        // theta >= sqrt(7 N / (16 C RTT)), in packets.
        let least_ppm = (1_000_000_000_000 * 7 * flows / (16 * bdp)).isqrt().clamp(THETA_PPM, MOST_THETA_PPM);
        let theta_ppm = if e.theta_ppm > 0 { u64::from(e.theta_ppm) } else { least_ppm };
        let interval = if e.interval_ns > 0 { u64::from(e.interval_ns) * PS_PER_NS } else { rtt.max(packet * flows * PACKETS_THETA * 1_000_000 / theta_ppm.max(1)) };
        // A window covers sqrt(4 C RTT / (7 N)) round trips, and what DCQCN's timers do.
        let mut least = rtt * (4 * bdp / (7 * flows)).isqrt().max(1);
        if e.cc == cc::DCQCN && e.p_inc != NEVER {
            least = least.max(2 * e.p_inc.max(e.p_dec).min(PS_PER_S / 1000));
        }
        let chosen = LEAST_SAMPLES.max(least.div_ceil(interval)) * if contended { CONTENDED } else { 1 };
        let samples = if e.samples > 0 { u64::from(e.samples) } else { chosen };
        Rule { theta_ppm, samples: samples.max(1) as usize, interval: interval.max(self.step) }
    }

    /// It is time for a look at `p`. Returns whether a whole window has been seen by it.
    pub(super) fn look(&mut self, t: &Tables, p: u32) -> bool {
        self.look_again(t, p);
        self.parts[p as usize].watch.is_full()
    }

    /// Whether queue pair `m` of `p` has something to do.
    pub(super) fn works(&self, t: &Tables, p: u32, m: u32) -> bool {
        let m = &self.parts[p as usize].members[m as usize];
        m.routed && !is_idle(t, m.flow)
    }

    /// Whether all of `working`, queue pairs of `p` by local numbers, is steady. PRECONDITION: a whole window has been seen.
    pub(super) fn steady(&self, t: &Tables, p: u32, working: &[u32], whole: bool) -> Option<Steady> {
        let part = &self.parts[p as usize];
        let watch = &part.watch;
        let rule = watch.rule?;
        let e = &t.exps[0];
        if working.is_empty() || e.ack_interval > 1 {
            return None;
        }
        let window = rule.samples as u64 * rule.interval;
        let mut holds = watch.queues_hold(u64::from(e.payload));
        for &m in working {
            let f = part.members[m as usize].flow;
            if t.flow_tx[f as usize].start != NEVER || is_idle(t, f) {
                return None;
            }
            holds = holds.min(watch.member_holds(m as usize, t, f)?);
        }
        let (first, last) = (watch.seen.front()?, watch.seen.back()?);
        let ports = first.ports.iter().zip(&last.ports).map(|(a, b)| (b.0 - a.0, b.1 - a.1)).collect();
        if holds < window {
            return None;
        }
        let acked = |(m, (before, _)): (&Member, &(u64, u64))| {
            let tx = &t.flow_tx[m.flow as usize];
            let posted: u64 = m.posted.iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum();
            let stream = Stream::new(t, m, tx.size - posted);
            stream.packet(tx.snd_una) - stream.packet(*before)
        };
        let packets: Vec<u64> = part.members.iter().zip(&first.members).map(acked).collect();
        let level = match &part.faith {
            Some(sleep) if whole && sleep.held(&packets, window) => sleep.level + 1,
            _ => 0,
        };
        let settled = working.iter().all(|&m| is_settled(t, part.members[m as usize].flow));
        Some(Steady { window, theta_ppm: rule.theta_ppm, holds, packets, level, settled, ports })
    }
}

