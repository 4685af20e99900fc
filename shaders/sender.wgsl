// The sending side of a queue pair: what an acknowledgement brings (twin: `src/engine/cpu/transport/sender.rs`).

// Gives record `p` back to the pool of the NIC that is held.
fn free_packet(p: u32) {
    packets[packet_base + p].next = own.free_head;
    own.free_head = p;
    own.free_n += 1u;
}

// ACK or NACK `p` has come back to NIC `n`.
fn on_ack(n: u32, p: u32, event: EventKey) {
    let pk = packet_base + p;
    let f = packets[pk].flow;
    let meta_word = packets[pk].meta_;
    let cnp = (meta_word & META_CNP) != 0u;
    let nack = packet_kind(meta_word) == KIND_NACK;
    note_answer(p);
    if (flow_tx[flow_base + f].flags & QP_FINISHED) == 0u {
        let oldest = flow_tx[flow_base + f].msg_ack;
        let sent_at = details[pk].sent_at;
        let before = flow_tx[flow_base + f].snd_una;
        var seq = details[pk].seq;
        var news: News;
        var uec_news: UecNews;
        if is_uec() {
            uec_news = uec_on_answer(f, p);
            news = News(uec_news.packets * u64(exp_payload), false);
        } else if takes_any_order() {
            news = acknowledge(f, seq, sent_at, event.t);
            seq &= PSN_BYTE_MASK;
            details[pk].seq = seq;
        } else {
            let loss = nack && is_news(f, sent_at);
            news = News(advance_una(f, seq, loss, event.t), loss);
        }
        let tx = flow_base + f;
        if news.acked > 0lu && !news.loss {
            grow_loss_window(tx, sent_at, event.t);
        }
        let una = flow_tx[tx].snd_una;
        let nothing_outstanding = una >= flow_tx[tx].snd_nxt;
        if nothing_outstanding || una > before || (is_uec() && (news.acked > 0lu || uec_news.nacked)) {
            var rto_at: u64;
            if nothing_outstanding {
                rto_at = deadline(tx, event.t);
            } else if is_uec() {
                // What is missing was sent before the packet that is answered.
                rto_at = max(event.t, sent_at + exps[exp_row].rto);
            } else {
                rto_at = event.t + exps[exp_row].rto;
            }
            if rto_at < flow_tx[tx].rto_at {
                own.rto = min(own.rto, rto_at);
            }
            flow_tx[tx].rto_at = rto_at;
        }
        if una >= flow_tx[tx].size {
            finish(tx, event.t);
        }
        var rtt = 0lu;
        if exp_cc == CC_TIMELY || exp_cc == CC_SWIFT || is_uec() || exp_sums_rtts > 0u {
            rtt = event.t - details[pk].sent_at;
        }
        if exp_sums_rtts > 0u {
            note_rtt(f, event.t, rtt);
        }
        switch exp_cc {
            case CC_DCQCN: {
                dcqcn_on_ack(f, cnp, event);
            }
            case CC_HPCC: {
                hpcc_on_ack(n, f, p, event);
            }
            case CC_TIMELY: {
                timely_on_ack(n, f, seq, rtt);
            }
            case CC_DCTCP: {
                dctcp_on_ack(n, f, seq, cnp);
            }
            case CC_SWIFT: {
                swift_on_ack(n, f, news.acked, rtt, news.loss, event.t);
            }
            default: {
            }
        }
        if exp_cc == CC_NSCC {
            let last_hop = (meta_word & META_LAST_HOP) != 0u;
            nscc_on_answer(n, f, uec_news, RoundTrip(rtt, cnp, nack, last_hop), event.t);
        }
        acknowledged(oldest, flow_tx[flow_base + f].msg_ack);
    }
    var q = packets[pk].payload;
    while q != NONE {
        let next = packets[packet_base + q].next;
        free_packet(q);
        q = next;
    }
    free_packet(p);
}

// Whether a NACK that answers data sent at `sent_at` tells of a loss that the sender has not stepped back for. As adapters do it,
// it steps back once a round trip: what was sent before the last time is on its way anew.
fn is_news(f: u32, sent_at: u64) -> bool {
    let tx = flow_base + f;
    return flow_tx[tx].loss_window == 0lu || sent_at >= flow_tx[tx].back_at;
}

// An acknowledgement of new data, sent at `sent_at`: once a round trip the loss window grows.
fn grow_loss_window(tx: u32, sent_at: u64, now: u64) {
    let window = flow_tx[tx].loss_window;
    if window != 0lu && sent_at >= flow_tx[tx].window_at {
        flow_tx[tx].loss_window = window + max(flow_tx[tx].window / WINDOW_STEPS, u64(exp_payload));
        flow_tx[tx].window_at = now;
    }
}

// What the sequence number says: progress, or a step back. `loss`: it shows a loss. Returns the bytes that it acknowledges anew.
fn advance_una(f: u32, seq: u64, loss: bool, now: u64) -> u64 {
    let tx = flow_base + f;
    let before = flow_tx[tx].snd_una;
    let una = max(before, seq);
    if una != before {
        reach(tx, una);
    }
    if loss && !has_mode(MODE_NS3_LOSS) {
        halve_loss_window(tx, now);
    }
    if flow_tx[tx].snd_nxt < una || loss {
        step_back(tx);
    }
    if loss && una == before {
        stall(f, now);
    }
    return una - before;
}

// Ends the work of the queue pair in row `tx`, of which everything posted is acknowledged.
fn finish(tx: u32, now: u64) {
    flow_tx[tx].flags |= QP_FINISHED;
    flow_tx[tx].rto_at = NEVER;
    flow_tx[tx].loss_window = 0lu;
    flow_tx[tx].back_at = 0lu;
    flow_tx[tx].window_at = 0lu;
    forget(tx);
    if flow_tx[tx].start != NEVER {
        flow_tx[tx].finish = now;
        atomicSub(&shared_words[shared_base + SHARED_FLOWS_LEFT], 1u);
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

// Adds up a round-trip time, and stores it where samples are kept. When the flow's samples are full, every second one is dropped and the stride doubles.
fn note_rtt(f: u32, now: u64, rtt: u64) {
    let cap = exps[exp_row].rtt_cap;
    let first = rtt_base + f * cap;
    let tx = flow_base + f;
    let seen = flow_tx[tx].rtt_seen;
    flow_tx[tx].rtt_seen = seen + 1u;
    flow_tx[tx].rtt_sum += rtt;
    if cap == 0u || seen % flow_tx[tx].rtt_stride != 0u {
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
