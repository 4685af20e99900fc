//! The bytes of a queue pair: where its messages begin, and how far they are acknowledged (twin: `shaders/stream.wgsl`).

use hyperfold_columns::{Exp, FlowIdx, Tables, mode};

/// Whether receivers of the experiment take packets in any order.
#[inline]
pub fn takes_any_order(e: &Exp) -> bool {
    e.modes & mode::SELECTIVE != 0
}

/// Whether receivers and senders are those of Ultra Ethernet, which take packets in any order too.
#[inline]
pub fn is_uec(e: &Exp) -> bool {
    e.modes & mode::UEC != 0
}

/// Whether senders need credit from their receivers.
#[inline]
pub fn takes_credit(e: &Exp) -> bool {
    e.modes & mode::CREDIT != 0
}

/// Bytes of a full packet on the wire.
#[inline]
pub fn full_wire(e: &Exp) -> u64 {
    (e.payload + e.data_overhead) as u64
}

/// The byte at which a message begins that follows one which ends at byte `end`. Where packets are taken in any order, it is a multiple of the payload.
#[inline]
pub fn next_start(e: &Exp, end: u64) -> u64 {
    if takes_any_order(e) { end.next_multiple_of(e.payload as u64) } else { end }
}

/// Moves the oldest unacknowledged byte of queue pair `f` to `una`, and with it the oldest message that is not acknowledged.
#[inline(always)]
pub fn reach(t: &mut Tables, f: FlowIdx, una: u64) {
    let e = &t.exps[0];
    let tx = &mut t.flow_tx[f];
    tx.snd_una = una;
    tx.retries = 0;
    tx.stalls = 0;
    while tx.msg_ack.is_some() && una >= tx.ack_end {
        tx.msg_ack = t.tasks[tx.msg_ack].follow;
        if tx.msg_ack.is_some() {
            tx.ack_end = next_start(e, tx.ack_end) + t.tasks[tx.msg_ack].bytes;
        }
    }
}
