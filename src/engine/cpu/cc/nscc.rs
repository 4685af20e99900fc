//! NSCC, the sender's congestion control of Ultra Ethernet (UEC specification 1.0), as htsim runs it (`docs/explanation/model-semantics.md`, "NSCC"): a window
//! that follows marks and the queueing delay. Twin: `shaders/cc/nscc.wgsl`.

use crate::cpu::math::{ONE_Q32, mul_div, mul_shr};
use crate::cpu::transport::stream::{full_wire, takes_credit};
use crate::cpu::transport::uec::{self, UecNews};
use hyperfold_columns::{Exp, FlowIdx, FlowTx, NEVER, NicIdx, Tables, qp};

/// The average of the queueing delay takes one part of this many from each sample.
const AVERAGE_OVER: u64 = 80;
/// Fraction bits of that average.
const AVERAGE_BITS: u32 = 8;
/// Number of packets after which the window is adjusted.
const ADJUST_PACKETS: u64 = 8;
/// Quick adaptation acts if fewer bytes than this part of the largest window arrived in its period.
const QUICK_PART: u64 = 8;
/// Quick adaptation acts at this many times the target delay.
const QUICK_TARGETS: u64 = 4;

/// The way of a packet and of its answer.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// Time from the beginning of its transmission to its answer, in ps.
    pub rtt: u64,
    /// Whether the packet was marked.
    pub marked: bool,
    /// Whether the answer is a NACK.
    pub is_nack: bool,
    /// Whether it is one of a packet that was trimmed at the last hop.
    pub last_hop: bool,
}

/// What quick adaptation looks at.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Queueing delay, in ps.
    delay: u64,
    /// Whether the packet was marked.
    marked: bool,
    /// Whether it was trimmed.
    loss: bool,
}

/// Largest window, in bytes: one and a half bandwidth-delay products of the least round trip so far. `line` is the NIC's rate in bps.
fn largest_window(tx: &FlowTx, line: u64) -> u64 {
    let product = mul_div(tx.last_rtt, line, 8_000_000_000_000);
    product + product / 2
}

/// Keeps the window between one packet and the largest.
fn clamp(e: &Exp, tx: &mut FlowTx, line: u64) {
    tx.win = tx.win.min(largest_window(tx, line)).max(full_wire(e));
}

/// Sets the state of queue pair `f` of NIC `n` as it is at first.
pub fn reset(t: &mut Tables, n: NicIdx, f: FlowIdx) {
    let line = t.nics[n].rate;
    let tx = &mut t.flow_tx[f];
    tx.last_rtt = u64::from(tx.base_rtt_ns) * 1000;
    tx.flags &= !(qp::RISING | qp::ARMED);
    // No path is kept to choose it again.
    (tx.alpha, tx.stage) = (0, 0);
    (tx.u, tx.rc, tx.diff, tx.target, tx.high_seq) = (0, 0, 0, 0, 0);
    (tx.cnt, tx.batch, tx.t_alpha, tx.t_inc) = (0, 0, 0, 0);
    tx.t_dec = NEVER;
    tx.win = u64::MAX;
    clamp(&t.exps[0], tx, line);
}

/// Adds a queueing delay, in ps, to the average.
fn average(tx: &mut FlowTx, delay: u64) {
    tx.u = tx.u - tx.u / AVERAGE_OVER + (delay << AVERAGE_BITS) / AVERAGE_OVER;
}

/// Quick adaptation: where little arrived, the window becomes what arrived. Returns whether it acted, so that nothing else should.
fn quick_adapt(e: &Exp, tx: &mut FlowTx, line: u64, sample: Sample, now: u64) -> bool {
    if tx.target < tx.high_seq && sample.marked {
        (tx.rc, tx.cnt) = (0, 0);
        return true;
    }
    if now <= tx.t_inc {
        return false;
    }
    let urgent = sample.loss || tx.flags & qp::ARMED != 0 || sample.delay > QUICK_TARGETS * e.nscc_target;
    let fires = tx.t_inc > 0 && urgent && u64::from(tx.batch) < largest_window(tx, line) / QUICK_PART;
    if fires {
        tx.win = u64::from(tx.batch).max(full_wire(e));
        (tx.high_seq, tx.target, tx.rc) = (uec::in_flight(e, tx), 0, 0);
        tx.flags &= !qp::ARMED;
    }
    tx.batch = 0;
    tx.t_inc = now + tx.last_rtt + e.nscc_target;
    fires
}

/// Increase for `bytes` that arrived without a mark, with a queueing delay in ps.
fn increase(e: &Exp, tx: &mut FlowTx, bytes: u64, delay: u64) {
    if delay >= e.nscc_target {
        tx.rc += e.nscc_far * bytes;
        return;
    }
    if delay < e.nscc_low {
        tx.diff += bytes as i64;
        if tx.flags & qp::RISING != 0 || tx.diff as u64 > tx.win {
            tx.flags |= qp::RISING;
            tx.win += mul_shr(bytes, e.nscc_fast_q16, 16);
            return;
        }
    } else {
        tx.diff = 0;
        tx.flags &= !qp::RISING;
    }
    tx.rc += mul_div(e.nscc_near * bytes, e.nscc_target - delay, e.nscc_target);
}

/// Decrease at a mark with a queueing delay above the target, at most once a round trip.
fn decrease(e: &Exp, tx: &mut FlowTx, now: u64) {
    tx.diff = 0;
    tx.flags &= !qp::RISING;
    let mean = tx.u >> AVERAGE_BITS;
    if mean <= e.nscc_target || (tx.t_dec != NEVER && now - tx.t_dec <= tx.last_rtt) {
        return;
    }
    tx.t_dec = now;
    let cut = mul_div(mean - e.nscc_target, e.nscc_md_q32, mean).min(ONE_Q32 / 2);
    tx.win = mul_shr(tx.win, ONE_Q32 - cut, 32);
}

/// Applies the increase that has been collected, after enough bytes or time.
fn adjust(e: &Exp, tx: &mut FlowTx, now: u64) {
    let waited = now - tx.t_alpha;
    if u64::from(tx.cnt) <= ADJUST_PACKETS * full_wire(e) && waited <= e.nscc_rtt {
        return;
    }
    tx.win += tx.rc / tx.win;
    (tx.rc, tx.cnt) = (0, 0);
    if waited >= e.nscc_rtt {
        tx.win += e.nscc_eta;
        tx.t_alpha = now;
    }
}

/// Handles an ACK of `bytes` that had not been acknowledged.
fn on_ack(e: &Exp, tx: &mut FlowTx, line: u64, bytes: u64, trip: RoundTrip, now: u64) {
    let (delay, marked) = (trip.rtt - tx.last_rtt, trip.marked);
    average(tx, if !marked && delay > e.nscc_target { tx.last_rtt / 4 } else { delay });
    tx.target += bytes;
    tx.batch = tx.batch.saturating_add(bytes as u32);
    tx.cnt = tx.cnt.saturating_add(bytes as u32);
    if quick_adapt(e, tx, line, Sample { delay, marked, loss: false }, now) {
        return;
    }
    if !marked {
        increase(e, tx, bytes, delay);
    } else if delay >= e.nscc_target {
        decrease(e, tx, now);
    }
    clamp(e, tx, line);
    adjust(e, tx, now);
}

/// Handles a NACK that is news.
fn on_nack(e: &Exp, tx: &mut FlowTx, line: u64, last_hop: bool, now: u64) {
    let mtu = full_wire(e);
    average(tx, e.nscc_rtt);
    tx.target += mtu;
    tx.flags |= qp::ARMED;
    let acted = quick_adapt(e, tx, line, Sample { delay: 0, marked: true, loss: true }, now);
    // The receiver's credit limits what comes to the last hop.
    let left_to_receiver = last_hop && takes_credit(e);
    if !acted && !left_to_receiver {
        tx.win = tx.win.saturating_sub(mtu);
    }
}

/// Handles an answer to a packet of queue pair `f` of NIC `n`, with its news. An old NACK does nothing.
pub fn on_answer(t: &mut Tables, n: NicIdx, f: FlowIdx, news: UecNews, trip: RoundTrip, now: u64) {
    if trip.is_nack && !news.nacked {
        return;
    }
    let line = t.nics[n].rate;
    let e = &t.exps[0];
    let tx = &mut t.flow_tx[f];
    tx.last_rtt = tx.last_rtt.min(trip.rtt);
    if trip.is_nack {
        on_nack(e, tx, line, trip.last_hop, now);
    } else {
        on_ack(e, tx, line, news.packets * full_wire(e), trip, now);
    }
    clamp(e, tx, line);
}
