//! NSCC, the congestion control of Ultra Ethernet, as docs/explanation/model-semantics.md says.

use hyperfold_network::transport::{Nscc, Transport};

use super::Sim;
use super::arith::{PS_PER_S, mul_div, mul_shr};
use super::cc::{CcState, News};
use super::port::{Kind, Packet};
use super::sender::Sender;
use super::uec::mtu;

#[derive(Clone, Debug)]
pub struct NsccState {
    constants: Nscc,
    mtu: u64,
    /// Rate of the NIC.
    rate: u64,
    cwnd: u64,
    /// Least round trip so far.
    base: u64,
    /// Average of the queueing delay, in 1/256 ps.
    avg: u64,
    /// Increase that has not been applied.
    pending: u64,
    adj_bytes: u64,
    adj_at: u64,
    achieved: u64,
    until: u64,
    seen: u64,
    ignore: u64,
    armed: bool,
    rising: bool,
    count: u64,
    dec_at: Option<u64>,
}

/// What quick adaptation looks at.
struct Quick {
    now: u64,
    q: u64,
    marked: bool,
    loss: bool,
    /// Bytes in flight.
    inflight: u64,
}

impl NsccState {
    pub fn new(t: &Transport, rate: u64, rtt_ps: u64) -> Self {
        let mut state = NsccState {
            constants: t.nscc,
            mtu: mtu(t),
            rate,
            cwnd: 0,
            base: rtt_ps / 1000 * 1000,
            avg: 0,
            pending: 0,
            adj_bytes: 0,
            adj_at: 0,
            achieved: 0,
            until: 0,
            seen: 0,
            ignore: 0,
            armed: false,
            rising: false,
            count: 0,
            dec_at: None,
        };
        state.cwnd = state.mtu.max(state.cmax());
        state
    }

    /// The window follows at the next answer.
    pub fn has_line_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn cmax(&self) -> u64 {
        let bdp = mul_div(self.base, self.rate, 8 * PS_PER_S as u64);
        bdp + bdp / 2
    }

    fn clamp(&mut self) {
        self.cwnd = self.cwnd.min(self.cmax()).max(self.mtu);
    }

    fn average(&mut self, x: u64) {
        self.avg = self.avg - self.avg / 80 + (x << 8) / 80;
    }

    fn ack(&mut self, n: u64, rtt: u64, quick: Quick) {
        let b = n * self.mtu;
        self.base = self.base.min(rtt);
        let q = rtt - self.base;
        let is_outlier = !quick.marked && q > self.constants.target_ps;
        self.average(if is_outlier { self.base / 4 } else { q });
        self.seen += b;
        self.achieved += b;
        self.adj_bytes += b;
        let (now, marked) = (quick.now, quick.marked);
        if !self.quick_adaptation(Quick { q, ..quick }) {
            self.adjust(b, q, marked, now);
            self.clamp();
            self.apply(now);
        }
        self.clamp();
    }

    /// Returns whether it acted.
    fn quick_adaptation(&mut self, quick: Quick) -> bool {
        if self.seen < self.ignore && quick.marked {
            self.pending = 0;
            self.adj_bytes = 0;
            return true;
        }
        if quick.now <= self.until {
            return false;
        }
        let target = self.constants.target_ps;
        let reason = self.armed || quick.loss || quick.q > 4 * target;
        let fires = self.until > 0 && reason && self.achieved < self.cmax() / 8;
        if fires {
            self.cwnd = self.achieved.max(self.mtu);
            self.ignore = quick.inflight;
            self.seen = 0;
            self.pending = 0;
            self.armed = false;
        }
        self.achieved = 0;
        self.until = quick.now + self.base + target;
        fires
    }

    /// The increase or decrease.
    fn adjust(&mut self, b: u64, q: u64, marked: bool, now: u64) {
        let Nscc { target_ps: target, low_ps: low, near_bytes, far_bytes, fast_q16, .. } = self.constants;
        if marked {
            if q >= target {
                (self.count, self.rising) = (0, false);
                self.decrease(now);
            }
            return;
        }
        if q >= target {
            self.pending += far_bytes * b;
            return;
        }
        if q < low {
            self.count += b;
            if self.rising || self.count > self.cwnd {
                self.rising = true;
                self.cwnd += mul_shr(b, fast_q16, 16);
                return;
            }
        } else {
            (self.count, self.rising) = (0, false);
        }
        self.pending += mul_div(near_bytes * b, target - q, target);
    }

    fn decrease(&mut self, now: u64) {
        let (a, target) = (self.avg >> 8, self.constants.target_ps);
        if a > target && self.dec_at.is_none_or(|dec_at| now - dec_at > self.base) {
            self.dec_at = Some(now);
            let part = mul_div(a - target, self.constants.md_q32, a).min(1 << 31);
            self.cwnd = mul_shr(self.cwnd, (1 << 32) - part, 32);
        }
    }

    /// Applies the increase that is pending, after some bytes or some time.
    fn apply(&mut self, now: u64) {
        let waited = now - self.adj_at;
        if self.adj_bytes <= 8 * self.mtu && waited <= self.constants.rtt_ps {
            return;
        }
        self.cwnd += self.pending / self.cwnd;
        self.pending = 0;
        self.adj_bytes = 0;
        if waited >= self.constants.rtt_ps {
            self.cwnd += self.constants.eta_bytes;
            self.adj_at = now;
        }
    }

    /// A NACK that is not old answers a packet of `rtt` ago. `keeps_window`: the receiver limits its own link already.
    fn nack(&mut self, rtt: u64, quick: Quick, keeps_window: bool) {
        self.base = self.base.min(rtt);
        self.average(self.constants.rtt_ps);
        self.seen += self.mtu;
        self.armed = true;
        if !self.quick_adaptation(quick) && !keeps_window {
            self.cwnd = self.cwnd.saturating_sub(self.mtu);
        }
        self.clamp();
    }

    /// A deadline came, at which `k` packets became lost.
    pub fn timed_out(&mut self, k: u64) {
        self.cwnd = self.cwnd.saturating_sub(k * self.mtu).max(self.mtu);
    }
}

impl Sim<'_> {
    pub(super) fn nscc_answer(&mut self, answer: &Packet, news: News) {
        let (now, payload) = (self.now, self.case.transport.payload as u64);
        let Sender { cc: CcState::Nscc(cc), uec: Some(books), snd_una, snd_nxt, .. } =
            &mut self.senders[answer.flow as usize]
        else {
            return;
        };
        let inflight = books.flight(*snd_una, *snd_nxt) * books.mtu;
        let rtt = now - answer.ts;
        // Quick adaptation takes a NACK for a mark and a loss.
        let loss = answer.kind == Kind::Nack;
        let quick = Quick { now, q: 0, marked: loss || answer.echo.marked, loss, inflight };
        match answer.kind {
            Kind::Nack => cc.nack(rtt, quick, answer.echo.last_hop && self.case.transport.credit.is_some()),
            _ => cc.ack(news.acked / payload, rtt, quick),
        }
    }
}
