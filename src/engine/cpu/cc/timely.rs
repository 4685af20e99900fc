//! TIMELY (SIGCOMM '15, Algorithm 1) as the reference runs it (`docs/explanation/model-semantics.md`, "TIMELY"): one update per window.
//! Twin: `shaders/cc/timely.wgsl`.

use crate::cpu::math::{ONE_Q32, mul_div, mul_shr};
use crate::cpu::transport::rate::set_rate;
use hyperfold_columns::{FlowIdx, NicIdx, Tables};

/// Number of fraction bits of the smoothed RTT difference, which is in picoseconds.
pub(crate) const DIFF_BITS: u32 = 22;
/// Number of consecutive updates after which the larger increase applies (Algorithm 1's N).
pub const HYPER_AFTER: u32 = 5;

/// `x * f / 2^32`, truncated towards zero.
fn scale_signed(x: i64, f: u64) -> i64 {
    let m = mul_shr(x.unsigned_abs(), f, 32) as i64;
    if x < 0 { -m } else { m }
}

/// Handles an acknowledgement up to `seq` whose round trip took `rtt` ps.
pub fn on_ack(t: &mut Tables, n: NicIdx, f: FlowIdx, seq: u64, rtt: u64) {
    let e = t.exps[0];
    let line = t.nics[n].rate;
    let tx = &mut t.flow_tx[f];
    if seq <= tx.last_seq {
        return;
    }
    let mut rate = tx.rate;
    if tx.last_seq != 0 {
        let a = e.timely_alpha_q32;
        let change = (rtt as i64 - tx.last_rtt as i64) << DIFF_BITS;
        tx.diff = scale_signed(tx.diff, ONE_Q32 - a) + scale_signed(change, a);
        let mut factor = ONE_Q32;
        let mut up = true;
        if rtt >= e.tlow {
            if rtt > e.thigh {
                up = false;
                factor = ONE_Q32 - mul_shr(e.timely_beta_q32, ONE_Q32 - mul_div(e.thigh, ONE_Q32, rtt), 32);
            } else if tx.diff > 0 {
                up = false;
                let gradient = mul_div(tx.diff as u64, 1 << (32 - DIFF_BITS), e.min_rtt);
                factor = ONE_Q32 - mul_shr(e.timely_beta_q32, gradient, 32).min(ONE_Q32);
            }
        }
        if up {
            let step = if tx.stage < HYPER_AFTER { e.rai } else { e.rhai };
            rate = (rate + step).min(line);
            tx.stage = tx.stage.saturating_add(1);
        } else {
            rate = mul_shr(rate, factor, 32).max(e.min_rate);
            tx.stage = 0;
        }
    }
    if tx.snd_nxt > tx.last_seq {
        tx.last_seq = tx.snd_nxt;
    }
    tx.last_rtt = rtt;
    if rate != tx.rate {
        set_rate(t, f, rate, line);
    }
}
