//! What a NIC does to send: which queue pairs may, the packets that they make, and its wire (twin: `shaders/sending.wgsl`). Which of them sends is decided in
//! `nic`, or by class in `class_turns`.

use super::cc::dcqcn;
use super::key::{EventKey, lineage, lineages};
use super::lists::{fetch_rest, wire_push};
use super::loss::{is_lost, lose_of_nic};
use super::math::tx_time;
use super::switch::cut_through::time_on_wire;
use super::task;
use super::transport::spraying::{next_entropy, path_of};
use super::transport::stream::{is_uec, next_start, takes_any_order, takes_credit};
use super::transport::{any_order, credit, mixed_entropies, queue_pair, selective, uec};
use hyperfold_columns::{
    Exp, FlowIdx, FlowTx, FoldTrace, LINK_LOSES, LINK_TROUBLE, LinkEndIdx, NEVER, NicIdx, PacketIdx, PortIdx, Tables,
    cc, flag, kind, meta, mode, qp,
};

/// Whether a queue pair has something to send and its windows let it.
#[inline(always)]
pub(super) fn may_send(e: &Exp, tx: &FlowTx, paused: bool) -> bool {
    if takes_any_order(e) {
        return !paused
            && any_order::has_data(e, tx)
            && if is_uec(e) {
                uec::is_within_window(e, tx)
            } else {
                queue_pair::is_within_windows(tx, any_order::outstanding(e, tx))
            };
    }
    !paused && tx.snd_nxt < tx.size && queue_pair::is_within_windows(tx, tx.snd_nxt.wrapping_sub(tx.snd_una))
}

/// Removes the finished queue pairs from index `first_finished` on. Returns the new index of the queue pair at `found`.
pub(super) fn remove_finished(t: &mut Tables, n: NicIdx, first_finished: u32, found: u32) -> u32 {
    let row = &t.nics[n];
    let (first, count) = (row.flow_first, row.qp_n);
    let mut moved = found;
    let mut kept = first_finished;
    for k in first_finished..count {
        let f = t.order[(first + k).usize()];
        if t.flow_tx[f].flags & qp::FINISHED == 0 {
            if k == found {
                moved = kept;
            }
            t.order[(first + kept).usize()] = f;
            kept += 1;
        } else {
            t.flow_tx[f].flags &= !qp::QUEUED;
        }
    }
    t.nics[n].qp_n = kept;
    moved
}

/// Sets a timer for `earliest`, the time at which a queue pair of NIC `n` may send, if it is later than now and no timer is set.
#[inline(always)]
pub(super) fn look_again(t: &mut Tables, n: NicIdx, earliest: u64, event: &EventKey) {
    let row = &mut t.nics[n];
    if earliest != NEVER && earliest > event.t && row.timer == NEVER {
        row.timer = earliest;
        row.timer_d = lineage(earliest - event.t, &event.d);
    }
}

/// Takes the next packet of queue pair `f` off what is left to send. Returns its first byte and its payload in bytes.
#[inline(always)]
fn next_packet(t: &mut Tables, f: FlowIdx) -> (u64, u32) {
    let e = &t.exps[0];
    let tx = &mut t.flow_tx[f];
    let seq = tx.snd_nxt;
    if takes_any_order(e) {
        if tx.lost > 0 {
            return if is_uec(e) { uec::take_lost(t, f) } else { selective::take_lost(t, f) };
        }
        tx.snd_nxt += e.payload as u64;
        return (seq, (tx.send_end - seq).min(e.payload as u64) as u32);
    }
    let left = tx.send_end - seq;
    let payload = if left < e.payload as u64 { left as u32 } else { e.payload };
    tx.snd_nxt += payload as u64;
    (seq, payload)
}

/// Sends the next packet of queue pair `f`.
pub(super) fn send_data(t: &mut Tables, n: NicIdx, f: FlowIdx, event: &EventKey) {
    if t.exps[0].cc == cc::DCQCN {
        dcqcn::advance(t, f, event);
    }
    let p = t.nics[n].free_head;
    if p.is_none() {
        t.raise(flag::POOL_EMPTY);
        return;
    }
    let free = t.packets[p].next;
    t.packets.prefetch(free.0);
    fetch_rest(t, free);
    let row = &mut t.nics[n];
    row.free_head = free;
    row.free_n -= 1;
    let uec = is_uec(&t.exps[0]);
    let asks = if uec { uec::asks(&t.exps[0], &t.flow_tx[f]) } else { 0 };
    let (mut seq, payload) = next_packet(t, f);
    let position = seq;
    let e = &t.exps[0];
    let row = &mut t.nics[n];
    let tx = &mut t.flow_tx[f];
    if uec && takes_credit(e) {
        seq = credit::spend(e, tx, seq, row.qp_n, event.t);
    }
    let wire = payload + e.data_overhead;
    let full = wire == e.payload + e.data_overhead;
    let clock = e.clock_ps as u64;
    let x = if full { row.tx_full } else { tx_time(wire, row.rate, clock) };
    let gap = if e.modes & mode::RATE_BOUND == 0 || tx.rate == row.rate { x } else { tx_time(wire, tx.rate, clock) };
    let pk = &mut t.packets[p];
    pk.flow = f;
    pk.payload = payload;
    pk.meta = wire | (kind::DATA << meta::KIND_SHIFT) | asks | (tx.class << meta::CLASS_SHIFT);
    pk.path = tx.path_first;
    pk.in_port = PortIdx::NONE;
    if uec && mixed_entropies::is_mixed(e) {
        let path = mixed_entropies::next_mixed(e, tx, &mut t.psn_bits, f, position);
        pk.meta |= path << meta::ENTROPY_SHIFT;
        pk.path += path * tx.path_len;
    } else if tx.n_paths > 1 && e.modes & mode::ADAPTIVE == 0 {
        let path = if e.modes & mode::REPS == 0 {
            path_of(e, tx.flow_id, tx.n_sent, 0, tx.n_paths)
        } else {
            let path = next_entropy(e, tx);
            pk.meta |= path << meta::ENTROPY_SHIFT;
            path
        };
        pk.path += path * tx.path_len;
    }
    tx.n_sent += 1;
    let details = &mut t.details[p];
    details.seq = seq;
    details.sent_at = event.t;
    if tx.rto_at == NEVER {
        tx.rto_at = event.t + e.rto;
        row.rto = row.rto.min(tx.rto_at);
    }
    tx.sent_bytes += payload as u64;
    tx.last_wire = wire;
    tx.next_avail = event.t + gap;
    if tx.snd_nxt >= tx.send_end && tx.msg_send.is_some() {
        let sent = tx.msg_send;
        let follow = t.tasks[sent].follow;
        tx.msg_send = follow;
        if follow.is_some() {
            tx.send_end = next_start(e, tx.send_end) + t.tasks[follow].bytes;
        }
        task::note(t, FoldTrace::Sent { task: sent, at: event.t });
    }
    transmit(t, n, p, x, event);
}

/// Puts packet `p` on the NIC's wire; its transmission takes `x` ps.
#[inline]
pub(super) fn transmit(t: &mut Tables, n: NicIdx, p: PacketIdx, x: u64, event: &EventKey) {
    let row = &t.nics[n];
    let (peer, delay) = (row.peer, row.delay);
    let on_wire = if t.exps[0].cut_through == 0 { x } else { time_on_wire(t, peer, row.rate, p, x) };
    let [ends, arrives] = lineages([x, on_wire + delay], &event.d);
    let row = &mut t.nics[n];
    row.busy_until = event.t + x;
    row.busy_d = ends;
    row.hops += 1;
    let pk = &mut t.packets[p];
    row.tx_bytes += (pk.meta & meta::WIRE_MASK) as u64;
    pk.t = event.t + on_wire + delay;
    t.details[p].d = arrives;
    if peer.0 & LINK_LOSES != 0 && is_lost(t, n.end(), p, event.t + x) {
        return lose_of_nic(t, n.end(), p);
    }
    wire_push(t, LinkEndIdx(peer.0 & !LINK_TROUBLE), p);
}
