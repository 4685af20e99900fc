// DCQCN as NICs of the reference run it (twin: `src/engine/cpu/cc/dcqcn.rs`). Its periodic timers are evaluated lazily: only sends
// and acknowledgements can see them.

// Runs all timers of queue pair `f` that expire before `event`.
fn dcqcn_advance(f: u32, event: EventKey) {
    let tx = flow_base + f;
    if (flow_tx[tx].flags & QP_STARTED) == 0u {
        return;
    }
    loop {
        // The longer period first at one instant: it was scheduled earlier.
        var due = flow_tx[tx].t_inc;
        var period = exps[exp_row].p_inc;
        var which = 0u;
        let t_dec = flow_tx[tx].t_dec;
        let p_dec = exps[exp_row].p_dec;
        if t_dec < due || (t_dec == due && p_dec > period) {
            due = t_dec;
            period = p_dec;
            which = 1u;
        }
        let t_alpha = flow_tx[tx].t_alpha;
        let p_alpha = exps[exp_row].p_alpha;
        if t_alpha < due || (t_alpha == due && p_alpha > period) {
            due = t_alpha;
            period = p_alpha;
            which = 2u;
        }
        if due > event.t {
            return;
        }
        if due == event.t {
            let p = sat(period);
            if !before(EventKey(due, periodic(p, p, 0u), EVENT_CC_TIMER, f), event) {
                return;
            }
        }
        if which == 0u {
            dcqcn_increase(f);
        } else if which == 1u {
            dcqcn_decrease(f);
        } else {
            dcqcn_decay_alpha(f);
        }
    }
}

// An acknowledgement, with or without a notification.
fn dcqcn_on_ack(f: u32, cnp: bool, event: EventKey) {
    if !cnp {
        return;
    }
    dcqcn_advance(f, event);
    let tx = flow_base + f;
    let before_flags = flow_tx[tx].flags;
    flow_tx[tx].flags = before_flags | QP_A_SEEN | QP_D_SEEN;
    if (before_flags & QP_STARTED) == 0u {
        flow_tx[tx].flags = (before_flags | QP_D_SEEN | QP_STARTED) & ~QP_A_SEEN;
        flow_tx[tx].alpha = ONE_Q32;
        flow_tx[tx].target_ = flow_tx[tx].rate;
        flow_tx[tx].t_alpha = event.t + exps[exp_row].p_alpha;
        flow_tx[tx].t_dec = event.t + exps[exp_row].p_dec + DCQCN_FIRST_DECREASE_LAG;
        flow_tx[tx].t_inc = NEVER;
    }
}

fn dcqcn_decay_alpha(f: u32) {
    let tx = flow_base + f;
    let g = exps[exp_row].g_q32;
    var alpha = flow_tx[tx].alpha;
    alpha -= decay_q32(alpha, g);
    if (flow_tx[tx].flags & QP_A_SEEN) != 0u {
        alpha += g;
    }
    flow_tx[tx].alpha = alpha;
    flow_tx[tx].flags &= ~QP_A_SEEN;
    flow_tx[tx].t_alpha += exps[exp_row].p_alpha;
}

fn dcqcn_decrease(f: u32) {
    let tx = flow_base + f;
    let now = flow_tx[tx].t_dec;
    flow_tx[tx].t_dec = now + exps[exp_row].p_dec;
    if (flow_tx[tx].flags & QP_D_SEEN) == 0u {
        return;
    }
    if flow_tx[tx].stage != 0u || has_mode(MODE_DCQCN_CLAMP) {
        flow_tx[tx].target_ = flow_tx[tx].rate;
    }
    flow_tx[tx].stage = 0u;
    flow_tx[tx].flags &= ~QP_D_SEEN;
    flow_tx[tx].t_inc = now + exps[exp_row].p_inc;
    let rate = max(mul_shr(flow_tx[tx].rate, TWO_Q32 - flow_tx[tx].alpha, 33u), exps[exp_row].min_rate);
    set_rate(f, rate);
}

fn dcqcn_increase(f: u32) {
    let tx = flow_base + f;
    let line = nics[nic_base + flow_tx[tx].nic].rate;
    let stage = flow_tx[tx].stage;
    let fast = exps[exp_row].fast_recovery;
    if stage >= fast {
        let step_up = select(exps[exp_row].rhai, exps[exp_row].rai, stage == fast);
        flow_tx[tx].target_ = min(flow_tx[tx].target_ + step_up, line);
    }
    flow_tx[tx].stage = add_sat_u32(stage, 1u);
    flow_tx[tx].t_inc += exps[exp_row].p_inc;
    let rate = flow_tx[tx].rate / 2lu + flow_tx[tx].target_ / 2lu;
    set_rate(f, rate);
}
