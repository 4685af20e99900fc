//! Changes of the network between two steps: links that fail or come back, new paths, rates, and losses. The rules are those of
//! `docs/explanation/model-semantics.md`, from "Links that fail" on.
//!
//! An experiment stops at the time of its next change ([`super::stops`]). So no system knows of changes, and every engine makes them here.

use crate::cpu::advance::return_record;
use crate::cpu::cc::{dcqcn, hpcc};
use crate::cpu::classes::{class_queue, has_classes};
use crate::cpu::key::{EventKey, periodic};
use crate::cpu::lists::wire_push;
use crate::cpu::nic::set_clock;
use crate::cpu::switch::class_port::{note_sendable, port_queue_row};
use crate::cpu::switch::egress::drop_packet;
use crate::cpu::switch::port_queue::has_port_queues;
use crate::cpu::task;
use crate::cpu::transport::queue_pair::join_order;
use crate::cpu::transport::rate::set_rate;
use crate::restart_port::kick;
use crate::watchdog;
use hyperfold_columns::{
    EndOwner, FLOWS_LEFT, FlowIdx, HANDED_OVER, HOLDS, LINK_DOWN, LINK_LOSES, LinkEndIdx, NEVER, NicIdx, PacketIdx,
    PortIdx, RateColumns, TableChange, Tables, TaskIdx, cc, kind, loss, meta, qp,
};

/// Makes all changes of the time `now`, which is that of the next one.
///
/// PRECONDITION: `t` holds one experiment, which has stopped with everything before that time done.
pub(crate) fn make(t: &mut Tables, now: u64) {
    t.exps[0].now = now;
    let mut cut_off = Vec::new();
    while t.changes.next_time() == Some(now) {
        let (_, change) = t.changes.list[t.changes.next];
        t.changes.next += 1;
        match change {
            TableChange::LinkDown(ends) => {
                for (end, peer) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                    lose_wire(t, end, peer);
                    cut_off.extend(link_down(t, end, peer, now));
                }
            }
            TableChange::LinkUp(ends) => ends.into_iter().for_each(|end| link_up(t, end, now)),
            TableChange::NewPaths { flow, data, answers } => {
                let has_telemetry = t.exps[0].cc == cc::HPCC;
                move_sender(t, flow, data.nic, now);
                move_receiver(t, flow, answers.nic);
                let tx = &mut t.flow_tx[flow];
                (tx.path_first, tx.path_len, tx.n_paths) = (data.first, data.len, data.n);
                if has_telemetry {
                    (tx.last_seq, tx.high_seq) = (0, tx.snd_nxt);
                }
                let rx = &mut t.flow_rx[flow];
                (rx.path_first, rx.path_len, rx.n_paths) = (answers.first, answers.len, answers.n);
            }
            TableChange::MoveTasks { home, to } => move_tasks(t, home, to),
            TableChange::Rate { end, columns } => change_rate(t, end, &columns, now),
            TableChange::Loss { end, share_q32 } => change_loss(t, end, share_q32),
        }
    }
    for port in cut_off {
        kick(t, port, now);
    }
}

/// Loses what is on the wire to `end`, which `peer` has sent.
fn lose_wire(t: &mut Tables, end: LinkEndIdx, peer: LinkEndIdx) {
    let nics = t.exps[0].nic_len;
    let counted = match (peer.owner(nics), end.owner(nics)) {
        (EndOwner::Port(port), _) | (_, EndOwner::Port(port)) => port,
        (EndOwner::Nic(_), EndOwner::Nic(_)) => unreachable!("a link between two hosts does not fail"),
    };
    let wire = &mut t.wires[end];
    let mut p = wire.head;
    (wire.head, wire.tail, wire.n) = (PacketIdx::NONE, PacketIdx::NONE, 0);
    t.clocks[end.usize()] = NEVER;
    while p.is_some() {
        let next = t.packets[p].next;
        // What another NIC has handed over is not on the link.
        match t.packets[p].path {
            HANDED_OVER => wire_push(t, end, p),
            _ => drop_packet(t, counted, p),
        }
        p = next;
    }
}

/// Changes `end` as the failure of its link at `now` does. Returns the port there, which is not paused any more; `None`: it is a NIC.
fn link_down(t: &mut Tables, end: LinkEndIdx, peer: LinkEndIdx, now: u64) -> Option<PortIdx> {
    t.count_pause(end, t.open_pauses(end), true, now);
    let port = match end.owner(t.exps[0].nic_len) {
        EndOwner::Nic(n) => {
            t.nics[n].paused = HOLDS;
            for class in 0..t.exps[0].class_n {
                let i = class_queue(&t.exps[0], end, class);
                t.class_queues[i].paused = 0;
            }
            return None;
        }
        EndOwner::Port(port) => port,
    };
    let row = &mut t.ports[port];
    debug_assert_eq!(row.other_end(), peer);
    row.peer.0 |= LINK_DOWN;
    row.paused = 0;
    let mut frame = PacketIdx::NONE;
    if !has_port_queues(&t.exps[0]) {
        frame = row.frame_head;
        (row.frame_head, row.frame_tail, row.frames) = (PacketIdx::NONE, PacketIdx::NONE, 0);
    }
    let counts_pauses = !has_port_queues(&t.exps[0]);
    if counts_pauses && row.pausing != 0 {
        row.pausing = 0;
        if row.headroom_used == 0 {
            t.switches[row.switch_idx].congested_n -= 1;
        }
    }
    if has_classes(&t.exps[0]) {
        end_pauses(t, port);
    }
    watchdog::forget(t, port);
    while frame.is_some() {
        debug_assert_eq!((t.packets[frame].meta >> meta::KIND_SHIFT) & meta::KIND_MASK, kind::FRAME);
        frame = return_record(t, frame);
    }
    Some(port)
}

/// Ends all pauses at `port`, whose link has failed. It has not paused its peer any more.
fn end_pauses(t: &mut Tables, port: PortIdx) {
    for class in 0..t.exps[0].class_n {
        let i = port_queue_row(&t.exps[0], port, class);
        let row = &mut t.class_queues[i];
        row.paused = 0;
        if row.pausing != 0 {
            row.pausing = 0;
            if row.headroom_used == 0 {
                t.switches[t.ports[port].switch_idx].congested_n -= 1;
            }
        }
    }
    note_sendable(t, port);
}

/// Changes `end` as the return of its link does.
fn link_up(t: &mut Tables, end: LinkEndIdx, now: u64) {
    match end.owner(t.exps[0].nic_len) {
        EndOwner::Nic(n) => resume_nic(t, n, now),
        EndOwner::Port(port) => t.ports[port].peer.0 &= !LINK_DOWN,
    }
}

/// Gives `end` another rate. What it is transmitting goes on at the old one.
fn change_rate(t: &mut Tables, end: LinkEndIdx, new: &RateColumns, now: u64) {
    match end.owner(t.exps[0].nic_len) {
        EndOwner::Port(port) => {
            let row = &mut t.ports[port];
            (row.rate, row.tx_full, row.tx_ack) = (new.rate, new.tx_full, new.tx_ack);
            row.rate_idx = new.rate_idx;
        }
        EndOwner::Nic(n) => {
            let old = t.nics[n].rate;
            let queue_pairs = queue_pairs_of(t, n);
            for &f in &queue_pairs {
                if t.exps[0].cc == cc::DCQCN {
                    dcqcn::advance_until(t, f, now);
                }
            }
            let row = &mut t.nics[n];
            (row.rate, row.tx_full, row.tx_ack) = (new.rate, new.tx_full, new.tx_ack);
            for f in queue_pairs {
                if t.flow_tx[f].flags & qp::CREATED != 0 {
                    follow_line_rate(t, n, f, old, now);
                }
            }
            set_clock(t, n);
        }
    }
}

/// The queue pairs of NIC `n`: those that it began with, without those that have moved away, and those that have moved there and may still send.
fn queue_pairs_of(t: &Tables, n: NicIdx) -> Vec<FlowIdx> {
    let row = &t.nics[n];
    let own = row.flow_first.places(row.flow_n);
    let moved_here = t.order[row.flow_first.places(row.qp_n)].iter().copied().filter(|f| !own.contains(&f.usize()));
    row.flow_first.run(row.flow_n).filter(|&f| t.flow_tx[f].nic == n).chain(moved_here).collect()
}

/// Changes the rates of queue pair `f` as its NIC's rate has changed from `old`: one that nothing else limited has the new rate, and none is above it.
fn follow_line_rate(t: &mut Tables, n: NicIdx, f: FlowIdx, old: u64, now: u64) {
    let line = t.nics[n].rate;
    let followed = |rate: u64| if rate == old || rate > line { line } else { rate };
    let control = t.exps[0].cc;
    let tx = &mut t.flow_tx[f];
    if control == cc::DCQCN {
        tx.target = followed(tx.target);
    }
    if control == cc::HPCC {
        tx.rc = followed(tx.rc);
    }
    let rate = followed(tx.rate);
    match control {
        // Their windows follow from the NIC's rate at the next answer, or not at all.
        cc::NSCC | cc::RCCC => tx.rate = rate,
        cc::HPCC if tx.last_wire > 0 => hpcc::change_rate(
            t,
            n,
            f,
            rate,
            &EventKey { t: now, d: periodic(u32::MAX, u32::MAX, 0), kind: 0, entity: 0 },
        ),
        _ => set_rate(t, f, rate, line),
    }
}

/// Moves the sending end of queue pair `f` to NIC `to`, where it is the last in turn. What it has sent and has not sent stays as it is.
fn move_sender(t: &mut Tables, f: FlowIdx, to: NicIdx, now: u64) {
    let from = t.flow_tx[f].nic;
    if from == to {
        return;
    }
    let old_rate = t.nics[from].rate;
    if t.exps[0].cc == cc::DCQCN {
        dcqcn::advance_until(t, f, now);
    }
    t.nics[from].peer.0 |= FLOWS_LEFT;
    t.flow_tx[f].nic = to;
    if t.flow_tx[f].flags & qp::CREATED != 0 {
        follow_line_rate(t, to, f, old_rate, now);
    }
    if t.flow_tx[f].flags & qp::QUEUED == 0 {
        return;
    }
    leave_order(t, from, f);
    join_order(t, to, f);
    let deadline = t.flow_tx[f].rto_at;
    t.nics[to].rto = t.nics[to].rto.min(deadline);
    // The NIC that it leaves looks too: its timer may not be armed because answers to this queue pair would have made it look.
    for n in [from, to] {
        let row = &mut t.nics[n];
        (row.timer, row.timer_d) = (now, periodic(u32::MAX, u32::MAX, 0));
        set_clock(t, n);
    }
}

/// Takes queue pair `f` out of the turns of NIC `n`. The index of the one served last stays.
fn leave_order(t: &mut Tables, n: NicIdx, f: FlowIdx) {
    let row = &mut t.nics[n];
    let turns = row.flow_first.places(row.qp_n);
    let place = t.order[turns.clone()].iter().position(|&queued| queued == f).expect("it is in its NIC's order");
    row.qp_n -= 1;
    t.order.copy_within(turns.start + place + 1..turns.end, turns.start + place);
}

/// Moves the receiving end of queue pair `f` to NIC `to`.
fn move_receiver(t: &mut Tables, f: FlowIdx, to: NicIdx) {
    let from = t.flow_rx[f].nic;
    if from != to {
        t.nics[from].peer.0 |= FLOWS_LEFT;
        t.flow_rx[f].nic = to;
    }
}

/// Moves the tasks that began at NIC `home` to NIC `to`, those under way included. Their queue pairs move at the same time.
fn move_tasks(t: &mut Tables, home: NicIdx, to: NicIdx) {
    let homes = std::mem::take(&mut t.changes.task_homes);
    let mut from = home;
    for (i, _) in homes.iter().enumerate().filter(|&(_, &own)| own == home) {
        let row = &mut t.tasks[TaskIdx::new(i)];
        from = row.owner;
        row.owner = to;
    }
    if from != to {
        let mut i = t.nics[from].task_head;
        (t.nics[from].task_head, t.nics[from].next_task) = (TaskIdx::NONE, NEVER);
        while i.is_some() {
            let next = t.tasks[i].next;
            let owner = t.tasks[i].owner;
            task::under_way(t, owner, i);
            i = next;
        }
        [from, to].into_iter().for_each(|n| set_clock(t, n));
    }
    t.changes.task_homes = homes;
}

/// Makes what `end` sends get lost with probability `share_q32`, in units of 2^-32.
fn change_loss(t: &mut Tables, end: LinkEndIdx, share_q32: u32) {
    let word = t.exps[0].loss_words(end) + loss::SHARE as usize;
    t.shared[word] = share_q32;
    let peer = match end.owner(t.exps[0].nic_len) {
        EndOwner::Nic(n) => &mut t.nics[n].peer,
        EndOwner::Port(port) => &mut t.ports[port].peer,
    };
    match share_q32 {
        0 => peer.0 &= !LINK_LOSES,
        _ => peer.0 |= LINK_LOSES,
    }
}

/// Lets NIC `n` send again.
fn resume_nic(t: &mut Tables, n: NicIdx, now: u64) {
    let row = &mut t.nics[n];
    row.paused = 0;
    (row.timer, row.timer_d) = (now, periodic(u32::MAX, u32::MAX, 0));
    set_clock(t, n);
}
