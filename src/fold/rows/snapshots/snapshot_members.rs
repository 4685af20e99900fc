//! Writes or reads queue pairs in a snapshot: sender, receiver, congestion control, posted messages, telemetry.
//!
//! Values that no longer matter (past deadlines, values that the next event replaces) are left out, so that a repeated pattern has an equal snapshot.
//!
//! Layer: fold/rows.

use super::snapshot_walk::{Pen, SnapshotWalk};
use crate::rows::cc_state;
use crate::rows::key_parts::KeyPart;
use hyperfold_columns::{FlowIdx, FlowRx, FlowTx, INT_TX_UNIT, IntVec, NEVER, Tables, cc, mode, qp};

/// Writes or reads queue pair `m`, sender and receiver, and its messages in flight.
pub(super) fn member<P: Pen>(walk: &mut SnapshotWalk<P>, t: &mut Tables, m: usize) {
    let member = &walk.names.rows.members[m];
    let f = member.flow;
    let e = t.exps[0];
    let (mut tx, mut rx) = (t.flow_tx[f], t.flow_rx[f]);
    let una = tx.snd_una;
    // If no decrease is due, some values do not matter and stay as the row has them.
    let known = if t.fold_hints.random_marks {
        walk.word(u64::from(cc_state::is_quiet(t, member.flow)) + u64::from(cc_state::is_recovered(t, member.flow)))
    } else {
        0
    };
    let own = if known > 0 { qp::HELD | qp::A_SEEN } else { qp::HELD };
    tx.flags = walk.half(tx.flags & !own) | (tx.flags & own);
    // Bytes of messages that the network was not given yet do not matter.
    let behind: u64 =
        if P::READS { 0 } else { member.posted[member.given..].iter().map(|&(i, _)| t.tasks[i].bytes).sum() };
    tx.size = walk.near(tx.size - behind, una);
    tx.snd_nxt = walk.near(tx.snd_nxt, una);
    rx.expected = walk.near(rx.expected, una);
    messages(walk, t, m, &mut tx, &mut rx);
    let before = walk.pen.part(KeyPart::Timers);
    // HPCC moves this time with every new rate, from its old value, even if that is past. For a queue pair outside the round-robin order the next
    // post replaces it.
    let moves = e.cc == cc::HPCC && e.modes & mode::RATE_BOUND != 0 && tx.flags & qp::QUEUED != 0;
    tx.next_avail = if moves { walk.near(tx.next_avail, walk.now) } else { walk.not_before(tx.next_avail) };
    rx.cnp_t = walk.not_before(rx.cnp_t);
    rx.nack_t = walk.not_before(rx.nack_t);
    rx.nack_seq = if walk.word(u64::from(rx.nack_seq == NEVER)) != 0 { NEVER } else { walk.near(rx.nack_seq, una) };
    if e.ack_interval > 1 {
        walk.word(una % e.chunk);
        rx.milestone = walk.near(rx.milestone, una);
    }
    tx.rto_at = walk.time(tx.rto_at);
    tx.retries = walk.half(tx.retries);
    tx.stalls = walk.half(tx.stalls);
    tx.loss_window = walk.word(tx.loss_window);
    if tx.loss_window != 0 {
        tx.back_at = walk.near(tx.back_at, walk.now);
        tx.window_at = walk.near(tx.window_at, walk.now);
    } else {
        (tx.back_at, tx.window_at) = (0, 0);
    }
    walk.pen.part(KeyPart::Rates);
    control(walk, t, f, &mut tx, known, member.routed);
    walk.pen.part(before);
    if let Some(Some(rows)) = walk.advanced.get(m) {
        rows.advance(t, &mut tx, &mut rx);
    }
    if P::READS {
        t.flow_tx[f] = tx;
        t.flow_rx[f] = rx;
    }
}

/// Writes or reads all state of congestion control, including columns that this algorithm does not use, so that rows read back are equal. `known`:
/// what is left out; 1 if no decrease is due, 2 if the rate has recovered as well. `routed`: its path belongs to the partition; otherwise it is idle
/// and the next post replaces its telemetry.
fn control<P: Pen>(walk: &mut SnapshotWalk<P>, t: &mut Tables, f: FlowIdx, tx: &mut FlowTx, known: u64, routed: bool) {
    let una = tx.snd_una;
    let e = t.exps[0];
    tx.rate = walk.word(tx.rate);
    tx.win = walk.word(tx.win);
    tx.last_wire = walk.half(tx.last_wire);
    if known == 2 {
        return;
    }
    tx.target = walk.word(tx.target);
    tx.stage = walk.half(cc_state::stage(t, tx));
    tx.t_inc = walk.timer(tx.t_inc);
    if known == 1 {
        return;
    }
    tx.alpha = walk.word(tx.alpha);
    tx.t_alpha = walk.timer(tx.t_alpha);
    tx.t_dec = walk.timer(tx.t_dec);
    tx.u = walk.word(tx.u);
    tx.rc = walk.word(tx.rc);
    tx.last_seq = walk.seq(tx.last_seq, una);
    tx.high_seq = walk.seq(tx.high_seq, una);
    // The last post reset it, and it is set again before it is read.
    let void = tx.last_seq == 0 && matches!(e.cc, cc::HPCC | cc::TIMELY);
    if !void {
        tx.last_rtt = walk.word(tx.last_rtt);
    }
    tx.diff = walk.near(tx.diff as u64, 0) as i64;
    tx.cnt = walk.half(tx.cnt);
    tx.batch = walk.half(tx.batch);
    if e.cc == cc::DCTCP && tx.last_seq == 0 {
        // The first batch is counted from the very first byte.
        walk.word(una);
    }
    if e.cc == cc::HPCC && !void && walk.word(u64::from(routed)) != 0 {
        let mut int = t.ints[f.usize()];
        let hops = tx.path_len.min(hyperfold_columns::INT_HOPS) as usize;
        telemetry(walk, t, f, hops, &mut int);
        if P::READS {
            t.ints[f.usize()] = int;
        }
    }
}

/// Writes or reads the posted messages that are not both delivered and acknowledged, and the pointers to them.
fn messages<P: Pen>(walk: &mut SnapshotWalk<P>, t: &Tables, m: usize, tx: &mut FlowTx, rx: &mut FlowRx) {
    let member = &walk.names.rows.members[m];
    let n = walk.word(member.given as u64) as usize;
    let mut ends = Vec::with_capacity(n);
    let mut end = tx.size;
    for &(i, _) in member.posted[..n.min(member.posted.len())].iter().rev() {
        ends.push((end, i));
        end -= walk.word(t.tasks[i].bytes);
    }
    if P::READS {
        let next = tx.msg_post;
        let beyond = (tx.size + if next.is_none() { 0 } else { t.tasks[next].bytes }, next);
        let message_at = |seq: u64| ends.iter().rev().copied().find(|x| x.0 > seq).unwrap_or(beyond);
        (tx.send_end, tx.msg_send) = message_at(tx.snd_nxt);
        (tx.ack_end, tx.msg_ack) = message_at(tx.snd_una);
        (rx.msg_end, rx.msg) = message_at(rx.expected);
    }
}

/// Writes or reads the telemetry of the first `hops` hops of queue pair `f`'s path: times relative to now, bytes relative to what each port has sent.
pub(super) fn telemetry<P: Pen>(walk: &mut SnapshotWalk<P>, t: &Tables, f: FlowIdx, hops: usize, int: &mut IntVec) {
    let e = &t.exps[0];
    let before = walk.pen.part(KeyPart::Telemetry);
    let path = t.flow_tx[f].path_first as usize;
    for k in 0..hops {
        let q = t.paths[path + k];
        let port = &t.ports[q];
        let (from_ps, from_bytes) = t.fold_hints.counts_from(q);
        let now = ((walk.now - from_ps) / 1000) & 0xff_ffff;
        let sent = ((port.tx_bytes - from_bytes) / (u64::from(INT_TX_UNIT) * u64::from(e.int_multi))) & 0xf_ffff;
        let word = int.hop[k];
        let time = walk.word(now.wrapping_sub(word) & 0xff_ffff);
        let tx = walk.word(sent.wrapping_sub(word >> 24) & 0xf_ffff);
        let rest = walk.word(word >> 44);
        int.hop[k] = (now.wrapping_sub(time) & 0xff_ffff) | ((sent.wrapping_sub(tx) & 0xf_ffff) << 24) | (rest << 44);
    }
    walk.pen.part(before);
}
