//! A queue pair at its NIC: its creation, its initial state, and its place in the NIC's order (twin: `shaders/queue_pair.wgsl`).

use super::rate::set_rate;
use crate::cpu::cc::nscc;
use crate::cpu::math::{ONE_Q32, ONE_Q48};
use hyperfold_columns::{FlowIdx, FlowTx, LOSS_WINDOW_PACKETS, NEVER, NicIdx, Tables, cc, qp};

/// Creates queue pair `f` of NIC `n`: it has line rate and may send at once.
pub fn create(t: &mut Tables, n: NicIdx, f: FlowIdx, now: u64) {
    let burst = t.exps[0].credit_burst;
    let tx = &mut t.flow_tx[f];
    tx.credit = burst;
    tx.next_avail = now;
    tx.rto_at = NEVER;
    tx.flags |= qp::CREATED;
    reset_cc(t, n, f);
}

/// Resets the congestion-control state to its initial values. DCTCP goes on counting its batch.
pub fn reset_cc(t: &mut Tables, n: NicIdx, f: FlowIdx) {
    let line = t.nics[n].rate;
    let dctcp = t.exps[0].cc == cc::DCTCP;
    let tx = &mut t.flow_tx[f];
    tx.flags &= !(qp::STARTED | qp::A_SEEN | qp::D_SEEN | qp::CWR);
    tx.stage = 0;
    tx.diff = 0;
    if !dctcp {
        tx.last_seq = 0;
    }
    tx.target = line;
    tx.rc = line;
    tx.alpha = ONE_Q32;
    tx.u = ONE_Q48;
    tx.t_alpha = NEVER;
    tx.t_dec = NEVER;
    tx.t_inc = NEVER;
    set_rate(t, f, line, line);
    match t.exps[0].cc {
        cc::NSCC => nscc::reset(t, n, f),
        // Credit alone limits it, and no path is kept to choose it again.
        cc::RCCC => {
            let tx = &mut t.flow_tx[f];
            (tx.win, tx.alpha, tx.stage) = (u64::MAX, 0, 0);
        }
        _ => {}
    }
}

/// Appends queue pair `f` to the round-robin order of its NIC.
pub fn join_order(t: &mut Tables, n: NicIdx, f: FlowIdx) {
    let row = &mut t.nics[n];
    t.order[(row.flow_first + row.qp_n).usize()] = f;
    row.qp_n += 1;
    t.flow_tx[f].flags |= qp::QUEUED;
}

/// Makes sending go on from the first unacknowledged byte.
pub fn step_back(tx: &mut FlowTx) {
    tx.snd_nxt = tx.snd_una;
    tx.msg_send = tx.msg_ack;
    tx.send_end = tx.ack_end;
}

/// Reacts to a loss: from now on half of the outstanding bytes may be outstanding. PRECONDITION: the queue pair has not stepped back yet.
pub fn halve_loss_window(tx: &mut FlowTx, payload: u32, now: u64) {
    let outstanding = tx.snd_nxt.saturating_sub(tx.snd_una);
    tx.loss_window = (outstanding / 2).max(LOSS_WINDOW_PACKETS * payload as u64);
    (tx.back_at, tx.window_at) = (now, now);
}

/// Whether `outstanding` bytes are fewer than congestion control and the loss window allow.
#[inline]
pub fn is_within_windows(tx: &FlowTx, outstanding: u64) -> bool {
    (tx.win == 0 || outstanding < tx.win) && (tx.loss_window == 0 || outstanding < tx.loss_window)
}
