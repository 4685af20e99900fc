//! Receiver credit (`docs/explanation/model-semantics.md`, "Receiver credit"): a receiver hands out credit at the rate of its NIC, and a sender sends no packet
//! without it. Twin: `shaders/credit.wgsl`.

use super::answers::queue_answer;
use super::stream::{full_wire, takes_credit};
use crate::cpu::key::{EventKey, lineage};
use crate::cpu::math::mul_shr;
use hyperfold_columns::{Exp, FlowIdx, FlowTx, NEVER, NicIdx, PacketIdx, Tables, cc, flag, kind, meta, psn};

/// Lets a burst of queue pair `f` begin without asking, if nothing was left to send. It is called before bytes are posted.
pub fn begin(t: &mut Tables, f: FlowIdx) {
    let e = &t.exps[0];
    let tx = &mut t.flow_tx[f];
    if takes_credit(e) && tx.lost == 0 && tx.snd_nxt >= tx.size {
        tx.credit = tx.credit.max(e.credit_burst);
    }
}

/// Takes the credit of a packet that has been taken off what is left to send. Returns what the packet carries beside its position `seq`: the credit that its
/// sender wants. `sharing` is the number of queue pairs in the order of the NIC.
pub fn spend(e: &Exp, tx: &mut FlowTx, seq: u64, sharing: u32, now: u64) -> u64 {
    tx.credit -= 1;
    if tx.credit == 0 {
        tx.back_at = now;
    }
    let mut need = u64::from(tx.lost) + tx.size.saturating_sub(tx.snd_nxt).div_ceil(u64::from(e.payload));
    if e.cc == cc::NSCC {
        need = need.min(tx.win / full_wire(e) + 1);
    }
    let need = need.min(u64::from(e.credit_window)) as u32;
    let demand = if need > tx.credit { ((need - tx.credit) / sharing).max(1) } else { 0 };
    let want = tx.pulled.wrapping_sub(tx.nacked).wrapping_add(demand) & psn::WANT_MASK;
    seq | u64::from(want) << psn::OFFSET_SHIFT
}

/// Takes note of answer `p`, which has come back to the sender, also where the queue pair is finished.
pub fn note_answer(t: &mut Tables, p: PacketIdx) {
    if !takes_credit(&t.exps[0]) {
        return;
    }
    let tx = &mut t.flow_tx[t.packets[p].flow];
    if (t.packets[p].meta >> meta::KIND_SHIFT) & meta::KIND_MASK == kind::NACK {
        tx.nacked = tx.nacked.wrapping_add(1);
    }
    if t.details[p].sent_at >= tx.back_at {
        tx.back_at = 0;
    }
}

/// The deadline of a queue pair that has nothing in flight: there is one only if the packet that asked for credit may be lost.
pub fn deadline(e: &Exp, tx: &FlowTx, now: u64) -> u64 {
    if takes_credit(e) && tx.back_at > 0 { now.max(tx.back_at + e.rto) } else { NEVER }
}

/// Handles a deadline at which `found` packets were found to be lost.
pub fn time_out(e: &Exp, tx: &mut FlowTx, found: u64, now: u64) {
    if !takes_credit(e) {
        return;
    }
    if found == 0 && tx.back_at + e.rto > now {
        tx.rto_at = deadline(e, tx, now);
    } else if found > 0 || tx.back_at > 0 {
        // The request may be lost too, and without credit nothing would tell the receiver.
        tx.credit = tx.credit.max(1);
        tx.back_at = 0;
    }
}

/// Handles PULL `p`, which has come back to NIC `n` of the sender. Its record returns to the receiver.
#[inline(never)]
pub fn on_pull(t: &mut Tables, n: NicIdx, p: PacketIdx) {
    let given = t.details[p].seq as u32;
    let window = t.exps[0].credit_window;
    let tx = &mut t.flow_tx[t.packets[p].flow];
    let news = given.wrapping_sub(tx.pulled);
    // Another path may have brought a later one before.
    if news < 1 << 31 {
        tx.credit = tx.credit.saturating_add(news).min(window);
        tx.pulled = given;
    }
    let row = &mut t.nics[n];
    t.packets[p].next = row.to_return;
    row.to_return = p;
    t.raise(flag::TO_RETURN);
}

/// Handles what a data packet of queue pair `f` wants, at NIC `n` of the receiver; `nacked`: it was answered with a NACK. Returns whether credit was given.
pub fn on_want(t: &mut Tables, n: NicIdx, f: FlowIdx, want: u32, nacked: bool, event: &EventKey) -> bool {
    let rx = &mut t.flow_rx[f];
    let waited = rx.wanted > 0;
    if nacked {
        // Its credit has brought nothing.
        rx.wanted += 1;
        rx.nacks = rx.nacks.wrapping_add(1);
    }
    // What its sender does not know yet is neither given nor lost twice.
    let beyond = want.wrapping_sub(rx.given.wrapping_sub(rx.nacks)) & psn::WANT_MASK;
    if beyond <= psn::WANT_MASK / 2 {
        rx.wanted = rx.wanted.max(beyond);
    }
    if rx.wanted > 0 && !waited {
        wait_for_grant(t, n, f);
    }
    let row = &t.nics[n];
    row.waiting.is_some() && row.timer == NEVER && grant(t, n, event)
}

/// Appends queue pair `f` to those of NIC `n` that wait for a grant.
fn wait_for_grant(t: &mut Tables, n: NicIdx, f: FlowIdx) {
    let last = t.nics[n].waiting;
    t.nics[n].waiting = f;
    if last.is_none() {
        t.flow_rx[f].next_waiting = f;
    } else {
        t.flow_rx[f].next_waiting = t.flow_rx[last].next_waiting;
        t.flow_rx[last].next_waiting = f;
    }
}

/// Takes the first queue pair of NIC `n` that waits for a grant off the ring. PRECONDITION: there is one.
fn take_first(t: &mut Tables, n: NicIdx) -> FlowIdx {
    let last = t.nics[n].waiting;
    let first = t.flow_rx[last].next_waiting;
    if first == last {
        t.nics[n].waiting = FlowIdx::NONE;
    } else {
        t.flow_rx[last].next_waiting = t.flow_rx[first].next_waiting;
    }
    first
}

/// Gives credit to the queue pair of NIC `n` whose turn it is, if one waits, and sets the time of the next grant. Returns whether it did.
pub fn grant(t: &mut Tables, n: NicIdx, event: &EventKey) -> bool {
    if t.nics[n].waiting.is_none() {
        return false;
    }
    let row = &mut t.nics[n];
    let p = row.free_head;
    if p.is_none() {
        t.raise(flag::POOL_EMPTY);
        return false;
    }
    row.free_head = t.packets[p].next;
    row.free_n -= 1;
    let f = take_first(t, n);
    let e = &t.exps[0];
    let (grant, ack_bytes) = (e.credit_grant, e.ack_bytes);
    let gap = mul_shr(u64::from(grant) * t.nics[n].tx_full, u64::from(e.credit_stretch_q16), 16);
    let rx = &mut t.flow_rx[f];
    rx.given = rx.given.wrapping_add(grant);
    rx.wanted = rx.wanted.saturating_sub(grant);
    let (given, waits) = (rx.given, rx.wanted > 0);
    let pk = &mut t.packets[p];
    pk.flow = f;
    pk.meta = ack_bytes | (kind::ACK << meta::KIND_SHIFT) | meta::PULL;
    pk.set_records(PacketIdx::NONE);
    t.details[p].seq = u64::from(given);
    t.details[p].sent_at = event.t;
    if waits {
        wait_for_grant(t, n, f);
    }
    queue_answer(t, n, f, p);
    let row = &mut t.nics[n];
    row.timer = event.t + gap;
    row.timer_d = lineage(gap, &event.d);
    true
}
