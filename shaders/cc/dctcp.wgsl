// DCTCP on rates (twin: `src/engine/cpu/cc/dctcp.rs`).

// An acknowledgement up to `seq`, with or without a notification.
fn dctcp_on_ack(n: u32, f: u32, seq: u64, cnp: bool) {
    let tx = flow_base + f;
    let line = nics[nic_base + n].rate;
    let payload = u64(exp_payload);
    let snd_nxt = flow_tx[tx].snd_nxt;
    if cnp {
        flow_tx[tx].cnt += 1u;
    }
    let last_seq = flow_tx[tx].last_seq;
    let batch_end = seq > last_seq;
    if batch_end {
        if last_seq == 0lu {
            flow_tx[tx].batch = u32((snd_nxt / payload + 1lu) & LOW_32);
        } else {
            let g = exps[exp_row].g_q32;
            let fraction = min((u64(flow_tx[tx].cnt) << 32u) / u64(flow_tx[tx].batch), ONE_Q32);
            let alpha = flow_tx[tx].alpha;
            flow_tx[tx].alpha = alpha - decay_q32(alpha, g) + mul_shr(g, fraction, 32u);
            flow_tx[tx].cnt = 0u;
            flow_tx[tx].batch = u32(((snd_nxt - min(seq, snd_nxt)) / payload + 1lu) & LOW_32);
        }
        flow_tx[tx].last_seq = snd_nxt;
    }
    if (flow_tx[tx].flags & QP_CWR) != 0u && seq > flow_tx[tx].high_seq {
        flow_tx[tx].flags &= ~QP_CWR;
    }
    var rate = flow_tx[tx].rate;
    if cnp && (flow_tx[tx].flags & QP_CWR) == 0u {
        rate = max(mul_shr(rate, TWO_Q32 - flow_tx[tx].alpha, 33u), exps[exp_row].min_rate);
        flow_tx[tx].flags |= QP_CWR;
        flow_tx[tx].high_seq = snd_nxt;
    }
    if (flow_tx[tx].flags & QP_CWR) == 0u && batch_end {
        rate = min(rate + exps[exp_row].rai, line);
    }
    if rate != flow_tx[tx].rate {
        set_rate(f, rate);
    }
}
