//! Changes that a partition's lifetime, or a part of it, leaves: counters, final rows, pieces of a split.
//!
//! Layer: fold/memo. Data with local numbers.

use crate::rows::cc_state::timers_run;
use hyperfold_columns::{FlowRx, FlowTx, LinkEndIdx, NEVER, NicIdx, PortIdx, Tables, mode, qp};

/// Rows of a partition that go on as a partition of their own, and its working queue pairs, as local numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionPiece {
    pub nics: Vec<u32>,
    pub ports: Vec<u32>,
    pub ends: Vec<u32>,
    pub members: Vec<u32>,
    pub working: Vec<u32>,
    /// Ancestors of the piece: indices into the members' flow numbers and, after these, into the ancestors before the split.
    pub ancestors: Vec<u32>,
}

impl PartitionPiece {
    pub fn is_empty(&self) -> bool {
        self.nics.is_empty() && self.ports.is_empty() && self.members.is_empty()
    }
}

/// The gains of a queue pair's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterDelta {
    pub una: u64,
    pub sent_bytes: u64,
    pub arrived_bytes: u64,
    pub milestone: u64,
    pub n_sent: u32,
    pub n_acks: u32,
    /// Sum of the round-trip times in ps, and their number.
    pub rtt_sum: u64,
    pub rtt_seen: u32,
}

/// Final state of an episode, with local numbers.
#[derive(Debug, PartialEq)]
pub struct FinalState {
    /// Time in ps from the episode's start.
    pub at: u64,
    pub nics: Vec<NicFinal>,
    pub ports: Vec<PortDelta>,
    /// Maximum number of bytes that each ingress held.
    pub peaks: Vec<u32>,
    pub members: Vec<MemberFinal>,
}

impl FinalState {
    /// The number of packets that left ports until the end.
    pub fn hops(&self) -> u64 {
        let nics = self.nics.iter().map(|nic| nic.gained.hops).sum::<u64>();
        nics + self.ports.iter().map(|gained| gained.hops).sum::<u64>()
    }

    /// Memory that it takes, in bytes.
    pub fn bytes(nics: usize, ports: usize, members: usize) -> usize {
        nics * 64 + ports * 64 + members * size_of::<MemberFinal>()
    }
}

#[derive(Debug, PartialEq)]
pub struct NicFinal {
    pub gained: NicDelta,
    pub rr: u32,
    /// Queue pairs in round-robin order.
    pub order: Vec<u32>,
}

/// The gains of a NIC's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NicDelta {
    pub tx_bytes: u64,
    pub hops: u64,
    pub pauses: u32,
    pub paused_ps: u64,
}

impl NicDelta {
    /// Adds this to the counters of NIC `n`.
    pub fn count(&self, t: &mut Tables, n: NicIdx) {
        add_paused(t, n.end(), self.paused_ps);
        let row = &mut t.nics[n];
        row.tx_bytes += self.tx_bytes;
        row.hops += self.hops;
        row.pauses += self.pauses;
    }
}

/// The gains of a port's counters. `max_q` is the longest queue within the episode, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortDelta {
    pub tx_bytes: u64,
    pub hops: u64,
    pub max_q: u32,
    pub q_area: u64,
    pub marks: u64,
    pub pauses: u32,
    pub drops: u32,
    pub dropped_bytes: u64,
    pub paused_ps: u64,
}

impl PortDelta {
    /// Adds this to the counters of `port`.
    pub fn count(&self, t: &mut Tables, port: PortIdx) {
        add_paused(t, port.end(t.exps[0].nic_len), self.paused_ps);
        let row = &mut t.ports[port];
        row.tx_bytes += self.tx_bytes;
        row.hops += self.hops;
        row.max_q = row.max_q.max(self.max_q);
        row.q_area += self.q_area;
        row.marks += self.marks;
        row.pauses += self.pauses;
        row.drops += self.drops;
        row.dropped_bytes += self.dropped_bytes;
    }
}

/// Adds `gained` to the paused time of `end`, in ps.
fn add_paused(t: &mut Tables, end: LinkEndIdx, gained: u64) {
    let word = &mut t.pause_ps[end.usize()];
    *word = word.wrapping_add(gained);
}

/// The rows of a queue pair at the end of an episode, and at its start.
#[derive(Debug, PartialEq)]
pub struct MemberFinal {
    pub start: u64,
    pub tx: FlowTx,
    pub rx: FlowRx,
    pub tx_before: FlowTx,
    pub rx_before: FlowRx,
}

impl MemberFinal {
    /// The final rows of a queue pair whose rows were `tx` and `rx` when an equivalent episode began for it at `start` (ps).
    pub fn applied(&self, t: &Tables, tx: &FlowTx, rx: &FlowRx, start: u64) -> (FlowTx, FlowRx) {
        let (end, was) = (&self.tx, &self.tx_before);
        let anew = t.exps[0].modes & mode::FRESH_QP != 0 || was.flags & qp::CREATED == 0;
        // Packets that were sent again needlessly before the episode may still reach it; that was compared.
        let stood = FlowTx { flags: was.flags, next_avail: was.next_avail, rto_at: was.rto_at, ..*end } == *was;
        let heard = self.rx.arrived_bytes != self.rx_before.arrived_bytes || self.rx.n_acks != self.rx_before.n_acks;
        if end.size == was.size && was.snd_una >= was.size && (anew || !timers_run(t)) && stood && !heard {
            // It was only in its NIC's round-robin order; its other columns were not compared.
            let flags = (tx.flags & !qp::QUEUED) | (end.flags & qp::QUEUED) | qp::HELD;
            return (FlowTx { flags, ..*tx }, *rx);
        }
        let flags = end.flags | qp::HELD;
        let size = tx.size + (end.size - was.size);
        let time = |end: u64, was: u64, here: u64| match end {
            _ if end == was => here,
            NEVER => NEVER,
            _ => end.wrapping_sub(self.start).wrapping_add(start),
        };
        let seq = |end: u64, was: u64, here: u64| match end {
            _ if end == was => here,
            0 => 0,
            _ => end.wrapping_sub(self.tx.size).wrapping_add(size),
        };
        // Messages are chained once and for all: all pointers are at the first one that is not posted yet.
        let next = tx.msg_post;
        let next_end = size + if next.is_none() { 0 } else { t.tasks[next].bytes };
        let sender = FlowTx {
            size,
            snd_nxt: size,
            snd_una: size,
            next_avail: time(end.next_avail, was.next_avail, tx.next_avail),
            flags,
            path_first: tx.path_first,
            n_sent: tx.n_sent.wrapping_add(end.n_sent.wrapping_sub(was.n_sent)),
            t_alpha: time(end.t_alpha, was.t_alpha, tx.t_alpha),
            t_dec: time(end.t_dec, was.t_dec, tx.t_dec),
            t_inc: time(end.t_inc, was.t_inc, tx.t_inc),
            last_seq: seq(end.last_seq, was.last_seq, tx.last_seq),
            high_seq: seq(end.high_seq, was.high_seq, tx.high_seq),
            rto_at: time(end.rto_at, was.rto_at, tx.rto_at),
            start: tx.start,
            finish: tx.finish,
            sent_bytes: tx.sent_bytes + (end.sent_bytes - was.sent_bytes),
            rtt_sum: tx.rtt_sum + (end.rtt_sum - was.rtt_sum),
            rtt_seen: tx.rtt_seen.wrapping_add(end.rtt_seen.wrapping_sub(was.rtt_seen)),
            nic: tx.nic,
            flow_id: tx.flow_id,
            exp: tx.exp,
            msg_post: next,
            msg_send: next,
            msg_ack: next,
            send_end: next_end,
            ack_end: next_end,
            ..*end
        };
        let (end, was) = (&self.rx, &self.rx_before);
        let receiver = FlowRx {
            msg_end: next_end,
            expected: size,
            milestone: rx.milestone + (end.milestone - was.milestone),
            nack_t: time(end.nack_t, was.nack_t, rx.nack_t),
            cnp_t: time(end.cnp_t, was.cnp_t, rx.cnp_t),
            arrived_bytes: rx.arrived_bytes + (end.arrived_bytes - was.arrived_bytes),
            n_acks: rx.n_acks.wrapping_add(end.n_acks.wrapping_sub(was.n_acks)),
            msg: next,
            ..*rx
        };
        (sender, receiver)
    }
}
