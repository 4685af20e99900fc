//! A partition comes to rest: what it leaves behind is remembered, or written into rows that stood still.

use std::sync::Arc;

use crate::columns::{FlowRx, FlowTx, NEVER, NONE, Tables, mode, qp};
use crate::engine::cpu::nic;
use crate::engine::fold::memo::table::{FinalState, MemberFinal, NicFinal};
use crate::engine::fold::rows::canonical_key::timers_run;
use crate::engine::fold::rows::cc_state;
use crate::engine::fold::run::checkpoint::port_delta;
use crate::engine::fold::run::partition::Partition;
use crate::engine::fold::run::turns::Run;

impl Run {
    /// The outcome of `p`, if the memo says that it is at rest by `at`.
    pub(in crate::engine::fold) fn final_state_by(&self, p: u32, at: u64) -> Option<Arc<FinalState>> {
        let partition = &self.partitions[p as usize];
        let cursor = partition.cursor.as_ref()?;
        let body = cursor.node.body();
        let final_state = body.end.as_ref().filter(|_| body.checkpoint.is_none())?;
        (cursor.next_event == body.events.len() && partition.start + final_state.at <= at)
            .then(|| Arc::clone(final_state))
    }

    /// Looked-up partition `p` is at rest.
    pub(in crate::engine::fold) fn retire_looked_up(&mut self, t: &mut Tables, p: u32, final_state: &FinalState) {
        self.stats.hits += 1;
        self.restore_members(t, p);
        let partition = &self.partitions[p as usize];
        for (&n, end) in partition.nics.iter().zip(&final_state.nics) {
            let row = &mut t.nics[n as usize];
            row.tx_bytes += end.tx_bytes;
            row.hops += end.hops;
            row.rr = end.rr;
            row.qp_n = end.order.len() as u32;
            for (k, &m) in end.order.iter().enumerate() {
                t.order[row.flow_first as usize + k] = partition.members[m as usize].flow;
            }
        }
        for (&port, end) in partition.ports.iter().zip(&final_state.ports) {
            end.count(&mut t.ports[port as usize]);
        }
        for (m, end) in partition.members.iter().zip(&final_state.members) {
            let f = m.flow as usize;
            let (tx, rx) = end.applied(t, &t.flow_tx[f], &t.flow_rx[f], partition.start);
            t.flow_tx[f] = cc_state::kept_or_own(t, &t.flow_tx[f], tx);
            t.flow_rx[f] = rx;
        }
        self.guard.report_peaks(
            t,
            partition.start,
            partition.start + final_state.at,
            &partition.ends,
            &final_state.peaks,
        );
        self.dissolve(t, p);
    }

    /// Simulated partition `p` is at rest since before `end`: the memo keeps what came of it.
    pub(in crate::engine::fold) fn record_final_state(&mut self, t: &Tables, p: u32, end: u64) {
        let partition = &self.partitions[p as usize];
        self.stats.hops_simulated += partition
            .nics
            .iter()
            .zip(&partition.nic_base)
            .map(|(&n, base)| t.nics[n as usize].hops - base.1)
            .sum::<u64>();
        self.stats.hops_simulated += partition
            .ports
            .iter()
            .zip(&partition.port_base)
            .map(|(&q, base)| t.ports[q as usize].hops - base.hops)
            .sum::<u64>();
        let (Some(cursor), Some(memo)) = (&partition.cursor, &self.memo) else { return };
        let size = FinalState::bytes(partition.nics.len(), partition.ports.len(), partition.members.len());
        let mut body = cursor.node.body();
        if body.end.is_none() && memo.room(size) {
            let final_state = self.final_state(t, partition, end);
            body.known = body.known.max(final_state.at);
            body.end = Some(Arc::new(final_state));
        }
    }

    fn final_state(&self, t: &Tables, partition: &Partition, end: u64) -> FinalState {
        let nic = |(&n, &(tx_bytes, hops)): (&u32, &(u64, u64))| {
            let row = &t.nics[n as usize];
            let turn = &t.order[row.flow_first as usize..(row.flow_first + row.qp_n) as usize];
            NicFinal {
                tx_bytes: row.tx_bytes - tx_bytes,
                hops: row.hops - hops,
                rr: row.rr,
                order: turn.iter().map(|&f| self.member[f as usize]).collect(),
            }
        };
        let port = |(&p, base): (&u32, &crate::engine::fold::run::partition::PortBase)| port_delta(t, p, base);
        let member = |m: &crate::engine::fold::run::partition::Member| MemberFinal {
            start: partition.start,
            tx: t.flow_tx[m.flow as usize],
            rx: t.flow_rx[m.flow as usize],
            tx_before: m.tx,
            rx_before: m.rx,
        };
        FinalState {
            at: end - partition.start,
            nics: partition.nics.iter().zip(&partition.nic_base).map(nic).collect(),
            ports: partition.ports.iter().zip(&partition.port_base).map(port).collect(),
            peaks: partition.peaks.clone(),
            members: partition.members.iter().map(member).collect(),
        }
    }

    /// Partition `p` is at rest: its rows are idle again.
    pub(in crate::engine::fold) fn dissolve(&mut self, t: &mut Tables, p: u32) {
        let partition = std::mem::replace(&mut self.partitions[p as usize], Partition::new(0));
        self.spare.push(p);
        for m in &partition.members {
            self.member[m.flow as usize] = NONE;
            t.flow_tx[m.flow as usize].flags |= qp::HELD;
        }
        for (&port, base) in partition.ports.iter().zip(&partition.port_base) {
            self.port_partition[port as usize] = NONE;
            let row = &mut t.ports[port as usize];
            row.max_q = row.max_q.max(base.max_q);
            // A transmission that ended unseen.
            row.busy = 0;
        }
        for &n in &partition.nics {
            self.nic_partition[n as usize] = NONE;
            // A deadline that nothing waits for any more.
            t.nics[n as usize].rto = NEVER;
            nic::set_clock(t, n);
            self.schedule_nic(t, n);
        }
    }
}

impl MemberFinal {
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
