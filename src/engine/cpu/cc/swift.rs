//! Swift (SIGCOMM '20) with a rate in place of its window (`docs/explanation/model-semantics.md`, "Swift"): additive increases below a target of the round
//! trip, one decrease a round trip above it. Twin: `shaders/cc/swift.wgsl`.

use crate::cpu::math::{ONE_Q32, isqrt, mul_div, mul_shr};
use crate::cpu::transport::rate::set_rate;
use hyperfold_columns::{Exp, FlowIdx, FlowTx, NEVER, NicIdx, Tables};

/// Base round trip of a queue pair, in ps.
fn base_rtt(tx: &FlowTx) -> u64 {
    u64::from(tx.base_rtt_ns) * 1000
}

/// Rate of one packet a base round trip, in bps.
fn unit_rate(e: &Exp, tx: &FlowTx) -> u64 {
    (u64::from(e.payload) * 8_000_000_000_000 / base_rtt(tx).max(1)).max(1)
}

/// Target of the round trip, in ps.
fn target_rtt(e: &Exp, tx: &FlowTx, unit: u64) -> u64 {
    let base = base_rtt(tx);
    let own = if e.swift_target == 0 { base + base / 4 } else { e.swift_target };
    own + u64::from(tx.path_len) * e.swift_hop + flow_scaling(e, tx.rate, unit)
}

/// What a small window adds to the target, in ps.
fn flow_scaling(e: &Exp, rate: u64, unit: u64) -> u64 {
    if e.swift_range == 0 {
        return 0;
    }
    let root = isqrt(mul_div(rate, ONE_Q32, unit)).max(1);
    let share = mul_div(e.swift_fs_alpha, 1 << 16, root);
    (share - share.min(e.swift_fs_floor)).min(e.swift_range)
}

/// Takes `cut` (q32) off the rate, unless it was cut less than a round trip ago.
fn decrease(t: &mut Tables, n: NicIdx, f: FlowIdx, cut: u64, rtt: u64, now: u64) {
    let (line, min_rate) = (t.nics[n].rate, t.exps[0].min_rate);
    let tx = &mut t.flow_tx[f];
    if tx.t_dec != NEVER && now < tx.t_dec {
        return;
    }
    tx.t_dec = now + rtt;
    let rate = mul_shr(tx.rate, ONE_Q32 - cut, 32).max(min_rate);
    set_rate(t, f, rate, line);
}

/// Handles an acknowledgement of `acked` new bytes whose round trip took `rtt` ps and ended at `now`. `loss`: the sender steps back for it.
pub fn on_ack(t: &mut Tables, n: NicIdx, f: FlowIdx, acked: u64, rtt: u64, loss: bool, now: u64) {
    let line = t.nics[n].rate;
    let e = &t.exps[0];
    let tx = &t.flow_tx[f];
    if loss {
        return decrease(t, n, f, e.swift_max_mdf_q32, rtt, now);
    }
    let unit = unit_rate(e, tx);
    let target = target_rtt(e, tx, unit);
    if rtt >= target {
        let over = mul_div(rtt - target, ONE_Q32, rtt);
        return decrease(t, n, f, mul_shr(e.swift_beta_q32, over, 32).min(e.swift_max_mdf_q32), rtt, now);
    }
    if acked > 0 {
        let mut step = mul_div(mul_shr(unit, e.swift_ai_q16, 16), acked, u64::from(e.payload));
        if tx.rate > unit {
            step = mul_div(step, unit, tx.rate);
        }
        let rate = tx.rate.saturating_add(step.max(1)).min(line);
        set_rate(t, f, rate, line);
    }
}
