//! The sending side of a queue pair: how it handles an acknowledgement (twin: `shaders/sender.wgsl`).

use super::credit;
use super::queue_pair::{halve_loss_window, step_back};
use super::selective::{self, News};
use super::stream::{is_uec, reach, takes_any_order};
use super::uec::{self, UecNews};
use crate::cpu::cc::{dcqcn, dctcp, hpcc, nscc, swift, timely};
use crate::cpu::key::EventKey;
use crate::cpu::math::hash32;
use crate::cpu::task;
use hyperfold_columns::{
    FlowIdx, FlowTx, NEVER, NicIdx, PacketIdx, RttSample, STALL_DOUBLINGS, STALLS_A_RETRY, Tables, WINDOW_STEPS, cc,
    flag, kind, meta, mode, psn, qp,
};

/// Gives record `p` back to the pool of NIC `n`.
pub fn free_packet(t: &mut Tables, n: NicIdx, p: PacketIdx) {
    let row = &mut t.nics[n];
    t.packets[p].next = row.free_head;
    row.free_head = p;
    row.free_n += 1;
}

/// Handles ACK or NACK `p`, which has come back to NIC `n`.
pub fn on_ack(t: &mut Tables, n: NicIdx, p: PacketIdx, event: &EventKey) {
    let pk = t.packets[p];
    let f = pk.flow;
    if t.flow_tx[f].flags & qp::FINISHED == 0 {
        let oldest = t.flow_tx[f].msg_ack;
        let (seq, sent_at) = (t.details[p].seq, t.details[p].sent_at);
        let nack = (pk.meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::NACK;
        let before = t.flow_tx[f].snd_una;
        let mut uec_news = UecNews { packets: 0, nacked: false };
        let (seq, News { acked, loss }) = if is_uec(&t.exps[0]) {
            credit::note_answer(t, p);
            uec_news = uec::on_answer(t, f, p);
            (seq, News { acked: uec_news.packets * t.exps[0].payload as u64, loss: false })
        } else if takes_any_order(&t.exps[0]) {
            let news = selective::acknowledge(t, f, seq, sent_at, event.t);
            t.details[p].seq = seq & psn::BYTE_MASK;
            (seq & psn::BYTE_MASK, news)
        } else {
            let loss = nack && is_news(t, f, sent_at);
            (seq, News { acked: advance_una(t, f, seq, loss, event.t), loss })
        };
        let e = &t.exps[0];
        let tx = &mut t.flow_tx[f];
        if acked > 0 && !loss && tx.loss_window != 0 {
            grow_loss_window(tx, e.payload, sent_at, event.t);
        }
        let progress = tx.snd_una > before || is_uec(e) && (acked > 0 || uec_news.nacked);
        if tx.snd_una >= tx.snd_nxt {
            tx.rto_at = NEVER;
            if is_uec(e) {
                tx.rto_at = credit::deadline(e, tx, event.t);
                let row = &mut t.nics[n];
                row.rto = row.rto.min(tx.rto_at);
            }
        } else if progress {
            // What is missing was sent before the packet that is answered.
            let rto_at = if is_uec(e) { event.t.max(sent_at + e.rto) } else { event.t + e.rto };
            if rto_at < tx.rto_at {
                let row = &mut t.nics[n];
                row.rto = row.rto.min(rto_at);
            }
            tx.rto_at = rto_at;
        }
        if tx.snd_una >= tx.size {
            finish(t, f, event.t);
        }
        let rtt = if t.exps[0].measures_rtts() { event.t - sent_at } else { 0 };
        if t.exps[0].sums_rtts > 0 {
            note_rtt(t, f, event.t, rtt);
        }
        match t.exps[0].cc {
            cc::DCQCN => dcqcn::on_ack(t, f, pk.meta & meta::CNP != 0, event),
            cc::HPCC => hpcc::on_ack(t, n, f, p, event),
            cc::TIMELY => timely::on_ack(t, n, f, seq, rtt),
            cc::DCTCP => dctcp::on_ack(t, n, f, seq, pk.meta & meta::CNP != 0),
            cc::SWIFT => swift::on_ack(t, n, f, acked, rtt, loss, event.t),
            cc::NSCC => {
                let answer = nscc::RoundTrip {
                    rtt,
                    marked: pk.meta & meta::CNP != 0,
                    is_nack: nack,
                    last_hop: pk.meta & meta::LAST_HOP != 0,
                };
                nscc::on_answer(t, n, f, uec_news, answer, event.t);
            }
            _ => {}
        }
        let oldest_after = t.flow_tx[f].msg_ack;
        if oldest != oldest_after {
            task::acknowledged(t, n, oldest, oldest_after, event);
        }
    } else {
        credit::note_answer(t, p);
    }
    let mut q = pk.records();
    while q.is_some() {
        let next = t.packets[q].next;
        free_packet(t, n, q);
        q = next;
    }
    free_packet(t, n, p);
}

/// Whether a NACK for data sent at `sent_at` tells of a loss that the sender has not stepped back for. As adapters do it, the sender steps back once
/// per round trip: data sent before the last step back is already being sent again.
fn is_news(t: &Tables, f: FlowIdx, sent_at: u64) -> bool {
    let tx = &t.flow_tx[f];
    tx.loss_window == 0 || sent_at >= tx.back_at
}

/// Grows the loss window once per round trip; called for an acknowledgement of new data that was sent at `sent_at`.
fn grow_loss_window(tx: &mut FlowTx, payload: u32, sent_at: u64, now: u64) {
    if sent_at >= tx.window_at {
        tx.loss_window += (tx.window / WINDOW_STEPS).max(payload as u64);
        tx.window_at = now;
    }
}

/// Handles the sequence number of an acknowledgement: progress, or a step back. `loss`: it shows a loss. Returns the bytes that it acknowledges anew.
#[inline(always)]
fn advance_una(t: &mut Tables, f: FlowIdx, seq: u64, loss: bool, now: u64) -> u64 {
    let acked = seq.saturating_sub(t.flow_tx[f].snd_una);
    if acked > 0 {
        reach(t, f, seq);
    }
    let tx = &mut t.flow_tx[f];
    if loss {
        let e = &t.exps[0];
        if e.modes & mode::NS3_LOSS == 0 {
            halve_loss_window(tx, e.payload, now);
        }
        step_back(tx);
        if acked == 0 {
            stall(t, f, now);
        }
    } else if tx.snd_nxt < tx.snd_una {
        step_back(tx);
    }
    acked
}

/// Ends the work of queue pair `f`, of which everything posted is acknowledged.
fn finish(t: &mut Tables, f: FlowIdx, now: u64) {
    let tx = &mut t.flow_tx[f];
    tx.flags |= qp::FINISHED;
    tx.rto_at = NEVER;
    (tx.loss_window, tx.back_at, tx.window_at) = (0, 0, 0);
    selective::forget(tx);
    if tx.start != NEVER {
        tx.finish = now;
        t.one_less_left();
    }
}

/// Handles a NACK without progress: the flow pauses for a random time, so that flows whose losses are synchronised do not stay so. After too many
/// such NACKs the flow gives up.
fn stall(t: &mut Tables, f: FlowIdx, now: u64) {
    let e = &t.exps[0];
    let (seed, max_stalls) = (e.seed, STALLS_A_RETRY * (e.rto_retries + 1));
    let tx = &mut t.flow_tx[f];
    tx.stalls += 1;
    let doublings = if tx.stalls < STALL_DOUBLINGS { tx.stalls } else { STALL_DOUBLINGS };
    let longest = (tx.base_rtt_ns as u64 * 1000) << doublings;
    let draw = hash32(tx.flow_id, tx.stalls, tx.snd_una as u32, seed) as u64;
    tx.next_avail = tx.next_avail.max(now) + draw % longest;
    if tx.stalls > max_stalls {
        t.raise(flag::GAVE_UP);
    }
}

/// Adds up a round-trip time, and stores it where samples are kept. When the flow's samples are full, every second one is dropped and the stride doubles.
fn note_rtt(t: &mut Tables, f: FlowIdx, now: u64, rtt: u64) {
    let cap = t.exps[0].rtt_cap;
    let base = f.0 * cap;
    let tx = &mut t.flow_tx[f];
    let take = tx.rtt_seen.is_multiple_of(tx.rtt_stride);
    tx.rtt_seen += 1;
    tx.rtt_sum += rtt;
    if cap == 0 || !take {
        return;
    }
    if tx.rtt_n == cap {
        for k in 0..cap / 2 {
            t.rtts[(base + k) as usize] = t.rtts[(base + 2 * k) as usize];
        }
        tx.rtt_n = cap / 2;
        tx.rtt_stride *= 2;
        if !(tx.rtt_seen - 1).is_multiple_of(tx.rtt_stride) {
            return;
        }
    }
    t.rtts[(base + tx.rtt_n) as usize] = RttSample { at: now, rtt };
    tx.rtt_n += 1;
}
