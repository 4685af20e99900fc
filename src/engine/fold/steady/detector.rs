//! When a partition is steady. It is looked at at fixed instants of its own time, so that neither turns nor the memo can be seen in what is decided.
//!
//! The criterion is Wormhole's (NSDI '26, Eq. 6): over a window of samples no queue pair's metric moves by more than a share theta of its mean. Under contention that alone
//! errs by several percent (rates wander for milliseconds within theta); so what the two halves of the window differ by, and what queues grow by, limits how far ahead it holds.

use std::collections::VecDeque;

use crate::columns::{NEVER, Tables, cc, metric, mode, qp};
use crate::engine::fold::memo::table::PartitionPiece;
use crate::engine::fold::rows::cc_state;
use crate::engine::fold::rows::message_stream::MessageStream;
use crate::engine::fold::run::partition::{Partition, is_idle};
use crate::engine::fold::steady::skip_plan::{FRACTION, SkipPlan};

/// How far the mean rate of what is skipped may lie from that of the window if it goes on drifting as it does, in millionths (our choice: a tenth of theta).
const DRIFT_PPM: u64 = 5_000;
/// How far HPCC's rates in the halves of the window may lie apart, in millionths (our choice).
const RATE_DRIFT_PPM: u64 = 20_000;
/// How much the queues of a partition may have grown by the end if they go on growing as they do, in packets (our choice).
const QUEUE_DRIFT: u64 = 8;

/// The first nap is as long as its window, the next, if rates were the same after it, this many times as long, and so on (our choice).
const SKIP_GROWTH: u64 = 4;

/// How a partition is watched.
#[derive(Clone, Copy, Debug)]
pub struct DetectorRule {
    pub theta_ppm: u64,
    pub samples: usize,
    /// Samples that are enough where no congestion control is at work.
    pub few: usize,
    pub interval: u64,
    /// It is not to sleep.
    pub never_skips: bool,
}

/// What of a partition decides its rule, as far as it was counted.
#[derive(Clone)]
pub(in crate::engine::fold) struct ContentionTraits {
    /// How many members were.
    pub members: usize,
    /// How many queue pairs share each NIC and port, by local numbers; and who sent through the port last.
    pub nics: Vec<u64>,
    pub ports: Vec<(u64, u32)>,
    /// The most that share a transmitter; whether several senders meet at one.
    pub flows: u64,
    pub contended: bool,
    /// How many queue pairs there are, and packet-hops of a packet of each and its answer.
    pub senders: u64,
    pub hops: u64,
    /// The least that a queue pair's path holds, packets; the longest round trip and packet, ps.
    pub bdp: u64,
    pub rtt: u64,
    pub packet: u64,
}

impl Default for ContentionTraits {
    fn default() -> ContentionTraits {
        ContentionTraits {
            members: 0,
            nics: Vec::new(),
            ports: Vec::new(),
            flows: 0,
            contended: false,
            senders: 0,
            hops: 0,
            bdp: u64::MAX,
            rtt: 0,
            packet: 0,
        }
    }
}

impl DetectorRule {
    /// How many samples a window has; of a partition where no congestion control is at work, if it is `settled`.
    pub fn window(&self, settled: bool) -> usize {
        if settled { self.few } else { self.samples }
    }
}

/// What was seen of a partition since something happened to it that may have changed its rates.
#[derive(Clone, Default)]
pub struct Detector {
    pub from: u64,
    pub(in crate::engine::fold) rule: Option<DetectorRule>,
    pub(in crate::engine::fold) traits: Option<ContentionTraits>,
    pub(in crate::engine::fold) history: VecDeque<DetectorSample>,
    /// Samples taken since `from`.
    taken: u64,
    /// How many queue pairs had something to do at the last one.
    working: usize,
}

/// One look.
#[derive(Clone)]
pub(in crate::engine::fold) struct DetectorSample {
    /// Of each queue pair: bytes acknowledged in all, and the metric.
    pub(in crate::engine::fold) members: Vec<(u64, u64)>,
    /// Of each, where congestion control acts once a round trip; else nothing.
    acts: Vec<CcActions>,
    /// Bytes queued in all ports.
    queued: u64,
    /// Of each port, so far: integral of its queue, marks.
    pub(in crate::engine::fold) ports: Vec<(u64, u64)>,
}

/// A queue pair whose congestion control acts once a round trip.
#[derive(Clone, Copy, Default)]
pub(in crate::engine::fold) struct CcActions {
    /// Under HPCC, the rate that it has come to, bit/s; else 0.
    rate: u64,
    /// The byte with whose acknowledgement it acts next; what is acknowledged, what was sent.
    next: u64,
    una: u64,
    sent: u64,
}

/// A partition is steady.
#[derive(Clone)]
pub struct SteadyRates {
    /// The window in which that was seen, ps.
    pub window: u64,
    /// For how long it may be taken to stay so, ps; `NEVER` where nothing drifts.
    pub holds: u64,
    /// How many packets of each queue pair were acknowledged in it, and how many bytes on the wire these were.
    pub packets: Vec<u64>,
    pub work: Vec<u64>,
    /// As [`Watch::turn`] has it.
    pub turns: Vec<u64>,
    pub theta_ppm: u64,
    /// How many times in a row it had slept and had found its rates unchanged.
    pub level: u32,
    /// No congestion control is at work: rates are the lines' and stay so.
    pub settled: bool,
    /// What each port's integral and marks gained in it.
    pub ports: Vec<(u64, u64)>,
}

impl SteadyRates {
    /// For how long this may be slept through, ps.
    pub fn lasts(&self) -> u64 {
        let trusted =
            if self.settled { NEVER } else { self.window.saturating_mul(SKIP_GROWTH.saturating_pow(self.level)) };
        self.holds.min(trusted)
    }

    /// The same for `piece` of the partition.
    pub fn of(&self, piece: &PartitionPiece) -> SteadyRates {
        SteadyRates {
            packets: piece.members.iter().map(|&m| self.packets[m as usize]).collect(),
            work: piece.members.iter().map(|&m| self.work[m as usize]).collect(),
            turns: piece.members.iter().map(|&m| self.turns[m as usize]).collect(),
            ports: piece.ports.iter().map(|&p| self.ports[p as usize]).collect(),
            ..*self
        }
    }
}

impl Detector {
    pub fn new(from: u64) -> Detector {
        Detector { from, ..Detector::default() }
    }

    /// When the next look is due.
    pub fn next(&self) -> u64 {
        self.rule.map_or(NEVER, |r| self.from + (self.taken + 1) * r.interval)
    }

    /// Whether a whole window has been seen; of a partition where no congestion control is at work, if it is `settled`.
    pub fn is_full(&self, settled: bool) -> bool {
        self.rule.is_some_and(|r| !r.never_skips && self.history.len() > r.window(settled))
    }

    /// The look `back` samples before the last one.
    pub(in crate::engine::fold) fn ago(&self, back: usize) -> &DetectorSample {
        &self.history[self.history.len() - 1 - back]
    }

    /// Begins anew at `from`.
    pub fn reset(&mut self, from: u64) {
        self.from = self.from.max(from);
        self.history.clear();
        self.taken = 0;
        self.working = 0;
    }

    /// Looks at `part`. PRECONDITION: all before [`Watch::next`] has happened, nothing at or after.
    pub(in crate::engine::fold) fn take_sample(&mut self, t: &Tables, partition: &Partition) {
        let Some(rule) = self.rule else { return };
        self.taken += 1;
        if rule.never_skips {
            return;
        }
        // What others left to do goes at another rate than when those had something to do that are done.
        let working = partition.members.iter().filter(|m| m.routed && !is_idle(t, m.flow)).count();
        if working < std::mem::replace(&mut self.working, working) {
            self.history.clear();
        }
        let last = |m: usize| self.history.back().map(|s| s.members[m].0);
        let members = partition
            .members
            .iter()
            .enumerate()
            .map(|(m, x)| (t.flow_tx[x.flow as usize].snd_una, measure(t, x.flow, last(m))))
            .collect();
        let queued = partition.ports.iter().map(|&p| u64::from(t.ports[p as usize].q_bytes)).sum();
        let ports = partition.ports.iter().map(|&p| (t.ports[p as usize].q_area, t.ports[p as usize].marks)).collect();
        let hpcc = t.exps[0].cc == cc::HPCC;
        let act = |f: u32| {
            let tx = &t.flow_tx[f as usize];
            CcActions { rate: if hpcc { tx.rate } else { 0 }, next: tx.last_seq, una: tx.snd_una, sent: tx.snd_nxt }
        };
        let acts = if acts_in_turns(t) { partition.members.iter().map(|x| act(x.flow)).collect() } else { Vec::new() };
        self.history.push_back(DetectorSample { members, acts, queued, ports });
        if self.history.len() > rule.samples + 1 {
            self.history.pop_front();
        }
    }

    /// Whether queue pair `m` meets the criterion in the last `n` samples, and for how long, ps.
    pub(in crate::engine::fold) fn member_holds(&self, m: usize, t: &Tables, f: u32, n: usize) -> Option<u64> {
        let rule = self.rule?;
        let by_rate = (t.exps[0].modes >> mode::METRIC_SHIFT) & mode::METRIC_MASK == metric::RATE;
        let acked = |k: usize| self.ago(n - k).members[m].0;
        let value = |k: usize| if by_rate { acked(k) - acked(k - 1) } else { self.ago(n - k).members[m].1 };
        let (mut least, mut most, mut sum) = (u64::MAX, 0, 0);
        for k in 1..=n {
            let x = value(k);
            (least, most, sum) = (least.min(x), most.max(x), sum + x);
        }
        let payload = u64::from(t.exps[0].payload);
        // Queues of a packet or two are as steady as can be.
        let slack = if by_rate { 0 } else { 2 * payload };
        let spread = (most - least).saturating_sub(slack);
        let steady = u128::from(spread) * n as u128 * 1_000_000 < u128::from(rule.theta_ppm) * u128::from(sum)
            || (spread == 0 && !by_rate);
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
        if !self.rates_hold(m, n) {
            return None;
        }
        let (first, second) = (acked(half) - acked(0), acked(n) - acked(n - half));
        let drift = first.abs_diff(second).saturating_sub(2 * payload);
        Some(match drift {
            0 => NEVER,
            // K windows on, 2K halves, rates are off by 2K drifts, on average by K.
            _ => (u128::from(window) * u128::from(first) * u128::from(DRIFT_PPM) / (u128::from(drift) * 1_000_000))
                .min(u128::from(NEVER)) as u64,
        })
    }

    /// How many packets of `stream` queue pair `m` sent between two actions of its congestion control, on average over the last `n` samples, with [`FRACTION`] bits of
    /// fraction; 0: it did not act, or acts otherwise.
    pub(in crate::engine::fold) fn turn(&self, m: usize, stream: &MessageStream, n: usize) -> u64 {
        let at = |ago: usize| self.ago(ago).acts.get(m).copied().unwrap_or_default();
        let turns = (0..n).map(|ago| {
            let (now, before) = (at(ago), at(ago + 1));
            let packets = stream.packet(now.next).saturating_sub(stream.packet(before.next));
            let each = stream.packet(now.sent).saturating_sub(stream.packet(now.una)) + 1;
            (packets, (packets + each / 2) / each)
        });
        let (packets, times) = turns.fold((0, 0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
        (packets << FRACTION) / times.max(1)
    }

    /// Whether the rate of queue pair `m` is the same in both halves of the last `n` samples: while a queue drains, what is acknowledged looks steady at rates that are not.
    fn rates_hold(&self, m: usize, n: usize) -> bool {
        let half = n / 2;
        let sum = |ago: usize| {
            (ago..ago + half).map(|k| u128::from(self.ago(k).acts.get(m).map_or(0, |acts| acts.rate))).sum::<u128>()
        };
        let (last, first) = (sum(0), sum(n - half));
        last.abs_diff(first) * 1_000_000 <= last.max(first) * u128::from(RATE_DRIFT_PPM)
    }

    /// For how long the queues hold by the last `n` samples, ps. What grows or drains for sure, from one half to the other, does not hold at all: nap by nap it would be lost.
    pub(in crate::engine::fold) fn queues_hold(&self, payload: u64, n: usize) -> u64 {
        let Some(rule) = self.rule else { return 0 };
        let half = n / 2;
        let queued = |ago: usize| (ago..ago + half).map(move |k| self.ago(k).queued);
        let mean = |ago: usize| queued(ago).sum::<u64>() / half.max(1) as u64;
        let range = |ago: usize| queued(ago).max().unwrap_or(0) - queued(ago).min().unwrap_or(0);
        let apart = mean(0).abs_diff(mean(n - half));
        // What grows evenly moves by more between the halves than within one; what is random by much less.
        if apart > payload && 4 * apart > 3 * range(0).max(range(n - half)) {
            return 0;
        }
        let trend = apart.saturating_sub(2 * payload);
        let window = n as u64 * rule.interval;
        match trend {
            0 => NEVER,
            // The halves' middles lie half a window apart.
            _ => (u128::from(window) * u128::from(QUEUE_DRIFT * payload) / (2 * u128::from(trend)))
                .min(u128::from(NEVER)) as u64,
        }
    }
}

/// Whether congestion control acts once a round trip, with the acknowledgement of what was sent when it acted before, and looks at nothing but that acknowledgement then. (DCTCP
/// counts marks in between.)
fn acts_in_turns(t: &Tables) -> bool {
    matches!(t.exps[0].cc, cc::HPCC | cc::TIMELY)
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
    if t.exps[0].cc != cc::DCQCN || tx.flags & qp::STARTED == 0 || cc_state::is_recovered(t, f) {
        return false;
    }
    let line = t.nics[tx.nic as usize].rate;
    // A decrease that no congestion asks for changes nothing.
    let t_dec = if cc_state::is_quiet(t, f) { NEVER } else { tx.t_dec };
    tx.rate < line && [tx.t_inc, t_dec].iter().any(|&x| x != NEVER && x > end)
}

/// Whether queue pair `f` sends at line rate until it is told of congestion: it never was, or has recovered.
pub(in crate::engine::fold) fn is_settled(t: &Tables, f: u32) -> bool {
    let cc = t.exps[0].cc;
    cc == cc::NONE
        || (cc == cc::DCQCN && (t.flow_tx[f as usize].flags & qp::STARTED == 0 || cc_state::is_recovered(t, f)))
}

impl SkipPlan {
    /// Whether rates in a `window` after it, in which each queue pair sent `work`, are what they were in it but for some packets of `full` bytes.
    pub(in crate::engine::fold) fn held(&self, work: &[u64], window: u64, full: u64) -> bool {
        // Both in work times windows.
        let scale = |x: u64, w: u64| u128::from(x) * u128::from(w);
        let near = |was: u64, is: u64, packets: u64| {
            let (was, is) = (scale(was, window) >> FRACTION, scale(is, self.window));
            was.abs_diff(is) * 1_000_000
                <= was * u128::from(DRIFT_PPM) + scale(packets * full, window.max(self.window)) * 1_000_000
        };
        let was = self.rates.iter().map(|p| p.work);
        // A queue pair's packets in a window are off by one at either end, those of all by less.
        let all = near(was.clone().sum(), work.iter().sum(), (work.len() as u64).isqrt());
        all && self.rates.len() == work.len() && was.zip(work).all(|(was, &is)| near(was, is, 2))
    }
}
