//! Tasks: what a rank does, released by what it waits for (twin: `shaders/task.wgsl`). Part of system `nic`, which calls it for each event
//! that ends a task or a message.

use super::key::{EventKey, TASK, periodic};
use super::queue_pair;
use crate::columns::{
    EDGE_SIGNAL, FoldTrace, NEVER, NONE, SHARED_FLAGS, SHARED_FLOWS_LEFT, Tables, cc, flag, mode, qp, task,
};

/// Tasks that end at this instant, first released first.
struct Chain {
    head: u32,
    tail: u32,
    /// The last that got under way. Equal tasks are released in their order, so the next one's place is near.
    newest: u32,
}

impl Chain {
    const NEW: Chain = Chain { head: NONE, tail: NONE, newest: NONE };

    fn add(&mut self, t: &mut Tables, i: u32) {
        t.tasks[i as usize].next = NONE;
        if self.tail == NONE {
            self.head = i;
        } else {
            t.tasks[self.tail as usize].next = i;
        }
        self.tail = i;
    }
}

/// Takes the first of NIC `n`'s tasks under way off its list.
pub fn take(t: &mut Tables, n: u32) -> u32 {
    let row = &mut t.nics[n as usize];
    let i = row.task_head;
    let next = t.tasks[i as usize].next;
    row.task_head = next;
    row.next_task = if next == NONE { NEVER } else { t.tasks[next as usize].at };
    i
}

/// Whether the first of NIC `n`'s tasks under way is a message on a queue pair that folding holds back.
#[inline]
pub fn is_held(t: &Tables, n: u32) -> bool {
    let row = &t.tasks[t.nics[n as usize].task_head as usize];
    row.flags & task::MESSAGE != 0 && t.flow_tx[row.flow as usize].flags & qp::HELD != 0
}

/// Tells folding, if it listens.
#[inline]
pub fn note(t: &mut Tables, what: FoldTrace) {
    if t.exps[0].modes & mode::TRACED != 0 {
        t.fold_trace.push(what);
    }
}

/// The first of NIC `n`'s tasks under way is due. Returns whether the NIC may have something to send, as `post` does.
pub fn due(t: &mut Tables, n: u32, at: &EventKey) -> bool {
    let i = take(t, n);
    if t.tasks[i as usize].flags & task::MESSAGE != 0 {
        t.tasks[i as usize].flags |= task::READY;
        return post(t, n, t.tasks[i as usize].flow, at);
    }
    let mut chain = Chain::NEW;
    chain.add(t, i);
    drain(t, n, at, &mut chain);
    false
}

/// Message `i` has arrived whole at NIC `n`. Where folding simulates again what it had skipped, its tasks were released then.
pub fn delivered(t: &mut Tables, n: u32, i: u32, at: &EventKey) {
    let row = &mut t.tasks[i as usize];
    if row.got != NEVER {
        note(t, FoldTrace::DeliveredAgain { task: i, at: at.t });
        return;
    }
    row.got = at.t;
    let (first, count) = (row.got_first, row.got_n);
    let mut chain = Chain::NEW;
    release_all(t, n, first, count, at, &mut chain);
    drain(t, n, at, &mut chain);
    note(t, FoldTrace::Delivered(i));
}

/// Messages from `from` up to but not `until`, one after another on a queue pair of NIC `n`, are acknowledged.
pub fn acknowledged(t: &mut Tables, n: u32, from: u32, until: u32, at: &EventKey) {
    let mut chain = Chain::NEW;
    let mut i = from;
    while i != until {
        if t.tasks[i as usize].done == NEVER {
            end(t, n, i, at, &mut chain);
            note(t, FoldTrace::Acked(i));
        }
        i = t.tasks[i as usize].follow;
    }
    drain(t, n, at, &mut chain);
}

/// Ends tasks until none ends at this instant any more.
fn drain(t: &mut Tables, n: u32, at: &EventKey, chain: &mut Chain) {
    while chain.head != NONE {
        let i = chain.head;
        chain.head = t.tasks[i as usize].next;
        if chain.head == NONE {
            chain.tail = NONE;
        }
        end(t, n, i, at, chain);
    }
}

/// Task `i` ends.
fn end(t: &mut Tables, n: u32, i: u32, at: &EventKey, chain: &mut Chain) {
    let row = &mut t.tasks[i as usize];
    row.done = at.t;
    let (first, count) = (row.done_first, row.done_n);
    t.shared[SHARED_FLOWS_LEFT as usize] -= 1;
    release_all(t, n, first, count, at, chain);
}

/// Takes one dependency from everything that `count` edges from `first` on lead to.
fn release_all(t: &mut Tables, n: u32, first: u32, count: u32, at: &EventKey, chain: &mut Chain) {
    for k in first..first + count {
        let edge = t.edges[k as usize];
        if edge & EDGE_SIGNAL != 0 {
            let s = edge & !EDGE_SIGNAL;
            t.signals[s as usize].at = at.t;
            t.signals[s as usize].next = t.nics[n as usize].signals;
            t.nics[n as usize].signals = s;
            t.shared[SHARED_FLAGS as usize] |= flag::SIGNALS;
        } else {
            let row = &mut t.tasks[edge as usize];
            row.waits -= 1;
            if row.waits == 0 {
                release(t, n, edge, at, chain);
            }
        }
    }
}

/// Nothing keeps task `i` any more: it gets under way, or, no message and without delay, ends at once.
fn release(t: &mut Tables, n: u32, i: u32, at: &EventKey, chain: &mut Chain) {
    let row = &mut t.tasks[i as usize];
    row.at = at.t + row.delay;
    if row.delay > 0 || row.flags & task::MESSAGE != 0 {
        insert(t, n, i, chain.newest);
        chain.newest = i;
    } else {
        chain.add(t, i);
    }
}

/// Puts task `i`, whose time is set, among NIC `n`'s tasks under way.
pub fn under_way(t: &mut Tables, n: u32, i: u32) {
    insert(t, n, i, NONE);
}

/// The same, looking for its place from `near` on, one of them, if that comes before it.
fn insert(t: &mut Tables, n: u32, i: u32, near: u32) {
    let new = rank(t, i);
    let (mut last, mut next) = (NONE, t.nics[n as usize].task_head);
    if near != NONE && rank(t, near) < new {
        (last, next) = (near, t.tasks[near as usize].next);
    }
    while next != NONE && rank(t, next) < new {
        last = next;
        next = t.tasks[next as usize].next;
    }
    t.tasks[i as usize].next = next;
    if last == NONE {
        t.nics[n as usize].task_head = i;
        t.nics[n as usize].next_task = t.tasks[i as usize].at;
    } else {
        t.tasks[last as usize].next = i;
    }
}

/// The order of tasks: that of their [`key`]s, in which nothing else differs.
#[inline]
fn rank(t: &Tables, i: u32) -> (u64, u32, u32) {
    let row = &t.tasks[i as usize];
    (row.at, row.root, i)
}

/// The event of task `i`: the past does not matter to it, so that the same work goes the same way whatever went before.
pub fn key(t: &Tables, i: u32) -> EventKey {
    let row = &t.tasks[i as usize];
    EventKey { t: row.at, d: periodic(0, 0, row.root), kind: TASK, entity: i }
}

/// Posts what may be posted on queue pair `f`, in its order. Returns whether the NIC may have something new to send: not if all of it waits
/// behind unsent bytes, unless every message starts with new congestion-control state.
fn post(t: &mut Tables, n: u32, f: u32, at: &EventKey) -> bool {
    let fresh = t.exps[0].modes & mode::FRESH_QP != 0;
    let (mut posted, mut must_kick) = (false, false);
    loop {
        let i = t.flow_tx[f as usize].msg_post;
        if i == NONE || t.tasks[i as usize].flags & task::READY == 0 {
            break;
        }
        let tx = &t.flow_tx[f as usize];
        must_kick |= fresh || tx.snd_nxt >= tx.size;
        start(t, n, f, at);
        let row = &mut t.tasks[i as usize];
        row.at = at.t;
        let tx = &mut t.flow_tx[f as usize];
        tx.size += row.bytes;
        tx.msg_post = row.follow;
        note(t, FoldTrace::Posted { task: i, first: !posted });
        posted = true;
    }
    must_kick
}

/// As [`due`] for a message, but nothing is sent. Every message that can be posted on its queue pair is added to `posted`, with whether it
/// is the first of them.
pub fn due_unseen(t: &mut Tables, n: u32, at: u64, posted: &mut Vec<(u32, bool)>) {
    let i = take(t, n);
    t.tasks[i as usize].flags |= task::READY;
    let f = t.tasks[i as usize].flow as usize;
    let mut first = true;
    loop {
        let i = t.flow_tx[f].msg_post;
        if i == NONE || t.tasks[i as usize].flags & task::READY == 0 {
            return;
        }
        t.tasks[i as usize].at = at;
        t.flow_tx[f].msg_post = t.tasks[i as usize].follow;
        posted.push((i, first));
        first = false;
    }
}

/// A message is about to be posted on queue pair `f`, which joins the NIC's order. A new queue pair sends at line rate, as does each where
/// messages start with new state. An idle one forgets telemetry and round-trip times, which say nothing after a pause.
fn start(t: &mut Tables, n: u32, f: u32, at: &EventKey) {
    let e = &t.exps[0];
    let fresh = e.modes & mode::FRESH_QP != 0;
    let remembers = e.cc == cc::HPCC || e.cc == cc::TIMELY;
    let tx = &mut t.flow_tx[f as usize];
    if tx.flags & qp::CREATED == 0 {
        queue_pair::create(t, n, f, at.t);
    } else if fresh {
        queue_pair::reset_cc(t, n, f);
    } else if remembers && tx.snd_una >= tx.size {
        tx.last_seq = 0;
    }
    let tx = &mut t.flow_tx[f as usize];
    tx.flags &= !qp::FINISHED;
    if tx.flags & qp::QUEUED == 0 {
        tx.next_avail = tx.next_avail.max(at.t);
        queue_pair::join_order(t, n, f);
    }
}
