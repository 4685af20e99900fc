//! Congestion control at the sender: DCQCN, HPCC, TIMELY, DCTCP, Swift, none, and hooks for NSCC; fixed point as docs/explanation/model-semantics.md says.

use hyperfold_network::transport::{Cc, Transport};

use super::arith::{PS_PER_S, mul_ceil_q32, mul_div, mul_shr};
use super::nscc::NsccState;
use super::port::{Int, Packet};
use super::sender::Sender;
use super::{CcTimer, Event, Lineage, Sim};

const ONE_Q32: u64 = 1 << 32;
const ONE_Q48: u64 = 1 << 48;

#[derive(Clone, Debug)]
pub enum CcState {
    None,
    Dcqcn(Dcqcn),
    Hpcc(Hpcc),
    Timely(Timely),
    Dctcp(Dctcp),
    Swift(SwiftState),
    Nscc(NsccState),
}

#[derive(Clone, Debug, Default)]
pub struct Dcqcn {
    started: bool,
    alpha: u64,
    a_seen: bool,
    d_seen: bool,
    target: u64,
    stage: u32,
    /// Times that this started anew: timers of before are void.
    generation: u64,
    /// Increase timers armed so far; only the latest counts.
    increase_generation: u64,
}

#[derive(Clone, Debug)]
pub struct Hpcc {
    u_q48: u64,
    rc: u64,
    stage: u32,
    last_seq: u64,
    /// ACKs up to this byte say nothing of the paths that the flow has now.
    old_paths: u64,
    int: Int,
}

#[derive(Clone, Debug, Default)]
pub struct Timely {
    diff_q22: i128,
    last_seq: u64,
    last_rtt: u64,
    stage: u32,
}

#[derive(Clone, Debug)]
pub struct Dctcp {
    alpha: u64,
    cnt: u64,
    batch: u64,
    last_seq: u64,
    cwr: bool,
    high_seq: u64,
}

#[derive(Clone, Debug, Default)]
pub struct SwiftState {
    /// Before this there is no second decrease.
    t_dec: Option<u64>,
}

/// What an ACK or NACK told its sender, which has taken it in already.
#[derive(Clone, Copy, Debug)]
pub struct News {
    /// Bytes that it was the first to acknowledge.
    pub acked: u64,
    /// The sender stepped back on it; with packets in any order, it halved what may be outstanding.
    pub loss: bool,
}

impl CcState {
    pub fn new(t: &Transport, rate_max: u64, rtt_ps: u64) -> Self {
        match t.cc {
            Cc::None | Cc::Rccc => CcState::None,
            Cc::Dcqcn => CcState::Dcqcn(Dcqcn::default()),
            Cc::Hpcc => CcState::Hpcc(Hpcc {
                u_q48: ONE_Q48,
                rc: rate_max,
                stage: 0,
                last_seq: 0,
                old_paths: 0,
                int: Int::default(),
            }),
            Cc::Timely => CcState::Timely(Timely::default()),
            Cc::Dctcp => {
                CcState::Dctcp(Dctcp { alpha: ONE_Q32, cnt: 0, batch: 0, last_seq: 0, cwr: false, high_seq: 0 })
            }
            Cc::Swift => CcState::Swift(SwiftState::default()),
            Cc::Nscc => CcState::Nscc(NsccState::new(t, rate_max, rtt_ps)),
        }
    }

    /// A message that starts fresh: as at creation, but for DCTCP's batch in progress: its size, the marks in it so far, where it ends.
    pub fn renew(&mut self, t: &Transport, rate_max: u64, rtt_ps: u64) {
        let before = std::mem::replace(self, CcState::new(t, rate_max, rtt_ps));
        match (self, before) {
            (CcState::Dcqcn(new), CcState::Dcqcn(old)) => {
                new.generation = old.generation + 1;
                new.increase_generation = old.increase_generation + 1;
            }
            (CcState::Dctcp(new), CcState::Dctcp(old)) => {
                (new.batch, new.cnt, new.last_seq) = (old.batch, old.cnt, old.last_seq);
            }
            (CcState::Hpcc(new), CcState::Hpcc(old)) => new.old_paths = old.old_paths,
            _ => {}
        }
    }

    /// The NIC's rate has changed to `rate_max`; `followed` says what a rate of the queue pair becomes.
    pub fn follow(&mut self, rate_max: u64, followed: impl Fn(u64) -> u64) {
        match self {
            CcState::Dcqcn(cc) if cc.started => cc.target = followed(cc.target),
            CcState::Hpcc(cc) => cc.rc = followed(cc.rc),
            CcState::Nscc(cc) => cc.has_line_rate(rate_max),
            _ => {}
        }
    }

    /// The flow has other paths, of which ACKs beyond byte `snd_nxt` are the first to tell.
    pub fn change_paths(&mut self, snd_nxt: u64) {
        if let CcState::Hpcc(cc) = self {
            (cc.last_seq, cc.old_paths) = (0, snd_nxt);
        }
    }

    /// A message posted on an idle queue pair: telemetry and round trips start anew.
    pub fn resume(&mut self) {
        match self {
            CcState::Hpcc(cc) => cc.last_seq = 0,
            CcState::Timely(cc) => cc.last_seq = 0,
            CcState::None | CcState::Dcqcn(_) | CcState::Dctcp(_) | CcState::Swift(_) | CcState::Nscc(_) => {}
        }
    }

    /// The congestion window in bytes, under a control that has one.
    pub fn cwnd(&self) -> Option<u64> {
        if let CcState::Nscc(cc) = self { Some(cc.cwnd()) } else { None }
    }

    /// A deadline of Ultra Ethernet came, at which `k` packets became lost.
    pub fn timed_out(&mut self, k: u64) {
        if let CcState::Nscc(cc) = self {
            cc.timed_out(k);
        }
    }
}

impl Sim<'_> {
    pub(super) fn congestion_control(&mut self, ack: &Packet, news: News) {
        match self.senders[ack.flow as usize].cc {
            CcState::None => {}
            CcState::Dcqcn(_) => self.dcqcn_ack(ack),
            CcState::Hpcc(_) => self.hpcc_ack(ack),
            CcState::Timely(_) => self.timely_ack(ack),
            CcState::Dctcp(_) => self.dctcp_ack(ack),
            CcState::Swift(_) => self.swift_ack(ack, news),
            CcState::Nscc(_) => self.nscc_answer(ack, news),
        }
    }

    fn dcqcn_ack(&mut self, ack: &Packet) {
        let Sender { cc: CcState::Dcqcn(cc), rate, .. } = &mut self.senders[ack.flow as usize] else { return };
        if !ack.cnp {
            return;
        }
        cc.a_seen = true;
        cc.d_seen = true;
        if !cc.started {
            cc.started = true;
            cc.alpha = ONE_Q32;
            cc.a_seen = false;
            cc.target = *rate;
            let generation = cc.generation;
            let t = &self.case.transport;
            self.cc_timer(ack.flow, CcTimer::Alpha, t.dcqcn_alpha_ps, 0, generation);
            self.cc_timer(ack.flow, CcTimer::Decrease, t.dcqcn_decrease_ps, 1000, generation);
        }
    }

    /// Sets a timer of period `p`, `extra` later the first time.
    fn cc_timer(&mut self, flow: u32, timer: CcTimer, p: u64, extra: u64, generation: u64) {
        let d = u32::try_from(p).unwrap_or(u32::MAX);
        self.queue.push(Lineage::periodic(d), self.now + p + extra, Event::CcTimer(flow, timer, generation));
    }

    pub(super) fn dcqcn_timer(&mut self, flow: u32, timer: CcTimer, generation: u64) {
        let t = &self.case.transport;
        let Sender { cc: CcState::Dcqcn(cc), rate, rate_max, finish_ps, is_qp, .. } = &mut self.senders[flow as usize]
        else {
            return;
        };
        // A finished flow's rate matters to nobody; a queue pair may yet get messages.
        if finish_ps.is_some() && !*is_qp {
            return;
        }
        let current = if timer == CcTimer::Increase { cc.increase_generation } else { cc.generation };
        if generation != current {
            return;
        }
        match timer {
            CcTimer::Alpha => {
                cc.alpha -= mul_ceil_q32(cc.alpha, t.g_q32);
                if cc.a_seen {
                    cc.alpha += t.g_q32;
                }
                cc.a_seen = false;
                self.cc_timer(flow, timer, t.dcqcn_alpha_ps, 0, generation);
            }
            CcTimer::Decrease => {
                let seen = std::mem::take(&mut cc.d_seen);
                if seen {
                    if cc.stage != 0 || t.dcqcn_clamp {
                        cc.target = *rate;
                    }
                    *rate = mul_shr(*rate, 2 * ONE_Q32 - cc.alpha, 33).max(t.min_rate);
                    cc.stage = 0;
                    cc.increase_generation += 1;
                }
                let increase = cc.increase_generation;
                self.cc_timer(flow, timer, t.dcqcn_decrease_ps, 0, generation);
                if seen {
                    self.cc_timer(flow, CcTimer::Increase, t.dcqcn_increase_ps, 0, increase);
                }
            }
            CcTimer::Increase => {
                if cc.stage >= t.dcqcn_fast_recovery {
                    let step = if cc.stage == t.dcqcn_fast_recovery { t.rai } else { t.rhai };
                    cc.target = (cc.target + step).min(*rate_max);
                }
                *rate = *rate / 2 + cc.target / 2;
                cc.stage += 1;
                self.cc_timer(flow, timer, t.dcqcn_increase_ps, 0, generation);
            }
        }
    }

    fn hpcc_ack(&mut self, ack: &Packet) {
        let t = &self.case.transport;
        let sender = &mut self.senders[ack.flow as usize];
        let CcState::Hpcc(cc) = &mut sender.cc else { return };
        if cc.last_seq == 0 {
            if cc.old_paths == 0 || ack.seq > cc.old_paths {
                cc.int = ack.int;
                cc.last_seq = sender.snd_nxt;
            }
            return;
        }
        let full = ack.seq > cc.last_seq;
        if !full && !t.fast_react {
            return;
        }
        let before = std::mem::replace(&mut cc.int, ack.int);
        let mut changed = None;
        if ack.int.n > 0 {
            let rate_max_m = sender.rate_max / 1_000_000;
            let multi = t.int_multi as u64;
            let mut largest: Option<(u64, u64)> = None;
            for (new, old) in ack.int.hops.iter().zip(&before.hops).take(ack.int.n) {
                let b_m = new.rate_bps / 1_000_000;
                let tau = (new.time.wrapping_sub(old.time) % (1 << 24)).max(1);
                let db = (new.tx.wrapping_sub(old.tx) % (1 << 20)) * 128 * multi;
                let q = new.q.min(old.q) * 80 * multi;
                let u = mul_div(db * 8000, ONE_Q48, tau * b_m).saturating_add(mul_div(
                    q * rate_max_m,
                    ONE_Q48,
                    b_m * sender.base_window,
                ));
                if largest.is_none_or(|(best, _)| u > best) {
                    largest = Some((u, tau));
                }
            }
            let (u, tau) = largest.expect("there is a hop");
            let base = sender.rtt_ns;
            let tau = tau.min(base);
            cc.u_q48 = mul_div(cc.u_q48, base - tau, base).saturating_add(mul_div(u, tau, base));
            let over = cc.u_q48 >= t.eta_q48;
            let (rate, stage) = if over || cc.stage >= t.mi_thresh {
                (mul_div(cc.rc << 8, t.eta_q40, cc.u_q48).saturating_add(t.rai), 0)
            } else {
                (cc.rc + t.rai, cc.stage + 1)
            };
            let rate = rate.min(sender.rate_max).max(t.min_rate);
            changed = Some(rate);
            if full {
                cc.rc = rate;
                cc.stage = stage;
            }
        }
        if full {
            cc.last_seq = sender.snd_nxt;
        }
        if let Some(rate) = changed {
            self.change_rate(ack.flow, rate);
        }
    }

    /// The new rate also moves the gap that the last packet opened.
    pub(super) fn change_rate(&mut self, flow: u32, rate: u64) {
        let t = &self.case.transport;
        let sender = &mut self.senders[flow as usize];
        if t.rate_bound {
            let gap = |r: u64| super::arith::tx(sender.last_wire, r, t.clock_ps);
            sender.next_avail = sender.next_avail + gap(rate) - gap(sender.rate);
        }
        sender.rate = rate;
        let (nic, next_avail) = (sender.nic, sender.next_avail);
        self.arm_earlier(nic, next_avail);
    }

    fn timely_ack(&mut self, ack: &Packet) {
        let t = &self.case.transport;
        let now = self.now;
        let Sender { cc: CcState::Timely(cc), rate, rate_max, snd_nxt, .. } = &mut self.senders[ack.flow as usize]
        else {
            return;
        };
        if ack.seq <= cc.last_seq {
            return;
        }
        let rtt = now - ack.ts;
        if cc.last_seq == 0 {
            cc.last_seq = *snd_nxt;
            cc.last_rtt = rtt;
            return;
        }
        let (one, a) = (ONE_Q32 as i128, t.timely_alpha_q32 as i128);
        let step = (rtt as i128 - cc.last_rtt as i128) << 22;
        // Division, not shifts: both products are truncated towards zero.
        cc.diff_q22 = cc.diff_q22 * (one - a) / one + step * a / one;
        let factor = if rtt < t.timely_tlow_ps {
            None
        } else if rtt > t.timely_thigh_ps {
            let excess = ONE_Q32 - mul_div(t.timely_thigh_ps, ONE_Q32, rtt);
            Some(ONE_Q32 - mul_shr(t.timely_beta_q32, excess, 32))
        } else if cc.diff_q22 <= 0 {
            None
        } else {
            let gradient_q32 = mul_div(cc.diff_q22 as u64, 1 << 10, t.timely_min_rtt_ps);
            Some(ONE_Q32 - mul_shr(t.timely_beta_q32, gradient_q32, 32).min(ONE_Q32))
        };
        match factor {
            None => {
                *rate = (*rate + if cc.stage < 5 { t.rai } else { t.rhai }).min(*rate_max);
                cc.stage += 1;
            }
            Some(factor) => {
                *rate = mul_shr(*rate, factor, 32).max(t.min_rate);
                cc.stage = 0;
            }
        }
        cc.last_seq = cc.last_seq.max(*snd_nxt);
        cc.last_rtt = rtt;
    }

    fn dctcp_ack(&mut self, ack: &Packet) {
        let t = &self.case.transport;
        let Sender { cc: CcState::Dctcp(cc), rate, rate_max, snd_nxt, .. } = &mut self.senders[ack.flow as usize]
        else {
            return;
        };
        cc.cnt += u64::from(ack.cnp);
        let batch_end = ack.seq > cc.last_seq;
        if batch_end {
            if cc.last_seq == 0 {
                cc.batch = *snd_nxt / t.payload as u64 + 1;
            } else {
                let f = ((cc.cnt << 32) / cc.batch).min(ONE_Q32);
                cc.alpha = cc.alpha - mul_ceil_q32(cc.alpha, t.g_q32) + mul_shr(t.g_q32, f, 32);
                cc.cnt = 0;
                cc.batch = (*snd_nxt - ack.seq) / t.payload as u64 + 1;
            }
            cc.last_seq = *snd_nxt;
        }
        if cc.cwr && ack.seq > cc.high_seq {
            cc.cwr = false;
        }
        if ack.cnp && !cc.cwr {
            *rate = mul_shr(*rate, 2 * ONE_Q32 - cc.alpha, 33).max(t.min_rate);
            cc.cwr = true;
            cc.high_seq = *snd_nxt;
        }
        if !cc.cwr && batch_end {
            *rate = (*rate + t.rai).min(*rate_max);
        }
    }

    fn swift_ack(&mut self, ack: &Packet, news: News) {
        let t = &self.case.transport;
        let swift = &t.swift;
        let now = self.now;
        let Sender { cc: CcState::Swift(cc), rate, rate_max, rtt_ns, hops, .. } = &mut self.senders[ack.flow as usize]
        else {
            return;
        };
        let rtt = now - ack.ts;
        let may_decrease = cc.t_dec.is_none_or(|t_dec| now >= t_dec);
        if news.loss {
            if may_decrease {
                *rate = mul_shr(*rate, ONE_Q32 - swift.max_mdf_q32, 32).max(t.min_rate);
                cc.t_dec = Some(now + rtt);
            }
            return;
        }
        let payload = t.payload as u64;
        let base = (*rtt_ns).clamp(1, u32::MAX as u64) * 1000;
        // The rate of a window of one packet.
        let unit = mul_div(payload * 8, PS_PER_S as u64, base).max(1);
        let flow_scaling = if swift.range_ps == 0 {
            0
        } else {
            let cwnd_q32 = mul_div(*rate, ONE_Q32, unit);
            let root_q16 = cwnd_q32.isqrt().max(1);
            let x = mul_div(swift.fs_alpha_ps, 1 << 16, root_q16);
            x.saturating_sub(swift.fs_floor_ps).min(swift.range_ps)
        };
        let fixed = if swift.target_ps == 0 { base + base / 4 } else { swift.target_ps };
        let target = fixed + *hops * swift.hop_ps + flow_scaling;
        if rtt < target {
            if news.acked > 0 {
                let mut step = mul_div(mul_shr(unit, swift.ai_q16, 16), news.acked, payload);
                if *rate > unit {
                    step = mul_div(step, unit, *rate);
                }
                *rate = rate.saturating_add(step.max(1)).min(*rate_max);
            }
        } else if may_decrease {
            let excess_q32 = mul_div(rtt - target, ONE_Q32, rtt);
            let factor = ONE_Q32 - mul_shr(swift.beta_q32, excess_q32, 32).min(swift.max_mdf_q32);
            *rate = mul_shr(*rate, factor, 32).max(t.min_rate);
            cc.t_dec = Some(now + rtt);
        }
    }
}
