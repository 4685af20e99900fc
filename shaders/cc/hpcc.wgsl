// HPCC (SIGCOMM '19, Algorithm 1) as the reference runs it (twin: `src/engine/cpu/cc/hpcc.rs`).

// An acknowledgement `p` with telemetry.
fn hpcc_on_ack(n: u32, f: u32, p: u32, event: EventKey) {
    let tx = flow_base + f;
    let seq = details[packet_base + p].seq;
    let hops = (packets[packet_base + p].meta_ >> META_INT_SHIFT) & META_INT_MASK;
    let old = int_base + f;
    let new_int = int_base + exps[exp_row].flow_len + p;
    if flow_tx[tx].last_seq == 0lu {
        let is_of_old_path = flow_tx[tx].high_seq != 0lu && seq <= flow_tx[tx].high_seq;
        if is_of_old_path {
            return;
        }
        flow_tx[tx].last_seq = flow_tx[tx].snd_nxt;
        hpcc_remember(old, new_int, hops);
        return;
    }
    let full = seq > flow_tx[tx].last_seq;
    if !full && !has_mode(MODE_FAST_REACT) {
        return;
    }
    var outcome = Reaction(flow_tx[tx].rate, flow_tx[tx].stage);
    if hops > 0u {
        outcome = hpcc_react(n, f, hops, old, new_int);
        hpcc_change_rate(n, f, outcome.rate, event);
    }
    hpcc_remember(old, new_int, hops);
    if full {
        flow_tx[tx].rc = outcome.rate;
        flow_tx[tx].stage = outcome.stage;
        flow_tx[tx].last_seq = flow_tx[tx].snd_nxt;
    }
}

// Stores the first `hops` hops. The rest of the packet's row still holds what other packets recorded there.
fn hpcc_remember(old: u32, new_int: u32, hops: u32) {
    for (var i = 0u; i < INT_HOPS; i++) {
        ints[old].hop[i] = select(0lu, ints[new_int].hop[i], i < hops);
    }
}

struct Reaction {
    rate: u64,
    stage: u32,
}

// Algorithm 1, lines 1-20: the most utilised hop, its moving average, the rate that follows; and the additive stage.
// `old` and `new_int` are rows of `ints`.
fn hpcc_react(n: u32, f: u32, hops: u32, old: u32, new_int: u32) -> Reaction {
    let tx = flow_base + f;
    let multi = u64(exps[exp_row].int_multi);
    let line = nics[nic_base + n].rate;
    let line_m = line / 1000000lu;
    var max_u = 0lu;
    var max_u_tau = 1lu;
    for (var i = 0u; i < hops; i++) {
        let is = ints[new_int].hop[i];
        let was = ints[old].hop[i];
        let rate_m = link_rate_mbps(u32(is >> INT_RATE_AT));
        let tau = max((is - was) & INT_TIME_MASK, 1lu);
        let db = (((is >> INT_TX_AT) - (was >> INT_TX_AT)) & INT_TX_MASK) * u64(INT_TX_UNIT) * multi;
        let q = min((is >> INT_Q_AT) & INT_Q_MASK, (was >> INT_Q_AT) & INT_Q_MASK) * u64(INT_Q_UNIT) * multi;
        let tx_part = mul_div(db * 8000lu, ONE_Q48, tau * rate_m);
        let q_part = mul_div(q * line_m, ONE_Q48, rate_m * flow_tx[tx].window);
        let u = add_sat(tx_part, q_part);
        if i == 0u || u > max_u {
            max_u = u;
            max_u_tau = tau;
        }
    }
    let period = u64(flow_tx[tx].base_rtt_ns);
    let tau = min(max_u_tau, period);
    let average = mul_div(flow_tx[tx].u, period - tau, period) + mul_div(max_u, tau, period);
    flow_tx[tx].u = average;
    var rate: u64;
    var stage: u32;
    if average >= exps[exp_row].eta_q48 || flow_tx[tx].stage >= exps[exp_row].mi_thresh {
        rate = add_sat(mul_div(flow_tx[tx].rc << 8u, exps[exp_row].eta_q40, average), exps[exp_row].rai);
        stage = 0u;
    } else {
        rate = flow_tx[tx].rc + exps[exp_row].rai;
        stage = flow_tx[tx].stage + 1u;
    }
    return Reaction(max(min(rate, line), exps[exp_row].min_rate), stage);
}

// Rate of a link by its index in the INT header, in Mb/s.
fn link_rate_mbps(idx: u32) -> u64 {
    if idx < 4u {
        return u64(exps[exp_row].rates_mbps_lo[idx]);
    }
    return u64(exps[exp_row].rates_mbps_hi[idx - 4u]);
}

// A new rate moves the next send of the queue pair, and the NIC's timer if that is now too late.
fn hpcc_change_rate(n: u32, f: u32, rate: u64, event: EventKey) {
    let tx = flow_base + f;
    let row = nic_base + n;
    if has_mode(MODE_RATE_BOUND) && rate != flow_tx[tx].rate {
        let clock = u64(exp_clock_ps);
        let gap = tx_time(flow_tx[tx].last_wire, rate, clock);
        let was = tx_time(flow_tx[tx].last_wire, flow_tx[tx].rate, clock);
        flow_tx[tx].next_avail += gap - was;
    }
    // Also where the rate stays: the timer may have been armed for another queue pair.
    let next_avail = flow_tx[tx].next_avail;
    if own.timer != NEVER && next_avail < own.timer {
        let timer = max(next_avail, event.t);
        own.timer = timer;
        nics[row].timer_d = lineage(timer - event.t, event.d);
    }
    set_rate(f, rate);
}
