//! DCQCN as NICs of the reference run it (`ns3-model` section 8; SIGCOMM '15 section 5). Its periodic timers are evaluated lazily: only sends
//! and acknowledgements can see them.

use crate::columns::{NEVER, Tables, mode, qp};
use crate::engine::cpu::key::{CC_TIMER, Key, before};
use crate::engine::cpu::math::{decay_q32, mul_shr, sat};
use crate::engine::cpu::sender::set_rate;

const ONE_Q32: u64 = 1 << 32;
const TWO_Q32: u64 = 1 << 33;
/// The decrease timer's first expiry is a nanosecond late, so that it never meets alpha's.
pub(crate) const FIRST_DECREASE_LAG: u64 = 1000;

/// Runs all timers of queue pair `f` that expire before the event `at`.
pub fn advance(t: &mut Tables, f: u32, at: &Key) {
    if t.flow_tx[f as usize].flags & qp::STARTED == 0 {
        return;
    }
    loop {
        let tx = &t.flow_tx[f as usize];
        let e = &t.exps[0];
        // The longer period first at one instant: it was scheduled earlier.
        let mut due = tx.t_inc;
        let mut period = e.p_inc;
        let mut which = 0;
        if tx.t_dec < due || (tx.t_dec == due && e.p_dec > period) {
            due = tx.t_dec;
            period = e.p_dec;
            which = 1;
        }
        if tx.t_alpha < due || (tx.t_alpha == due && e.p_alpha > period) {
            due = tx.t_alpha;
            period = e.p_alpha;
            which = 2;
        }
        if due > at.t {
            return;
        }
        if due == at.t {
            let p = sat(period);
            if !before(&Key { t: due, d: [p, p, 0, 0, 0, 0], kind: CC_TIMER, entity: f }, at) {
                return;
            }
        }
        if which == 0 {
            increase(t, f);
        } else if which == 1 {
            decrease(t, f);
        } else {
            decay_alpha(t, f);
        }
    }
}

/// An acknowledgement, with or without a notification.
pub fn on_ack(t: &mut Tables, f: u32, cnp: bool, at: &Key) {
    if !cnp {
        return;
    }
    advance(t, f, at);
    let e = &t.exps[0];
    let (p_alpha, p_dec) = (e.p_alpha, e.p_dec);
    let tx = &mut t.flow_tx[f as usize];
    tx.flags |= qp::A_SEEN | qp::D_SEEN;
    if tx.flags & qp::STARTED == 0 {
        tx.flags = (tx.flags | qp::STARTED) & !qp::A_SEEN;
        tx.alpha = ONE_Q32;
        tx.target = tx.rate;
        tx.t_alpha = at.t + p_alpha;
        tx.t_dec = at.t + p_dec + FIRST_DECREASE_LAG;
        tx.t_inc = NEVER;
    }
}

fn decay_alpha(t: &mut Tables, f: u32) {
    let (g, period) = (t.exps[0].g_q32, t.exps[0].p_alpha);
    let tx = &mut t.flow_tx[f as usize];
    tx.alpha -= decay_q32(tx.alpha, g);
    if tx.flags & qp::A_SEEN != 0 {
        tx.alpha += g;
    }
    tx.flags &= !qp::A_SEEN;
    tx.t_alpha += period;
}

fn decrease(t: &mut Tables, f: u32) {
    let e = &t.exps[0];
    let (p_dec, p_inc, min_rate) = (e.p_dec, e.p_inc, e.min_rate);
    let clamp = e.modes & mode::DCQCN_CLAMP != 0;
    let line = t.nics[t.flow_tx[f as usize].nic as usize].rate;
    let tx = &mut t.flow_tx[f as usize];
    let now = tx.t_dec;
    tx.t_dec += p_dec;
    if tx.flags & qp::D_SEEN == 0 {
        return;
    }
    if tx.stage != 0 || clamp {
        tx.target = tx.rate;
    }
    tx.stage = 0;
    tx.flags &= !qp::D_SEEN;
    tx.t_inc = now + p_inc;
    let rate = mul_shr(tx.rate, TWO_Q32 - tx.alpha, 33).max(min_rate);
    set_rate(t, f, rate, line);
}

fn increase(t: &mut Tables, f: u32) {
    let e = &t.exps[0];
    let (p_inc, rai, rhai, fast) = (e.p_inc, e.rai, e.rhai, e.fast_recovery);
    let line = t.nics[t.flow_tx[f as usize].nic as usize].rate;
    let tx = &mut t.flow_tx[f as usize];
    if tx.stage >= fast {
        let step = if tx.stage == fast { rai } else { rhai };
        tx.target = (tx.target + step).min(line);
    }
    tx.stage = tx.stage.saturating_add(1);
    tx.t_inc += p_inc;
    let rate = tx.rate / 2 + tx.target / 2;
    set_rate(t, f, rate, line);
}
