//! Looks at partitions that are simulated: when they are due, how a partition is watched, and whether it is steady by then.

use std::cmp::Reverse;

use crate::columns::{NEVER, NONE, Tables, cc, mode};
use crate::engine::fold::rows::message_stream::MessageStream;
use crate::engine::fold::run::partition::is_idle;
use crate::engine::fold::run::turns::Run;
use crate::engine::fold::steady::detector::{ContentionTraits, DetectorRule, SteadyRates, is_settled};
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

impl Run {
    pub(in crate::engine::fold) fn is_steadying(t: &Tables) -> bool {
        t.exps[0].modes & mode::STEADY != 0
    }

    /// Something happened to `p` at `at` that may change its rates.
    pub(in crate::engine::fold) fn reset_detector(&mut self, t: &Tables, p: u32, at: u64) {
        if !Run::is_steadying(t) {
            return;
        }
        self.partitions[p as usize].detector.reset(at);
        self.partitions[p as usize].ended_skip = None;
        self.schedule_sampling(t, p);
    }

    /// The next look at `p` is put down, if it is simulated.
    pub(in crate::engine::fold) fn schedule_sampling(&mut self, t: &Tables, p: u32) {
        if !Run::is_steadying(t) || self.partitions[p as usize].looked_up || !self.partitions[p as usize].recordable {
            return;
        }
        if self.partitions[p as usize].detector.rule.is_none() {
            self.partitions[p as usize].detector.rule = Some(self.rule(t, p));
        }
        let partition = &self.partitions[p as usize];
        self.samplings.push(Reverse((partition.detector.next(), partition.first)));
    }

    /// Other rows belong to `p` now.
    pub(in crate::engine::fold) fn forget_rule(&mut self, p: u32) {
        let detector = &mut self.partitions[p as usize].detector;
        (detector.rule, detector.traits) = (None, None);
    }

    /// Queue pair `f` joined `p`, perhaps with the rows of other partitions.
    pub(in crate::engine::fold) fn widen_rule(&mut self, p: u32, f: u32) {
        let m = self.member[f as usize] as usize;
        let detector = &mut self.partitions[p as usize].detector;
        detector.rule = None;
        // It stood there before, without a path.
        if detector.traits.as_ref().is_some_and(|traits| m < traits.members) {
            detector.traits = None;
        }
    }

    /// The first look at any simulated partition, and at which.
    pub(in crate::engine::fold) fn next_sampling(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((at, n))) = self.samplings.peek() {
            let p = self.nic_partition[n as usize];
            if p != NONE {
                let partition = &self.partitions[p as usize];
                if !partition.looked_up
                    && partition.recordable
                    && partition.first == n
                    && partition.detector.next() == at
                {
                    return Some((at, p));
                }
            }
            self.samplings.pop();
        }
        None
    }

    /// Looks at `p`, which is simulated again from where it stood, without consequences: they came at the time.
    pub(in crate::engine::fold) fn take_sample(&mut self, t: &Tables, p: u32) {
        let mut detector = std::mem::take(&mut self.partitions[p as usize].detector);
        detector.take_sample(t, &self.partitions[p as usize]);
        self.partitions[p as usize].detector = detector;
    }

    /// Chooses how `p` is watched, where that is not given: Wormhole's Appendix F, from capacity, round-trip time and the number of queue pairs that share a transmitter.
    fn rule(&mut self, t: &Tables, p: u32) -> DetectorRule {
        let mut traits = self.partitions[p as usize].detector.traits.take().unwrap_or_default();
        self.survey(t, p, &mut traits);
        let e = &t.exps[0];
        let (flows, rtt, packet, contended) =
            (traits.flows.max(1), traits.rtt.max(1), traits.packet.max(1), traits.contended);
        let (senders, hops) = (traits.senders, traits.hops);
        let bdp = traits.bdp.clamp(1, 1 << 40);
        self.partitions[p as usize].detector.traits = Some(traits);
        // theta >= sqrt(7 N / (16 C RTT)), in packets.
        let least_ppm = (1_000_000_000_000 * 7 * flows / (16 * bdp)).isqrt().clamp(THETA_PPM, MOST_THETA_PPM);
        let theta_ppm = if e.theta_ppm > 0 { u64::from(e.theta_ppm) } else { least_ppm };
        // HPCC's shares drift for so long that skips keep them from where they go: a ring 35 % late, docs/explanation/fidelity.md. Nor would skips gain much there.
        let never_skips = contended && e.cc == cc::HPCC && e.theta_ppm == 0;
        let interval = if e.interval_ns > 0 {
            u64::from(e.interval_ns) * PS_PER_NS
        } else {
            rtt.max(packet * flows * PACKETS_THETA * 1_000_000 / theta_ppm.max(1))
        };
        let interval = interval.max(packet);
        // A window covers sqrt(4 C RTT / (7 N)) round trips, and what DCQCN's timers do.
        let mut least = rtt * (4 * bdp / (7 * flows)).isqrt().max(1);
        if e.cc == cc::DCQCN && e.p_inc != NEVER {
            least = least.max(2 * e.p_inc.max(e.p_dec).min(PS_PER_S / 1000));
        }
        let chosen = LEAST_SAMPLES.max(least.div_ceil(interval)) * if contended { CONTENDED } else { 1 };
        // The first nap is as long as its window, and must be worth it (`Run::promises`) though rates be a little below the lines'.
        let needs = u128::from(2 * self.checkpoint_hops * 5) * u128::from(packet) * u128::from(flows);
        let worth =
            if senders > 1 { needs.div_ceil(4 * u128::from(hops.max(1)) * u128::from(interval)) as u64 } else { 0 };
        let samples = if e.samples > 0 { u64::from(e.samples) } else { chosen.max(worth) };
        let few = if e.samples > 0 { samples } else { LEAST_SAMPLES };
        DetectorRule { theta_ppm, samples: samples.max(1) as usize, few: few.max(1) as usize, interval, never_skips }
    }

    /// Adds the members of `p` that `traits` does not know yet.
    fn survey(&self, t: &Tables, p: u32, traits: &mut ContentionTraits) {
        let partition = &self.partitions[p as usize];
        traits.nics.resize(partition.nics.len(), 0);
        traits.ports.resize(partition.ports.len(), (0, NONE));
        for m in partition.members[traits.members..].iter().filter(|m| m.routed) {
            let tx = &t.flow_tx[m.flow as usize];
            let nic = &t.nics[tx.nic as usize];
            let sharing = &mut traits.nics[self.nic_local[tx.nic as usize] as usize];
            *sharing += 1;
            traits.flows = traits.flows.max(*sharing);
            for &q in &t.paths[tx.path_first as usize..(tx.path_first + tx.path_len) as usize] {
                let (sharing, from) = &mut traits.ports[self.port_local[q as usize] as usize];
                *sharing += 1;
                traits.flows = traits.flows.max(*sharing);
                traits.contended |= *from != NONE && *from != tx.nic;
                *from = tx.nic;
            }
            traits.senders += 1;
            traits.hops += hops_there_and_back(t, m.flow);
            let base = u64::from(tx.base_rtt_ns) * 1000;
            traits.rtt = traits.rtt.max(base);
            traits.packet = traits.packet.max(nic.tx_full);
            let bdp = u128::from(nic.rate) * u128::from(base)
                / (8 * u128::from(PS_PER_S) * u128::from(t.exps[0].payload.max(1)));
            traits.bdp = traits.bdp.min(bdp as u64);
        }
        traits.members = partition.members.len();
    }

    /// It is time for a look at `p`. Returns whether a whole window has been seen by it.
    pub(in crate::engine::fold) fn sample_partition(&mut self, t: &Tables, p: u32) -> bool {
        self.take_sample(t, p);
        let partition = &self.partitions[p as usize];
        let settled = || partition.members.iter().all(|m| !m.routed || is_idle(t, m.flow) || is_settled(t, m.flow));
        partition.detector.is_full(false) || (partition.detector.is_full(true) && settled())
    }

    /// Whether queue pair `m` of `p` has something to do.
    pub(in crate::engine::fold) fn works(&self, t: &Tables, p: u32, m: u32) -> bool {
        let m = &self.partitions[p as usize].members[m as usize];
        m.routed && !is_idle(t, m.flow)
    }

    /// Whether all of `working`, queue pairs of `p` by local numbers, is steady. PRECONDITION: a whole window has been seen.
    pub(in crate::engine::fold) fn steady(
        &self,
        t: &Tables,
        p: u32,
        working: &[u32],
        whole: bool,
    ) -> Option<SteadyRates> {
        let partition = &self.partitions[p as usize];
        let detector = &partition.detector;
        let rule = detector.rule?;
        let e = &t.exps[0];
        if working.is_empty() || e.ack_interval > 1 {
            return None;
        }
        let settled = working.iter().all(|&m| is_settled(t, partition.members[m as usize].flow));
        let samples = rule.window(settled);
        let window = samples as u64 * rule.interval;
        let mut holds = detector.queues_hold(u64::from(e.payload), samples);
        for &m in working {
            let f = partition.members[m as usize].flow;
            if t.flow_tx[f as usize].start != NEVER || is_idle(t, f) || repeats(t, f) {
                return None;
            }
            holds = holds.min(detector.member_holds(m as usize, t, f, samples)?);
        }
        let (first, last) = (detector.ago(samples), detector.history.back()?);
        let ports = first.ports.iter().zip(&last.ports).map(|(a, b)| (b.0 - a.0, b.1 - a.1)).collect();
        if holds < window {
            return None;
        }
        let n = partition.members.len();
        let (mut packets, mut work, mut turns) = (Vec::with_capacity(n), Vec::with_capacity(n), Vec::with_capacity(n));
        for (k, (m, &(before, _))) in partition.members.iter().zip(&first.members).enumerate() {
            let tx = &t.flow_tx[m.flow as usize];
            let posted: u64 = m.posted.iter().map(|&(i, _)| t.tasks[i as usize].bytes).sum();
            let stream = MessageStream::new(t, m, tx.size - posted);
            let (from, to) = (stream.packet(before), stream.packet(tx.snd_una));
            packets.push(to - from);
            work.push(stream.work(to) - stream.work(from));
            turns.push(detector.turn(k, &stream, samples));
        }
        let full = u64::from(e.payload) + u64::from(e.data_overhead);
        let level = match &partition.ended_skip {
            Some(plan) if whole && plan.held(&work, window, full) => plan.level + 1,
            _ => 0,
        };
        let steady =
            SteadyRates { window, theta_ppm: rule.theta_ppm, holds, packets, work, turns, level, settled, ports };
        if self.is_overloaded(t, p, &steady) {
            return None;
        }
        // A nap costs two states, and what it is off by may turn a contention another way.
        (self.promises(t, p, working, &steady) >= 2 * self.checkpoint_hops).then_some(steady)
    }

    /// Packet-hops that a nap of `working` queue pairs of `p` would skip if nothing further is posted and what was seen holds.
    fn promises(&self, t: &Tables, p: u32, working: &[u32], steady: &SteadyRates) -> u64 {
        let lasts = |&m: &u32| {
            let tx = &t.flow_tx[self.partitions[p as usize].members[m as usize].flow as usize];
            (u128::from(tx.size - tx.snd_una) * u128::from(steady.window) / u128::from(steady.work[m as usize].max(1)))
                as u64
        };
        let hops = |&m: &u32| {
            steady.packets[m as usize] * hops_there_and_back(t, self.partitions[p as usize].members[m as usize].flow)
        };
        // Of one alone nothing can part another way: what its naps come to together counts, else what the next one does.
        let trusted = if working.len() == 1 { steady.holds } else { steady.lasts() };
        let lasts = working.iter().map(lasts).min().unwrap_or(0).min(trusted);
        let hops: u64 = working.iter().map(hops).sum();
        (u128::from(hops) * u128::from(lasts) / u128::from(steady.window.max(1))) as u64
    }
}

/// Transmitters that a packet of queue pair `f` and its answer pass.
fn hops_there_and_back(t: &Tables, f: u32) -> u64 {
    u64::from(2 + t.flow_tx[f as usize].path_len + t.flow_rx[f as usize].path_len)
}

/// Whether what flies of queue pair `f` is not just what its receiver has yet to see: after a timeout it goes back, and sends again what may have arrived.
fn repeats(t: &Tables, f: u32) -> bool {
    let (tx, rx) = (&t.flow_tx[f as usize], &t.flow_rx[f as usize]);
    rx.expected > tx.snd_nxt || tx.sent_bytes - rx.arrived_bytes != tx.snd_nxt - rx.expected
}
