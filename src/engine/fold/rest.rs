//! A partition comes to rest: what it leaves behind is remembered, or written into rows that stood still.

use std::sync::Arc;

use super::canon::timers_run;
use super::carry;
use super::cut::port_gain;
use super::memo::{Leaf, MemberEnd, NicEnd};
use super::part::Part;
use super::run::Run;
use crate::columns::{FlowRx, FlowTx, NEVER, NONE, Tables, mode, qp};
use crate::engine::cpu::nic;

impl Run {
    /// The outcome of `p`, if the memo says that it is at rest by `at`.
    pub(super) fn rested(&self, p: u32, at: u64) -> Option<Arc<Leaf>> {
        let part = &self.parts[p as usize];
        let script = part.script.as_ref()?;
        let body = script.node.body();
        let leaf = body.end.as_ref().filter(|_| body.cut.is_none())?;
        (script.cursor == body.told.len() && part.start + leaf.at <= at).then(|| Arc::clone(leaf))
    }

    /// Looked-up partition `p` is at rest.
    pub(super) fn rest(&mut self, t: &mut Tables, p: u32, leaf: &Leaf) {
        self.stats.hits += 1;
        self.restore_members(t, p);
        let part = &self.parts[p as usize];
        for (&n, end) in part.nics.iter().zip(&leaf.nics) {
            let row = &mut t.nics[n as usize];
            row.tx_bytes += end.tx_bytes;
            row.hops += end.hops;
            row.rr = end.rr;
            row.qp_n = end.order.len() as u32;
            for (k, &m) in end.order.iter().enumerate() {
                t.order[row.flow_first as usize + k] = part.members[m as usize].flow;
            }
        }
        for (&port, end) in part.ports.iter().zip(&leaf.ports) {
            end.count(&mut t.ports[port as usize]);
        }
        for (m, end) in part.members.iter().zip(&leaf.members) {
            let f = m.flow as usize;
            let (tx, rx) = end.applied(t, &t.flow_tx[f], &t.flow_rx[f], part.start);
            t.flow_tx[f] = carry::keep(t, &t.flow_tx[f], tx);
            t.flow_rx[f] = rx;
        }
        self.calm.tell(t, part.start, part.start + leaf.at, &part.ends, &leaf.peaks);
        self.dissolve(t, p);
    }

    /// Simulated partition `p` is at rest since before `end`: the memo keeps what came of it.
    pub(super) fn keep(&mut self, t: &Tables, p: u32, end: u64) {
        let part = &self.parts[p as usize];
        self.stats.simulated +=
            part.nics.iter().zip(&part.nic_base).map(|(&n, base)| t.nics[n as usize].hops - base.1).sum::<u64>();
        self.stats.simulated +=
            part.ports.iter().zip(&part.port_base).map(|(&q, base)| t.ports[q as usize].hops - base.hops).sum::<u64>();
        let (Some(script), Some(memo)) = (&part.script, &self.memo) else { return };
        let size = Leaf::bytes(part.nics.len(), part.ports.len(), part.members.len());
        let mut body = script.node.body();
        if body.end.is_none() && memo.room(size) {
            let leaf = self.leaf(t, part, end);
            body.known = body.known.max(leaf.at);
            body.end = Some(Arc::new(leaf));
        }
    }

    fn leaf(&self, t: &Tables, part: &Part, end: u64) -> Leaf {
        let nic = |(&n, &(tx_bytes, hops)): (&u32, &(u64, u64))| {
            let row = &t.nics[n as usize];
            let turn = &t.order[row.flow_first as usize..(row.flow_first + row.qp_n) as usize];
            NicEnd {
                tx_bytes: row.tx_bytes - tx_bytes,
                hops: row.hops - hops,
                rr: row.rr,
                order: turn.iter().map(|&f| self.member[f as usize]).collect(),
            }
        };
        let port = |(&p, base): (&u32, &super::part::PortBase)| port_gain(t, p, base);
        let member = |m: &super::part::Member| MemberEnd {
            start: part.start,
            tx: t.flow_tx[m.flow as usize],
            rx: t.flow_rx[m.flow as usize],
            tx_before: m.tx,
            rx_before: m.rx,
        };
        Leaf {
            at: end - part.start,
            nics: part.nics.iter().zip(&part.nic_base).map(nic).collect(),
            ports: part.ports.iter().zip(&part.port_base).map(port).collect(),
            peaks: part.peaks.clone(),
            members: part.members.iter().map(member).collect(),
        }
    }

    /// Partition `p` is at rest: its rows are idle again.
    pub(super) fn dissolve(&mut self, t: &mut Tables, p: u32) {
        let part = std::mem::replace(&mut self.parts[p as usize], Part::new(0));
        self.spare.push(p);
        for m in &part.members {
            self.member[m.flow as usize] = NONE;
            t.flow_tx[m.flow as usize].flags |= qp::HELD;
        }
        for (&port, base) in part.ports.iter().zip(&part.port_base) {
            self.port_part[port as usize] = NONE;
            let row = &mut t.ports[port as usize];
            row.max_q = row.max_q.max(base.max_q);
            // A transmission that ended unseen.
            row.busy = 0;
        }
        for &n in &part.nics {
            self.nic_part[n as usize] = NONE;
            // A deadline that nothing waits for any more.
            t.nics[n as usize].rto = NEVER;
            nic::set_clock(t, n);
            self.call(t, n);
        }
    }
}

impl MemberEnd {
    /// The rows of a queue pair that were `tx` and `rx` when a like episode began for it at `start`.
    fn applied(&self, t: &Tables, tx: &FlowTx, rx: &FlowRx, start: u64) -> (FlowTx, FlowRx) {
        let (end, was) = (&self.tx, &self.tx_before);
        let anew = t.exps[0].modes & mode::FRESH_QP != 0 || was.flags & qp::CREATED == 0;
        // What was sent in vain before the episode may still come to it, though: that was compared.
        let stood = FlowTx { flags: was.flags, next_avail: was.next_avail, rto_at: was.rto_at, ..*end } == *was;
        let heard = self.rx.arrived_bytes != self.rx_before.arrived_bytes || self.rx.n_acks != self.rx_before.n_acks;
        if end.size == was.size && was.snd_una >= was.size && (anew || !timers_run(t)) && stood && !heard {
            // It only stood in its NIC's turn; what else it is was not compared.
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
        // Messages are chained for good: the first that is not posted yet is where all pointers stand.
        let next = tx.msg_post;
        let until = size + if next == NONE { 0 } else { t.tasks[next as usize].bytes };
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
            nic: tx.nic,
            flow_id: tx.flow_id,
            exp: tx.exp,
            msg_post: next,
            msg_send: next,
            msg_ack: next,
            send_end: until,
            ack_end: until,
            ..*end
        };
        let (end, was) = (&self.rx, &self.rx_before);
        let receiver = FlowRx {
            msg_end: until,
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
