//! The detector: samples of a partition at fixed instants of its own time, so that neither turns nor the memo influence its decisions.
//!
//! The criterion is Wormhole's (NSDI '26, Eq. 6): over a window of samples no queue pair's metric moves by more than a share theta of its mean.
//! Under contention, that alone has errors of several percent, because rates drift for milliseconds within theta. So the difference between the
//! halves of the window, and the growth of queues, limit how long it may hold.
//!
//! Layer: fold/steady.

use std::collections::VecDeque;

use crate::memo::outcome::PartitionPiece;
use crate::memo::skip_plan::{DRIFT_PPM, RoundTrips};
use crate::rows::advanced_rows::FRACTION;
use crate::rows::cc_state;
use crate::rows::message_stream::MessageStream;
use crate::rows::partition_rows::{PartitionRows, is_idle};
use hyperfold_columns::{FlowIdx, NEVER, NicIdx, Tables, cc, metric, mode, qp};

/// Maximum difference between HPCC's rates in the two halves of the window, in millionths (our choice).
const RATE_DRIFT_PPM: u64 = 20_000;

/// Maximum growth of the queues of a partition until the end of a skip if they go on growing, in packets (our choice).
const QUEUE_DRIFT: u64 = 8;

/// The first skip is as long as its window. Each following skip, if rates did not change, is this many times as long (our choice).
const SKIP_GROWTH: u64 = 4;

/// Rule by which a partition is sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetectorRule {
    pub theta_ppm: u64,
    pub samples: usize,
    /// Number of samples that suffice if congestion control is inactive.
    pub few: usize,
    pub interval: u64,
    /// Whether the partition is never skipped.
    pub never_skips: bool,
    /// If above 0, measured rates are carried on ([`crate::steady::rates`]). A queue pair that has nothing to send for at most this
    /// time, in ps, counts as intermittent.
    pub patience: u64,
}

/// Properties of a partition that decide its rule, as far as they have been counted.
#[derive(Clone)]
pub(crate) struct ContentionTraits {
    /// Number of members that were counted.
    pub members: usize,
    /// Number of queue pairs that share each NIC and each port, by local numbers; for a port also its last sender.
    pub nics: Vec<u64>,
    pub ports: Vec<(u64, NicIdx)>,
    /// Maximum number of queue pairs that share a transmitter; whether several senders meet at one.
    pub flows: u64,
    pub contended: bool,
    /// Number of queue pairs; sum over them of the packet-hops of one packet and its acknowledgement.
    pub senders: u64,
    pub hops: u64,
    /// Minimum capacity of a queue pair's path (bandwidth times RTT) in packets; maximum round trip and maximum packet time in ps.
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
    /// Number of samples in a window. `settled`: congestion control is inactive.
    pub(crate) fn window(&self, settled: bool) -> usize {
        if settled { self.few } else { self.samples }
    }
}

/// Samples of a partition since its rates may last have changed.
#[derive(Clone, Default)]
pub(crate) struct Detector {
    pub from: u64,
    pub rule: Option<DetectorRule>,
    pub traits: Option<ContentionTraits>,
    pub history: VecDeque<DetectorSample>,
    /// Number of samples since `from`.
    taken: u64,
    /// Number of queue pairs that had something to do at the last sample.
    working: usize,
}

/// One sample of a partition.
#[derive(Clone)]
pub(crate) struct DetectorSample {
    /// For each queue pair: total bytes acknowledged, and the metric.
    pub members: Vec<(u64, u64)>,
    /// State of each queue pair's congestion control if it acts once per round trip; otherwise empty.
    acts: Vec<CcActions>,
    /// If rates are carried on: for each queue pair, whether it has nothing to send.
    pub idle: Vec<bool>,
    /// Bytes queued in all ports.
    queued: u64,
    /// For each port, so far: the integral of its queue, and its marks.
    pub ports: Vec<(u64, u64)>,
    /// For each queue pair, so far: the sum of its round-trip times in ps, and their number. Empty where they are not added up.
    pub round_trips: Vec<(u64, u32)>,
}

/// State of a queue pair whose congestion control acts once per round trip.
#[derive(Clone, Copy, Default)]
pub(crate) struct CcActions {
    /// With HPCC the current rate, in bit/s; otherwise 0.
    rate: u64,
    /// The byte whose acknowledgement triggers the next action; then the bytes acknowledged and the bytes sent.
    next: u64,
    una: u64,
    sent: u64,
}

/// Rates of a steady partition.
#[derive(Clone)]
pub(crate) struct SteadyRates {
    /// Length of the window in which they were observed, in ps.
    pub window: u64,
    /// Time for which they are assumed to hold, in ps; `NEVER` if nothing drifts.
    pub holds: u64,
    /// For each queue pair, packets acknowledged in the window, and their bytes on the wire.
    pub packets: Vec<u64>,
    pub work: Vec<u64>,
    /// Values of [`Detector::turn`].
    pub turns: Vec<u64>,
    pub theta_ppm: u64,
    /// Number of consecutive skips that found the rates unchanged.
    pub level: u32,
    /// Whether congestion control is inactive: rates are the line rates and stay so.
    pub settled: bool,
    /// For each port, what its queue integral and its number of marks gained in the window.
    pub ports: Vec<(u64, u64)>,
    /// For each queue pair, the round trips of the window. Empty where they are not added up.
    pub round_trips: Vec<RoundTrips>,
    /// Time in ps for which an intermittent queue pair may have nothing to send, as in [`DetectorRule::patience`].
    pub patience: u64,
    /// If rates are carried on: bytes on the wire that each queue pair would send in a window if it always had something to send, with [`FRACTION`]
    /// bits of fraction.
    pub active: Vec<u64>,
    /// If rates are carried on: share of the sent bytes whose congestion control has not settled, in millionths.
    pub unsettled_ppm: u64,
    /// If a skip that carried rates on has just ended: by how much the sum of rates differs from that then, in millionths, and how long the skip was,
    /// in ps.
    pub drift: Option<(u64, u64)>,
}

impl SteadyRates {
    /// Time for which the partition may be skipped, in ps.
    pub(crate) fn lasts(&self) -> u64 {
        let trusted =
            if self.settled { NEVER } else { self.window.saturating_mul(SKIP_GROWTH.saturating_pow(self.level)) };
        self.holds.min(trusted)
    }

    /// These rates restricted to `piece` of the partition.
    pub(crate) fn of(&self, piece: &PartitionPiece) -> SteadyRates {
        SteadyRates {
            packets: piece.members.iter().map(|&m| self.packets[m as usize]).collect(),
            work: piece.members.iter().map(|&m| self.work[m as usize]).collect(),
            turns: piece.members.iter().map(|&m| self.turns[m as usize]).collect(),
            ports: piece.ports.iter().map(|&p| self.ports[p as usize]).collect(),
            round_trips: piece.members.iter().filter_map(|&m| self.round_trips.get(m as usize).copied()).collect(),
            active: piece.members.iter().filter_map(|&m| self.active.get(m as usize).copied()).collect(),
            ..*self
        }
    }
}

impl Detector {
    pub(crate) fn new(from: u64) -> Detector {
        Detector { from, ..Detector::default() }
    }

    /// Time at which the next sample is due, in ps.
    pub(crate) fn next(&self) -> u64 {
        self.rule.map_or(NEVER, |r| self.from + (self.taken + 1) * r.interval)
    }

    /// Number of samples since the last reset.
    pub(crate) fn taken(&self) -> usize {
        self.taken as usize
    }

    /// Time of the last sample, in ps.
    pub(crate) fn now(&self) -> u64 {
        self.rule.map_or(self.from, |r| self.from + self.taken * r.interval)
    }

    /// Whether a whole window has been sampled. `settled`: congestion control is inactive.
    pub(crate) fn is_full(&self, settled: bool) -> bool {
        self.rule.is_some_and(|r| !r.never_skips && self.history.len() > r.window(settled))
    }

    /// The sample `back` samples before the last one.
    pub(crate) fn ago(&self, back: usize) -> &DetectorSample {
        &self.history[self.history.len() - 1 - back]
    }

    /// Starts again at `from` (ps).
    pub(crate) fn reset(&mut self, from: u64) {
        self.from = self.from.max(from);
        self.history.clear();
        self.taken = 0;
        self.working = 0;
    }

    /// Takes a sample. PRECONDITION: everything before [`Detector::next`] has happened, and nothing at or after it.
    pub(crate) fn take_sample(&mut self, t: &Tables, rows: &PartitionRows) {
        let Some(rule) = self.rule else { return };
        self.taken += 1;
        if rule.never_skips {
            return;
        }
        // When a queue pair finishes, the others change their rates.
        let working = rows.members.iter().filter(|m| m.routed && !is_idle(t, m.flow)).count();
        if working < std::mem::replace(&mut self.working, working) && rule.patience == 0 {
            self.history.clear();
        }
        let last = |m: usize| self.history.back().map(|s| s.members[m].0);
        let members = rows
            .members
            .iter()
            .enumerate()
            .map(|(m, x)| (t.flow_tx[x.flow].snd_una, measure(t, x.flow, last(m))))
            .collect();
        let queued = rows.ports.iter().map(|&p| u64::from(t.ports[p].q_bytes)).sum();
        let ports = rows.ports.iter().map(|&p| (t.ports[p].q_area, t.ports[p].marks)).collect();
        let hpcc = t.exps[0].cc == cc::HPCC;
        let act = |f: FlowIdx| {
            let tx = &t.flow_tx[f];
            CcActions { rate: if hpcc { tx.rate } else { 0 }, next: tx.last_seq, una: tx.snd_una, sent: tx.snd_nxt }
        };
        let acts = if acts_in_turns(t) { rows.members.iter().map(|x| act(x.flow)).collect() } else { Vec::new() };
        let idle =
            if rule.patience > 0 { rows.members.iter().map(|x| is_idle(t, x.flow)).collect() } else { Vec::new() };
        let round_trip = |f: FlowIdx| (t.flow_tx[f].rtt_sum, t.flow_tx[f].rtt_seen);
        let adds_up = t.exps[0].sums_rtts > 0;
        let round_trips = if adds_up { rows.members.iter().map(|x| round_trip(x.flow)).collect() } else { Vec::new() };
        self.history.push_back(DetectorSample { members, acts, idle, queued, ports, round_trips });
        if self.history.len() > rule.samples + 1 {
            self.history.pop_front();
        }
    }

    /// Time in ps for which queue pair `m` is expected to meet the criterion further; `None` if it does not meet it in the last `n` samples.
    pub(crate) fn member_holds(&self, m: usize, t: &Tables, f: FlowIdx, n: usize) -> Option<u64> {
        let rule = self.rule?;
        let by_rate = (t.exps[0].modes >> mode::METRIC_SHIFT) & mode::METRIC_MASK == metric::RATE;
        let acked = |k: usize| self.ago(n - k).members[m].0;
        let value = |k: usize| if by_rate { acked(k) - acked(k - 1) } else { self.ago(n - k).members[m].1 };
        let (mut lowest, mut highest, mut sum) = (u64::MAX, 0, 0);
        for k in 1..=n {
            let x = value(k);
            (lowest, highest, sum) = (lowest.min(x), highest.max(x), sum + x);
        }
        let payload = u64::from(t.exps[0].payload);
        // Queues of a packet or two count as constant.
        let slack = if by_rate { 0 } else { 2 * payload };
        let spread = (highest - lowest).saturating_sub(slack);
        let steady = u128::from(spread) * n as u128 * 1_000_000 < u128::from(rule.theta_ppm) * u128::from(sum)
            || (spread == 0 && !by_rate);
        let moved = acked(n) - acked(0);
        if !steady || moved == 0 {
            return None;
        }
        let tx = &t.flow_tx[f];
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
            // After K windows, 2K halves, rates are off by 2K drifts, on average by K.
            _ => (u128::from(window) * u128::from(first) * u128::from(DRIFT_PPM) / (u128::from(drift) * 1_000_000))
                .min(u128::from(NEVER)) as u64,
        })
    }

    /// Mean number of packets of `stream` that queue pair `m` sent between two actions of its congestion control in the last `n` samples, with
    /// [`FRACTION`] bits of fraction. 0: it did not act, or does not act once per round trip.
    pub(crate) fn turn(&self, m: usize, stream: &MessageStream, n: usize) -> u64 {
        let acts_at = |ago: usize| self.ago(ago).acts.get(m).copied().unwrap_or_default();
        let turns = (0..n).map(|ago| {
            let (now, before) = (acts_at(ago), acts_at(ago + 1));
            let packets = stream.packet(now.next).saturating_sub(stream.packet(before.next));
            let each = stream.packet(now.sent).saturating_sub(stream.packet(now.una)) + 1;
            (packets, (packets + each / 2) / each)
        });
        let (packets, times) = turns.fold((0, 0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
        (packets << FRACTION) / times.max(1)
    }

    /// Whether the rate of queue pair `m` is the same in both halves of the last `n` samples. While a queue drains, acknowledgements look steady
    /// although rates are not.
    fn rates_hold(&self, m: usize, n: usize) -> bool {
        let half = n / 2;
        let sum = |ago: usize| {
            (ago..ago + half).map(|k| u128::from(self.ago(k).acts.get(m).map_or(0, |acts| acts.rate))).sum::<u128>()
        };
        let (last, first) = (sum(0), sum(n - half));
        last.abs_diff(first) * 1_000_000 <= last.max(first) * u128::from(RATE_DRIFT_PPM)
    }

    /// Time in ps for which the queues stay steady, judged by the last `n` samples. Clear growth or drain from one half to the other does not count
    /// as steady at all: each skip would lose some of it.
    pub(crate) fn queues_hold(&self, payload: u64, n: usize) -> u64 {
        let Some(rule) = self.rule else { return 0 };
        let half = n / 2;
        let queued = |ago: usize| (ago..ago + half).map(move |k| self.ago(k).queued);
        let mean = |ago: usize| queued(ago).sum::<u64>() / half.max(1) as u64;
        let range = |ago: usize| queued(ago).max().unwrap_or(0) - queued(ago).min().unwrap_or(0);
        let apart = mean(0).abs_diff(mean(n - half));
        // Even growth moves more between the halves than within one half; random changes move much less.
        if apart > payload && 4 * apart > 3 * range(0).max(range(n - half)) {
            return 0;
        }
        let trend = apart.saturating_sub(2 * payload);
        let window = n as u64 * rule.interval;
        match trend {
            0 => NEVER,
            // The middles of the halves lie half a window apart.
            _ => (u128::from(window) * u128::from(QUEUE_DRIFT * payload) / (2 * u128::from(trend)))
                .min(u128::from(NEVER)) as u64,
        }
    }
}

/// Whether congestion control acts once per round trip, on the acknowledgement of what was sent at its last action, and reads nothing else in
/// between. (DCTCP counts marks in between.)
fn acts_in_turns(t: &Tables) -> bool {
    matches!(t.exps[0].cc, cc::HPCC | cc::TIMELY)
}

/// The metric of queue pair `f`, unless that is the acknowledged bytes. `last`: the acknowledged bytes at the last sample.
fn measure(t: &Tables, f: FlowIdx, last: Option<u64>) -> u64 {
    let tx = &t.flow_tx[f];
    let flying = tx.snd_nxt - tx.snd_una;
    match (t.exps[0].modes >> mode::METRIC_SHIFT) & mode::METRIC_MASK {
        metric::WINDOW if tx.win > 0 => tx.win,
        metric::WINDOW => tx.rate,
        metric::INFLIGHT => flying,
        metric::QUEUE => {
            let path = tx.path_first as usize..(tx.path_first + tx.path_len) as usize;
            t.paths[path].iter().map(|&p| u64::from(t.ports[p].q_bytes)).sum()
        }
        // In sampling intervals, with 20 bits of fraction.
        metric::RTT => (flying << 20) / last.map_or(1, |last| tx.snd_una - last).max(1),
        _ => 0,
    }
}

/// Whether a congestion-control timer of queue pair `f` that would change its rate expires only after `end` (ps). Then the window cannot show its
/// effect.
fn timers_pend(t: &Tables, f: FlowIdx, end: u64) -> bool {
    let tx = &t.flow_tx[f];
    if t.exps[0].cc != cc::DCQCN || tx.flags & qp::STARTED == 0 || cc_state::is_recovered(t, f) {
        return false;
    }
    let line = t.nics[tx.nic].rate;
    // A decrease without congestion changes nothing.
    let t_dec = if cc_state::is_quiet(t, f) { NEVER } else { tx.t_dec };
    tx.rate < line && [tx.t_inc, t_dec].iter().any(|&x| x != NEVER && x > end)
}

/// Whether queue pair `f` sends at line rate until the next congestion notification: it never had one, or it has recovered.
pub(crate) fn is_settled(t: &Tables, f: FlowIdx) -> bool {
    let cc = t.exps[0].cc;
    cc == cc::NONE || (cc == cc::DCQCN && (t.flow_tx[f].flags & qp::STARTED == 0 || cc_state::is_recovered(t, f)))
}
