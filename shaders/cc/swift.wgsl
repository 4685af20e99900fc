// Swift (SIGCOMM '20) with a rate in place of its window (twin: `src/engine/cpu/cc/swift.rs`).

// Base round trip of queue pair `tx`, in ps.
fn base_rtt(tx: u32) -> u64 {
    return u64(flow_tx[tx].base_rtt_ns) * 1000lu;
}

// Rate of one packet a base round trip, in bps.
fn unit_rate(tx: u32) -> u64 {
    return max(u64(exps[exp_row].payload) * 8000000000000lu / max(base_rtt(tx), 1lu), 1lu);
}

// Target of the round trip, in ps.
fn target_rtt(tx: u32, unit: u64) -> u64 {
    let base = base_rtt(tx);
    var own_part = exps[exp_row].swift_target;
    if own_part == 0lu {
        own_part = base + base / 4lu;
    }
    return own_part + u64(flow_tx[tx].path_len) * exps[exp_row].swift_hop + flow_scaling(flow_tx[tx].rate, unit);
}

// What a small window adds to the target, in ps.
fn flow_scaling(rate: u64, unit: u64) -> u64 {
    let range = exps[exp_row].swift_range;
    if range == 0lu {
        return 0lu;
    }
    let root = max(isqrt(mul_div(rate, ONE_Q32, unit)), 1lu);
    let share = mul_div(exps[exp_row].swift_fs_alpha, 65536lu, root);
    return min(sub_sat(share, exps[exp_row].swift_fs_floor), range);
}

// Takes `cut` (q32) off the rate of queue pair `f`, unless it was cut less than a round trip ago.
fn decrease(f: u32, cut: u64, rtt: u64, now: u64) {
    let tx = flow_base + f;
    let t_dec = flow_tx[tx].t_dec;
    if t_dec != NEVER && now < t_dec {
        return;
    }
    flow_tx[tx].t_dec = now + rtt;
    set_rate(f, max(mul_shr(flow_tx[tx].rate, ONE_Q32 - cut, 32u), exps[exp_row].min_rate));
}

// An acknowledgement of `acked` new bytes that took `rtt` ps and ended at `now`. `loss`: the sender steps back for it.
fn swift_on_ack(n: u32, f: u32, acked: u64, rtt: u64, loss: bool, now: u64) {
    let tx = flow_base + f;
    if loss {
        decrease(f, exps[exp_row].swift_max_mdf_q32, rtt, now);
        return;
    }
    let unit = unit_rate(tx);
    let target_ps = target_rtt(tx, unit);
    if rtt >= target_ps {
        let over = mul_div(sub_sat(rtt, target_ps), ONE_Q32, rtt);
        decrease(f, min(mul_shr(exps[exp_row].swift_beta_q32, over, 32u), exps[exp_row].swift_max_mdf_q32), rtt, now);
        return;
    }
    if acked > 0lu {
        let rate = flow_tx[tx].rate;
        var step_up = mul_div(mul_shr(unit, exps[exp_row].swift_ai_q16, 16u), acked, u64(exps[exp_row].payload));
        if rate > unit {
            step_up = mul_div(step_up, unit, rate);
        }
        set_rate(f, min(add_sat(rate, max(step_up, 1lu)), nics[nic_base + n].rate));
    }
}
