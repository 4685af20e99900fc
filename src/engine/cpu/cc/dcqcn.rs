//! DCQCN as the NICs of the HPCC authors' ns-3 run it (`docs/explanation/model-semantics.md`, "DCQCN"; SIGCOMM '15 section 5). Its periodic timers are
//! evaluated lazily: only sends and acknowledgements can see them.
//! Twin: `shaders/cc/dcqcn.wgsl`.

use crate::cpu::key::{CC_TIMER, EventKey, NO_EVENT, before, periodic};
use crate::cpu::math::{ONE_Q32, TWO_Q32, decay_q32, mul_shr, sat};
use crate::cpu::transport::rate::set_rate;
use hyperfold_columns::{FlowIdx, FlowTx, NEVER, Tables, mode, qp};

/// Delay of the decrease timer's first expiry in ps: one nanosecond, so that it never coincides with alpha's timer.
pub(crate) const FIRST_DECREASE_LAG: u64 = 1000;

/// Runs all timers of queue pair `f` that expire before `event`.
pub fn advance(t: &mut Tables, f: FlowIdx, event: &EventKey) {
    if t.flow_tx[f].flags & qp::STARTED == 0 {
        return;
    }
    loop {
        let tx = &t.flow_tx[f];
        let e = &t.exps[0];
        // At the same instant, the timer with the longer period comes first: it was scheduled earlier.
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
        if due > event.t {
            return;
        }
        if due == event.t {
            let p = sat(period);
            if !before(&EventKey { t: due, d: periodic(p, p, 0), kind: CC_TIMER, entity: f.0 }, event) {
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

/// Runs all timers of queue pair `f` that expire before `now` (ps), with the same result as [`advance`]. Timers that change nothing are skipped in
/// one step.
pub fn advance_until(t: &mut Tables, f: FlowIdx, now: u64) {
    let tx = t.flow_tx[f];
    let Some(last) = now.checked_sub(1).filter(|_| tx.flags & qp::STARTED != 0) else { return };
    if tx.flags & qp::D_SEEN != 0 {
        advance(t, f, &EventKey { t: last.min(tx.t_dec), ..NO_EVENT });
    }
    if t.flow_tx[f].flags & qp::D_SEEN != 0 {
        return;
    }
    // No decrease is due, so the timers do not influence each other.
    let (p_alpha, p_dec, p_inc) = (t.exps[0].p_alpha, t.exps[0].p_dec, t.exps[0].p_inc);
    let line = t.nics[tx.nic].rate;
    let times = |first_due: u64, period: u64| if first_due < now { (now - first_due).div_ceil(period) } else { 0 };
    while t.flow_tx[f].t_alpha < now && (t.flow_tx[f].alpha > 0 || t.flow_tx[f].flags & qp::A_SEEN != 0) {
        decay_alpha(t, f);
    }
    while t.flow_tx[f].t_inc < now && !is_recovered(&t.flow_tx[f], line) {
        increase(t, f);
    }
    let tx = &mut t.flow_tx[f];
    tx.t_alpha += times(tx.t_alpha, p_alpha) * p_alpha;
    tx.t_dec += times(tx.t_dec, p_dec) * p_dec;
    let n = times(tx.t_inc, p_inc);
    tx.stage = tx.stage.saturating_add(n.min(u64::from(u32::MAX)) as u32);
    tx.t_inc += n * p_inc;
}

/// Whether the increase timer of a queue pair changes nothing any more until the next congestion notification. `line`: the line rate in bps.
pub fn is_recovered(tx: &FlowTx, line: u64) -> bool {
    tx.flags & (qp::STARTED | qp::D_SEEN) == qp::STARTED && tx.target == line && tx.rate / 2 + tx.target / 2 == tx.rate
}

/// Handles an acknowledgement. `cnp`: it carries a congestion notification.
pub fn on_ack(t: &mut Tables, f: FlowIdx, cnp: bool, event: &EventKey) {
    if !cnp {
        return;
    }
    advance(t, f, event);
    let e = &t.exps[0];
    let (p_alpha, p_dec) = (e.p_alpha, e.p_dec);
    let tx = &mut t.flow_tx[f];
    tx.flags |= qp::A_SEEN | qp::D_SEEN;
    if tx.flags & qp::STARTED == 0 {
        tx.flags = (tx.flags | qp::STARTED) & !qp::A_SEEN;
        tx.alpha = ONE_Q32;
        tx.target = tx.rate;
        tx.t_alpha = event.t + p_alpha;
        tx.t_dec = event.t + p_dec + FIRST_DECREASE_LAG;
        tx.t_inc = NEVER;
    }
}

fn decay_alpha(t: &mut Tables, f: FlowIdx) {
    let (g, period) = (t.exps[0].g_q32, t.exps[0].p_alpha);
    let tx = &mut t.flow_tx[f];
    tx.alpha -= decay_q32(tx.alpha, g);
    if tx.flags & qp::A_SEEN != 0 {
        tx.alpha += g;
    }
    tx.flags &= !qp::A_SEEN;
    tx.t_alpha += period;
}

fn decrease(t: &mut Tables, f: FlowIdx) {
    let e = &t.exps[0];
    let (p_dec, p_inc, min_rate) = (e.p_dec, e.p_inc, e.min_rate);
    let clamp = e.modes & mode::DCQCN_CLAMP != 0;
    let line = t.nics[t.flow_tx[f].nic].rate;
    let tx = &mut t.flow_tx[f];
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

fn increase(t: &mut Tables, f: FlowIdx) {
    let e = &t.exps[0];
    let (p_inc, rai, rhai, fast) = (e.p_inc, e.rai, e.rhai, e.fast_recovery);
    let line = t.nics[t.flow_tx[f].nic].rate;
    let tx = &mut t.flow_tx[f];
    if tx.stage >= fast {
        let step = if tx.stage == fast { rai } else { rhai };
        tx.target = (tx.target + step).min(line);
    }
    tx.stage = tx.stage.saturating_add(1);
    tx.t_inc += p_inc;
    let rate = tx.rate / 2 + tx.target / 2;
    set_rate(t, f, rate, line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::math::hash32;
    use bytemuck::Zeroable;
    use hyperfold_columns::OwnedTables;
    use hyperfold_columns::{Exp, Nic};

    #[test]
    fn timers_run_at_once_as_one_by_one() {
        for seed in 0..400u32 {
            let draw = |k: u32, n: u32| hash32(seed, k, 0, 7) % n;
            let line = 100_000_000_000;
            let (p_alpha, p_dec, p_inc) = (1_000_000, 4_000_000, 300_000_000);
            let exp = Exp {
                p_alpha,
                p_dec,
                p_inc,
                fast_recovery: 1,
                g_q32: 1 << 24,
                min_rate: 100_000_000,
                rai: 5_000_000,
                rhai: 50_000_000,
                ..Exp::zeroed()
            };
            let rate = line / 2 + u64::from(draw(0, 1 << 31)) * 20;
            let flags = qp::CREATED
                | qp::STARTED
                | if draw(1, 2) > 0 { qp::A_SEEN } else { 0 }
                | if draw(2, 2) > 0 { qp::D_SEEN } else { 0 };
            let target = if draw(3, 2) > 0 { line } else { rate };
            let begin = 1_000_000_000;
            let (t_alpha, t_dec) = (begin + u64::from(draw(4, 1_000_000)), begin + u64::from(draw(5, 4_000_000)));
            let t_inc =
                if flags & qp::D_SEEN != 0 && draw(6, 2) > 0 { NEVER } else { begin + u64::from(draw(7, 300_000_000)) };
            let tx = FlowTx {
                rate,
                target,
                flags,
                alpha: u64::from(draw(8, u32::MAX)),
                stage: draw(9, 4),
                t_alpha,
                t_dec,
                t_inc,
                ..FlowTx::zeroed()
            };
            let nic = Nic { rate: line, ..Nic::zeroed() };
            let mut by_one =
                OwnedTables { exps: vec![exp], nics: vec![nic], flow_tx: vec![tx], ..OwnedTables::default() };
            let mut at_once = by_one.clone();
            let mut now = begin;
            for k in 0..6 {
                now += u64::from(draw(10 + k, 1 << (12 + 3 * k))) * 1000;
                advance(&mut by_one.view(), FlowIdx(0), &EventKey { t: now - 1, ..NO_EVENT });
                advance_until(&mut at_once.view(), FlowIdx(0), now);
                assert_eq!(by_one.flow_tx, at_once.flow_tx, "{seed} at {now}");
            }
        }
    }
}
