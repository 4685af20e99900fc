// NSCC, the sender's congestion control of Ultra Ethernet (UEC specification 1.0), as htsim runs it: a window that follows marks and the queueing delay (twin:
// `src/engine/cpu/cc/nscc.rs`).

// The average of the queueing delay takes one part of this many from each sample.
const NSCC_AVERAGE_OVER: u64 = 80lu;
// Fraction bits of that average.
const NSCC_AVERAGE_BITS: u32 = 8u;
// Number of packets after which the window is adjusted.
const NSCC_ADJUST_PACKETS: u64 = 8lu;
// Quick adaptation acts if fewer bytes than this part of the largest window arrived in its period.
const NSCC_QUICK_PART: u64 = 8lu;
// Quick adaptation acts at this many times the target delay.
const NSCC_QUICK_TARGETS: u64 = 4lu;

// The way of a packet and of its answer: the time in ps, whether the packet was marked, whether the answer is a NACK, and whether it is one of a packet that
// was trimmed at the last hop.
struct RoundTrip {
    rtt: u64,
    marked: bool,
    is_nack: bool,
    last_hop: bool,
}

// What quick adaptation looks at: the queueing delay in ps, whether the packet was marked, whether it was trimmed.
struct NsccSample {
    delay: u64,
    marked: bool,
    loss: bool,
}

// Largest window, in bytes: one and a half bandwidth-delay products of the least round trip so far. `line` is the NIC's rate in bps.
fn largest_window(tx: u32, line: u64) -> u64 {
    let product = mul_div(flow_tx[tx].last_rtt, line, 8000000000000lu);
    return product + product / 2lu;
}

// Keeps the window between one packet and the largest.
fn nscc_clamp(tx: u32, line: u64) {
    flow_tx[tx].win = max(min(flow_tx[tx].win, largest_window(tx, line)), full_wire());
}

// Sets the state of queue pair `f` of NIC `n` as it is at first.
fn nscc_reset(n: u32, f: u32) {
    let tx = flow_base + f;
    flow_tx[tx].last_rtt = u64(flow_tx[tx].base_rtt_ns) * 1000lu;
    flow_tx[tx].flags &= ~(QP_RISING | QP_ARMED);
    // No path is kept to choose it again.
    flow_tx[tx].alpha = 0lu;
    flow_tx[tx].stage = 0u;
    flow_tx[tx].u = 0lu;
    flow_tx[tx].rc = 0lu;
    flow_tx[tx].diff = 0li;
    flow_tx[tx].target_ = 0lu;
    flow_tx[tx].high_seq = 0lu;
    flow_tx[tx].cnt = 0u;
    flow_tx[tx].batch = 0u;
    flow_tx[tx].t_alpha = 0lu;
    flow_tx[tx].t_inc = 0lu;
    flow_tx[tx].t_dec = NEVER;
    flow_tx[tx].win = NEVER;
    nscc_clamp(tx, nics[nic_base + n].rate);
}

// Adds a queueing delay, in ps, to the average.
fn average(tx: u32, delay: u64) {
    let before = flow_tx[tx].u;
    flow_tx[tx].u = before - before / NSCC_AVERAGE_OVER + (delay << NSCC_AVERAGE_BITS) / NSCC_AVERAGE_OVER;
}

// Quick adaptation: where little arrived, the window becomes what arrived. Returns whether it acted, so that nothing else should.
fn quick_adapt(tx: u32, line: u64, sample: NsccSample, now: u64) -> bool {
    if flow_tx[tx].target_ < flow_tx[tx].high_seq && sample.marked {
        flow_tx[tx].rc = 0lu;
        flow_tx[tx].cnt = 0u;
        return true;
    }
    let period_end = flow_tx[tx].t_inc;
    if now <= period_end {
        return false;
    }
    let target_ps = exps[exp_row].nscc_target;
    let urgent = sample.loss || (flow_tx[tx].flags & QP_ARMED) != 0u || sample.delay > NSCC_QUICK_TARGETS * target_ps;
    let achieved = u64(flow_tx[tx].batch);
    let fires = period_end > 0lu && urgent && achieved < largest_window(tx, line) / NSCC_QUICK_PART;
    if fires {
        flow_tx[tx].win = max(achieved, full_wire());
        flow_tx[tx].high_seq = in_flight(tx);
        flow_tx[tx].target_ = 0lu;
        flow_tx[tx].rc = 0lu;
        flow_tx[tx].flags &= ~QP_ARMED;
    }
    flow_tx[tx].batch = 0u;
    flow_tx[tx].t_inc = now + flow_tx[tx].last_rtt + target_ps;
    return fires;
}

// Increase for `bytes` that arrived without a mark, with a queueing delay in ps.
fn increase(tx: u32, bytes: u64, delay: u64) {
    let target_ps = exps[exp_row].nscc_target;
    if delay >= target_ps {
        flow_tx[tx].rc += exps[exp_row].nscc_far * bytes;
        return;
    }
    if delay < exps[exp_row].nscc_low {
        let count = flow_tx[tx].diff + i64(bytes);
        flow_tx[tx].diff = count;
        if (flow_tx[tx].flags & QP_RISING) != 0u || u64(count) > flow_tx[tx].win {
            flow_tx[tx].flags |= QP_RISING;
            flow_tx[tx].win += mul_shr(bytes, exps[exp_row].nscc_fast_q16, 16u);
            return;
        }
    } else {
        flow_tx[tx].diff = 0li;
        flow_tx[tx].flags &= ~QP_RISING;
    }
    flow_tx[tx].rc += mul_div(exps[exp_row].nscc_near * bytes, target_ps - delay, target_ps);
}

// Decrease at a mark with a queueing delay above the target, at most once a round trip.
fn nscc_decrease(tx: u32, now: u64) {
    flow_tx[tx].diff = 0li;
    flow_tx[tx].flags &= ~QP_RISING;
    let mean = flow_tx[tx].u >> NSCC_AVERAGE_BITS;
    let target_ps = exps[exp_row].nscc_target;
    let last_cut = flow_tx[tx].t_dec;
    if mean <= target_ps || (last_cut != NEVER && now - last_cut <= flow_tx[tx].last_rtt) {
        return;
    }
    flow_tx[tx].t_dec = now;
    let share = min(mul_div(mean - target_ps, exps[exp_row].nscc_md_q32, mean), ONE_Q32 / 2lu);
    flow_tx[tx].win = mul_shr(flow_tx[tx].win, ONE_Q32 - share, 32u);
}

// Applies the increase that has been collected, after enough bytes or time.
fn adjust(tx: u32, now: u64) {
    let waited = now - flow_tx[tx].t_alpha;
    let round_trip = exps[exp_row].nscc_rtt;
    if u64(flow_tx[tx].cnt) <= NSCC_ADJUST_PACKETS * full_wire() && waited <= round_trip {
        return;
    }
    var window = flow_tx[tx].win;
    window += flow_tx[tx].rc / window;
    flow_tx[tx].rc = 0lu;
    flow_tx[tx].cnt = 0u;
    if waited >= round_trip {
        window += exps[exp_row].nscc_eta;
        flow_tx[tx].t_alpha = now;
    }
    flow_tx[tx].win = window;
}

// An ACK of `bytes` that had not been acknowledged.
fn nscc_on_ack(tx: u32, line: u64, bytes: u64, trip: RoundTrip, now: u64) {
    let delay = trip.rtt - flow_tx[tx].last_rtt;
    let far = delay >= exps[exp_row].nscc_target;
    if !trip.marked && delay > exps[exp_row].nscc_target {
        average(tx, flow_tx[tx].last_rtt / 4lu);
    } else {
        average(tx, delay);
    }
    flow_tx[tx].target_ += bytes;
    flow_tx[tx].batch = add_sat_u32(flow_tx[tx].batch, u32(bytes & LOW_32));
    flow_tx[tx].cnt = add_sat_u32(flow_tx[tx].cnt, u32(bytes & LOW_32));
    if quick_adapt(tx, line, NsccSample(delay, trip.marked, false), now) {
        return;
    }
    if !trip.marked {
        increase(tx, bytes, delay);
    } else if far {
        nscc_decrease(tx, now);
    }
    nscc_clamp(tx, line);
    adjust(tx, now);
}

// A NACK that is news.
fn nscc_on_nack(tx: u32, line: u64, last_hop: bool, now: u64) {
    let mtu = full_wire();
    average(tx, exps[exp_row].nscc_rtt);
    flow_tx[tx].target_ += mtu;
    flow_tx[tx].flags |= QP_ARMED;
    let acted = quick_adapt(tx, line, NsccSample(0lu, true, true), now);
    // The receiver's credit limits what comes to the last hop.
    let left_to_receiver = last_hop && takes_credit();
    if !acted && !left_to_receiver {
        flow_tx[tx].win = sub_sat(flow_tx[tx].win, mtu);
    }
}

// An answer to a packet of queue pair `f` of NIC `n`, with its news. An old NACK does nothing.
fn nscc_on_answer(n: u32, f: u32, news: UecNews, trip: RoundTrip, now: u64) {
    if trip.is_nack && !news.nacked {
        return;
    }
    let line = nics[nic_base + n].rate;
    let tx = flow_base + f;
    flow_tx[tx].last_rtt = min(flow_tx[tx].last_rtt, trip.rtt);
    if trip.is_nack {
        nscc_on_nack(tx, line, trip.last_hop, now);
    } else {
        nscc_on_ack(tx, line, news.packets * full_wire(), trip, now);
    }
    nscc_clamp(tx, line);
}
