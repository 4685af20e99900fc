//! HPCC (SIGCOMM '19, Algorithm 1) as the reference runs it (`docs/explanation/model-semantics.md`, "HPCC").
//! Twin: `shaders/cc/hpcc.wgsl`.

use crate::cpu::key::{EventKey, lineage};
use crate::cpu::math::{ONE_Q48, mul_div, tx_time};
use crate::cpu::transport::rate::set_rate;
use hyperfold_columns::{FlowIdx, INT_Q_UNIT, INT_TX_UNIT, IntVec, NEVER, NicIdx, PacketIdx, Tables, meta, mode};

/// Handles acknowledgement `p`, which carries telemetry.
pub fn on_ack(t: &mut Tables, n: NicIdx, f: FlowIdx, p: PacketIdx, event: &EventKey) {
    let seq = t.details[p].seq;
    let hops = (t.packets[p].meta >> meta::INT_SHIFT) & meta::INT_MASK;
    let new = t.ints[(t.exps[0].flow_len + p.0) as usize];
    let tx = &mut t.flow_tx[f];
    if tx.last_seq == 0 {
        let is_of_old_path = tx.high_seq != 0 && seq <= tx.high_seq;
        if is_of_old_path {
            return;
        }
        tx.last_seq = tx.snd_nxt;
        remember(t, f, new, hops);
        return;
    }
    let full = seq > tx.last_seq;
    if !full && t.exps[0].modes & mode::FAST_REACT == 0 {
        return;
    }
    let old = t.ints[f.usize()];
    let (mut rate, mut stage) = (tx.rate, tx.stage);
    remember(t, f, new, hops);
    if hops > 0 {
        (rate, stage) = react(t, n, f, hops, &old.hop, &new.hop);
        change_rate(t, n, f, rate, event);
    }
    if full {
        let tx = &mut t.flow_tx[f];
        tx.rc = rate;
        tx.stage = stage;
        tx.last_seq = tx.snd_nxt;
    }
}

/// Stores the first `hops` hops of `new`. The rest of the packet's row still holds what other packets recorded there.
fn remember(t: &mut Tables, f: FlowIdx, mut new: IntVec, hops: u32) {
    new.hop[hops as usize..].fill(0);
    t.ints[f.usize()] = new;
}

/// Algorithm 1, lines 1-20: finds the most utilised hop, updates its moving average, and computes the new rate and the additive stage.
fn react(t: &mut Tables, n: NicIdx, f: FlowIdx, hops: u32, old: &[u64; 5], new: &[u64; 5]) -> (u64, u32) {
    let e = &t.exps[0];
    let multi = e.int_multi as u64;
    let line = t.nics[n].rate;
    let line_m = line / 1_000_000;
    let tx = &mut t.flow_tx[f];
    let mut max_u = 0u64;
    let mut max_u_tau = 1u64;
    for i in 0..hops as usize {
        let rate_m = link_rate_mbps(&e.rates_mbps_lo, &e.rates_mbps_hi, (new[i] >> 61) as u32);
        let dt = (new[i].wrapping_sub(old[i])) & 0xff_ffff;
        let tau = if dt == 0 { 1 } else { dt };
        let db = (((new[i] >> 24).wrapping_sub(old[i] >> 24)) & 0xf_ffff) * INT_TX_UNIT as u64 * multi;
        let q = ((new[i] >> 44) & 0x1_ffff).min((old[i] >> 44) & 0x1_ffff) * INT_Q_UNIT as u64 * multi;
        let tx_part = mul_div(db * 8000, ONE_Q48, tau * rate_m);
        let q_part = mul_div(q * line_m, ONE_Q48, rate_m * tx.window);
        let u = tx_part.saturating_add(q_part);
        if i == 0 || u > max_u {
            max_u = u;
            max_u_tau = tau;
        }
    }
    let period = tx.base_rtt_ns as u64;
    let tau = max_u_tau.min(period);
    tx.u = mul_div(tx.u, period - tau, period) + mul_div(max_u, tau, period);
    let rate;
    let stage;
    if tx.u >= e.eta_q48 || tx.stage >= e.mi_thresh {
        rate = mul_div(tx.rc << 8, e.eta_q40, tx.u).saturating_add(e.rai);
        stage = 0;
    } else {
        rate = tx.rc + e.rai;
        stage = tx.stage + 1;
    }
    (rate.min(line).max(e.min_rate), stage)
}

/// Rate of a link in Mb/s, by its index in the INT header.
fn link_rate_mbps(lo: &[u32; 4], hi: &[u32; 4], idx: u32) -> u64 {
    (if idx < 4 { lo[idx as usize] } else { hi[(idx - 4) as usize] }) as u64
}

/// Sets a new rate. That moves the next send of the queue pair, and the NIC's timer if the timer is now too late.
pub fn change_rate(t: &mut Tables, n: NicIdx, f: FlowIdx, rate: u64, event: &EventKey) {
    let e = &t.exps[0];
    let clock = e.clock_ps as u64;
    let line = t.nics[n].rate;
    let tx = &mut t.flow_tx[f];
    if e.modes & mode::RATE_BOUND != 0 && rate != tx.rate {
        let gap = tx_time(tx.last_wire, rate, clock);
        let was = tx_time(tx.last_wire, tx.rate, clock);
        tx.next_avail = tx.next_avail + gap - was;
    }
    // This is needed even if the rate stays the same: the timer may have been armed for another queue pair.
    let row = &mut t.nics[n];
    if row.timer != NEVER && tx.next_avail < row.timer {
        row.timer = tx.next_avail.max(event.t);
        row.timer_d = lineage(row.timer - event.t, &event.d);
    }
    set_rate(t, f, rate, line);
}
