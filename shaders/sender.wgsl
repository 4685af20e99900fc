// The sending side of a queue pair: creation, acknowledgements, rates (twin: `src/engine/cpu/sender.rs`).

// 1.0 in q32 and q48, 2.0 in q32.
const ONE_Q32: u64 = 0x100000000lu;
const TWO_Q32: u64 = 0x200000000lu;
const ONE_Q48: u64 = 0x1000000000000lu;

// Queue pair `f` of NIC `n` comes into being: line rate, free to send.
fn create(n: u32, f: u32, now: u64) {
    let tx = flow_base + f;
    flow_tx[tx].next_avail = now;
    flow_tx[tx].rto_at = NEVER;
    flow_tx[tx].flags |= QP_CREATED;
    reset_cc(n, f);
}

// Congestion-control state as it is at first. DCTCP goes on counting its batch.
fn reset_cc(n: u32, f: u32) {
    let line = nics[nic_base + n].rate;
    let tx = flow_base + f;
    flow_tx[tx].flags &= ~(QP_STARTED | QP_A_SEEN | QP_D_SEEN | QP_CWR);
    flow_tx[tx].stage = 0u;
    flow_tx[tx].diff = 0li;
    if exps[exp_row].cc != CC_DCTCP {
        flow_tx[tx].last_seq = 0lu;
    }
    flow_tx[tx].target_ = line;
    flow_tx[tx].rc = line;
    flow_tx[tx].alpha = ONE_Q32;
    flow_tx[tx].u = ONE_Q48;
    flow_tx[tx].t_alpha = NEVER;
    flow_tx[tx].t_dec = NEVER;
    flow_tx[tx].t_inc = NEVER;
    flow_tx[tx].rate = line;
    // The window at line rate, at once: one event may reset several queue pairs. A share of 1 needs no arithmetic.
    if !has_mode(MODE_WINDOW) {
        flow_tx[tx].win = 0lu;
    } else if !has_mode(MODE_VAR_WINDOW) {
        flow_tx[tx].win = flow_tx[tx].window;
    } else {
        flow_tx[tx].win = max(flow_tx[tx].window, 1lu);
    }
}

// The queue pair whose rate has changed and whose window is still to follow, before anything looks at it. The twin does it at
// once; here it is where rates may have changed, so that its code is in the kernel twice and not ten times.
var<private> window_due: u32;

// Sets the rate. The window follows.
fn set_rate(f: u32, rate: u64) {
    flow_tx[flow_base + f].rate = rate;
    window_due = f;
}

// Sets the window that is due, of a queue pair of NIC `n`.
fn set_window(n: u32) {
    if window_due == NONE {
        return;
    }
    let tx = flow_base + window_due;
    window_due = NONE;
    if !has_mode(MODE_WINDOW) {
        flow_tx[tx].win = 0lu;
    } else if !has_mode(MODE_VAR_WINDOW) {
        flow_tx[tx].win = flow_tx[tx].window;
    } else {
        flow_tx[tx].win = max(mul_div(flow_tx[tx].window, flow_tx[tx].rate, nics[nic_base + n].rate), 1lu);
    }
}

// Sending goes on from what is not acknowledged.
fn step_back(tx: u32) {
    flow_tx[tx].snd_nxt = flow_tx[tx].snd_una;
    flow_tx[tx].msg_send = flow_tx[tx].msg_ack;
    flow_tx[tx].send_end = flow_tx[tx].ack_end;
}

// Gives record `p` back to the pool of NIC `n`.
fn free_packet(n: u32, p: u32) {
    let row = nic_base + n;
    packets[packet_base + p].next = nics[row].free_head;
    nics[row].free_head = p;
    nics[row].free_n += 1u;
}

// ACK or NACK `p` has come back to NIC `n`.
fn on_ack(n: u32, p: u32, at: EventKey) {
    let pk = packet_base + p;
    let f = packets[pk].flow;
    let seq = packets[pk].seq;
    let meta_word = packets[pk].meta_;
    let cnp = (meta_word & META_CNP) != 0u;
    if (flow_tx[flow_base + f].flags & QP_FINISHED) == 0u {
        let oldest = flow_tx[flow_base + f].msg_ack;
        advance_una(f, seq, packet_kind(meta_word) == KIND_NACK, at.t);
        var rtt = 0lu;
        if exps[exp_row].stamp_len > 0u {
            rtt = at.t - stamps[stamp_base + p];
        }
        if exps[exp_row].rtt_cap > 0u {
            sample_rtt(f, at.t, rtt);
        }
        switch exps[exp_row].cc {
            case CC_DCQCN: {
                dcqcn_on_ack(f, cnp, at);
            }
            case CC_HPCC: {
                hpcc_on_ack(n, f, p, at);
            }
            case CC_TIMELY: {
                timely_on_ack(n, f, seq, rtt);
            }
            case CC_DCTCP: {
                dctcp_on_ack(n, f, seq, cnp);
            }
            default: {
            }
        }
        acknowledged(oldest, flow_tx[flow_base + f].msg_ack);
    }
    var q = packets[pk].payload;
    while q != NONE {
        let next = packets[packet_base + q].next;
        free_packet(n, q);
        q = next;
    }
    free_packet(n, p);
}

// What the sequence number says: progress, a step back, the end.
fn advance_una(f: u32, seq: u64, nack: bool, now: u64) {
    let tx = flow_base + f;
    let progress = seq > flow_tx[tx].snd_una;
    if progress {
        flow_tx[tx].snd_una = seq;
        flow_tx[tx].retries = 0u;
        flow_tx[tx].stalls = 0u;
        var oldest = flow_tx[tx].msg_ack;
        while oldest != NONE {
            let ack_end = flow_tx[tx].ack_end;
            if seq < ack_end {
                break;
            }
            oldest = tasks[task_base + oldest].follow;
            flow_tx[tx].msg_ack = oldest;
            if oldest != NONE {
                flow_tx[tx].ack_end = ack_end + tasks[task_base + oldest].bytes;
            }
        }
    }
    let una = flow_tx[tx].snd_una;
    if flow_tx[tx].snd_nxt < una || nack {
        step_back(tx);
    }
    if nack && !progress {
        stall(f, now);
    }
    if una >= flow_tx[tx].snd_nxt {
        flow_tx[tx].rto_at = NEVER;
    } else if progress {
        flow_tx[tx].rto_at = now + exps[exp_row].rto;
    }
    if una >= flow_tx[tx].size {
        flow_tx[tx].flags |= QP_FINISHED;
        flow_tx[tx].rto_at = NEVER;
        if flow_tx[tx].start != NEVER {
            flow_tx[tx].finish = now;
            atomicSub(&shared_words[shared_base + SHARED_FLOWS_LEFT], 1u);
        }
    }
}

// A NACK that brought no progress: a pause of random length, so that flows whose losses keep step with each other's fall out of
// step; and in the end the flow gives up.
fn stall(f: u32, now: u64) {
    let tx = flow_base + f;
    let stalls = flow_tx[tx].stalls + 1u;
    flow_tx[tx].stalls = stalls;
    let longest = (u64(flow_tx[tx].base_rtt_ns) * 1000lu) << min(stalls, STALL_DOUBLINGS);
    let draw = hash32(flow_tx[tx].flow_id, stalls, u32(flow_tx[tx].snd_una & LOW_32), exps[exp_row].seed);
    flow_tx[tx].next_avail = max(flow_tx[tx].next_avail, now) + u64(draw) % longest;
    if stalls > STALLS_A_RETRY * (exps[exp_row].rto_retries + 1u) {
        set_flag(FLAG_GAVE_UP);
    }
}

// Keeps a round-trip time; when a flow's room is full, every second one goes and the stride doubles.
fn sample_rtt(f: u32, now: u64, rtt: u64) {
    let cap = exps[exp_row].rtt_cap;
    let first = rtt_base + f * cap;
    let tx = flow_base + f;
    let seen = flow_tx[tx].rtt_seen;
    flow_tx[tx].rtt_seen = seen + 1u;
    if seen % flow_tx[tx].rtt_stride != 0u {
        return;
    }
    if flow_tx[tx].rtt_n == cap {
        for (var k = 0u; k < cap / 2u; k++) {
            rtts[first + k] = rtts[first + 2u * k];
        }
        flow_tx[tx].rtt_n = cap / 2u;
        let stride = flow_tx[tx].rtt_stride * 2u;
        flow_tx[tx].rtt_stride = stride;
        if seen % stride != 0u {
            return;
        }
    }
    let n = flow_tx[tx].rtt_n;
    rtts[first + n] = RttSample(now, rtt);
    flow_tx[tx].rtt_n = n + 1u;
}
