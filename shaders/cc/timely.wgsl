// TIMELY (SIGCOMM '15, Algorithm 1) as the reference runs it: one update a window (twin: `src/engine/cpu/cc/timely.rs`).

// `x * f / 2^32`, truncated towards zero.
fn scale_signed(x: i64, f: u64) -> i64 {
    let m = i64(mul_shr(u64(select(x, -x, x < 0li)), f, 32u));
    return select(m, -m, x < 0li);
}

// An acknowledgement up to `seq` that took `rtt` ps.
fn timely_on_ack(n: u32, f: u32, seq: u64, rtt: u64) {
    let tx = flow_base + f;
    let line = nics[nic_base + n].rate;
    let last_seq = flow_tx[tx].last_seq;
    if seq <= last_seq {
        return;
    }
    var rate = flow_tx[tx].rate;
    if last_seq != 0lu {
        let a = exps[exp_row].timely_alpha_q32;
        let change = (i64(rtt) - i64(flow_tx[tx].last_rtt)) << TIMELY_DIFF_BITS;
        let diff = scale_signed(flow_tx[tx].diff, ONE_Q32 - a) + scale_signed(change, a);
        flow_tx[tx].diff = diff;
        var factor = ONE_Q32;
        var up = true;
        if rtt >= exps[exp_row].tlow {
            let beta = exps[exp_row].timely_beta_q32;
            if rtt > exps[exp_row].thigh {
                up = false;
                factor = ONE_Q32 - mul_shr(beta, ONE_Q32 - mul_div(exps[exp_row].thigh, ONE_Q32, rtt), 32u);
            } else if diff > 0li {
                up = false;
                let gradient = mul_div(u64(diff), 1lu << (32u - TIMELY_DIFF_BITS), exps[exp_row].min_rtt);
                factor = ONE_Q32 - min(mul_shr(beta, gradient, 32u), ONE_Q32);
            }
        }
        if up {
            let step_up = select(exps[exp_row].rhai, exps[exp_row].rai, flow_tx[tx].stage < TIMELY_HYPER_AFTER);
            rate = min(rate + step_up, line);
            flow_tx[tx].stage = add_sat_u32(flow_tx[tx].stage, 1u);
        } else {
            rate = max(mul_shr(rate, factor, 32u), exps[exp_row].min_rate);
            flow_tx[tx].stage = 0u;
        }
    }
    if flow_tx[tx].snd_nxt > last_seq {
        flow_tx[tx].last_seq = flow_tx[tx].snd_nxt;
    }
    flow_tx[tx].last_rtt = rtt;
    if rate != flow_tx[tx].rate {
        set_rate(f, rate);
    }
}
