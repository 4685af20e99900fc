//! DCTCP, adapted to rates (`docs/explanation/model-semantics.md`, "DCTCP"; SIGCOMM '10 equation 1).
//! Twin: `shaders/cc/dctcp.wgsl`.

use crate::cpu::math::{ONE_Q32, TWO_Q32, decay_q32, mul_shr};
use crate::cpu::transport::rate::set_rate;
use hyperfold_columns::{FlowIdx, NicIdx, Tables, qp};

/// Handles an acknowledgement up to `seq`. `cnp`: it carries a congestion notification.
pub fn on_ack(t: &mut Tables, n: NicIdx, f: FlowIdx, seq: u64, cnp: bool) {
    let e = &t.exps[0];
    let (g, payload, min_rate, rai) = (e.g_q32, e.payload as u64, e.min_rate, e.rai);
    let line = t.nics[n].rate;
    let tx = &mut t.flow_tx[f];
    if cnp {
        tx.cnt += 1;
    }
    let batch_end = seq > tx.last_seq;
    if batch_end {
        if tx.last_seq == 0 {
            tx.batch = (tx.snd_nxt / payload + 1) as u32;
        } else {
            let fraction = (((tx.cnt as u64) << 32) / tx.batch as u64).min(ONE_Q32);
            tx.alpha = tx.alpha - decay_q32(tx.alpha, g) + mul_shr(g, fraction, 32);
            tx.cnt = 0;
            tx.batch = ((tx.snd_nxt - seq.min(tx.snd_nxt)) / payload + 1) as u32;
        }
        tx.last_seq = tx.snd_nxt;
    }
    if tx.flags & qp::CWR != 0 && seq > tx.high_seq {
        tx.flags &= !qp::CWR;
    }
    let mut rate = tx.rate;
    if cnp && tx.flags & qp::CWR == 0 {
        rate = mul_shr(rate, TWO_Q32 - tx.alpha, 33).max(min_rate);
        tx.flags |= qp::CWR;
        tx.high_seq = tx.snd_nxt;
    }
    if tx.flags & qp::CWR == 0 && batch_end {
        rate = (rate + rai).min(line);
    }
    if rate != tx.rate {
        set_rate(t, f, rate, line);
    }
}
