//! Tasks of a rank, each released by the tasks it waits for (twin: `shaders/task.wgsl`). Part of system `nic`, which calls it for each event that
//! ends a task or a message.

use super::key::{EventKey, TASK, periodic};
use super::transport::{credit, queue_pair, stream};
use hyperfold_columns::{EDGE_SIGNAL, FlowIdx, FoldTrace, NEVER, NicIdx, Tables, TaskIdx, cc, flag, mode, qp, task};

/// Tasks that end at this instant, in the order of their release.
struct Chain {
    head: TaskIdx,
    tail: TaskIdx,
    /// The task that was inserted last. Equal tasks are released in their order, so the next task's place is near.
    newest: TaskIdx,
}

impl Chain {
    const NEW: Chain = Chain { head: TaskIdx::NONE, tail: TaskIdx::NONE, newest: TaskIdx::NONE };

    fn add(&mut self, t: &mut Tables, i: TaskIdx) {
        t.tasks[i].next = TaskIdx::NONE;
        if self.tail.is_none() {
            self.head = i;
        } else {
            t.tasks[self.tail].next = i;
        }
        self.tail = i;
    }
}

/// Removes the first of NIC `n`'s running tasks from its list and returns it.
pub fn take(t: &mut Tables, n: NicIdx) -> TaskIdx {
    let row = &mut t.nics[n];
    let i = row.task_head;
    let next = t.tasks[i].next;
    row.task_head = next;
    row.next_task = if next.is_none() { NEVER } else { t.tasks[next].at };
    i
}

/// Whether the first of NIC `n`'s running tasks is a message on a queue pair that folding holds back.
#[inline]
pub fn is_held(t: &Tables, n: NicIdx) -> bool {
    let row = &t.tasks[t.nics[n].task_head];
    row.flags & task::MESSAGE != 0 && t.flow_tx[row.flow].flags & qp::HELD != 0
}

/// Tells folding about an event, if the experiment is traced.
#[inline]
pub fn note(t: &mut Tables, trace: FoldTrace) {
    if t.exps[0].modes & mode::TRACED != 0 {
        t.fold_trace.push(trace);
    }
}

/// Handles the first of NIC `n`'s running tasks, which is due. Returns whether the NIC may have something to send, as `post` does.
pub fn due(t: &mut Tables, n: NicIdx, event: &EventKey) -> bool {
    let i = take(t, n);
    if t.tasks[i].flags & task::MESSAGE != 0 {
        t.tasks[i].flags |= task::READY;
        return post(t, n, t.tasks[i].flow, event);
    }
    let mut chain = Chain::NEW;
    chain.add(t, i);
    drain(t, n, event, &mut chain);
    false
}

/// Handles the messages from `first` up to but not including `until`, which follow each other on a queue pair and have arrived whole at NIC `n`. If folding
/// simulates again what it had skipped, their tasks were released then.
pub fn delivered(t: &mut Tables, n: NicIdx, first: TaskIdx, until: TaskIdx, event: &EventKey) {
    let mut chain = Chain::NEW;
    let mut i = first;
    while i != until {
        let message = t.tasks.message(i);
        let (got, follow) = (message.got, message.follow);
        let (first, count) = (message.got_first, message.got_n);
        if got != NEVER {
            note(t, FoldTrace::DeliveredAgain { task: i, at: event.t });
        } else {
            match &mut t.got_later {
                Some(later) => later.push((i, event.t)),
                None => t.tasks[i].got = event.t,
            }
            release_all(t, n, first, count, event, &mut chain);
            note(t, FoldTrace::Delivered(i));
        }
        i = follow;
    }
    drain(t, n, event, &mut chain);
}

/// Handles the acknowledgement of the messages from `first_acked` up to but not including `first_unacked`, which follow each other on a queue pair of NIC `n`.
pub fn acknowledged(t: &mut Tables, n: NicIdx, first_acked: TaskIdx, first_unacked: TaskIdx, event: &EventKey) {
    let mut chain = Chain::NEW;
    let mut i = first_acked;
    while i != first_unacked {
        if t.tasks[i].done == NEVER {
            end(t, n, i, event, &mut chain);
            note(t, FoldTrace::Acked(i));
        }
        i = t.tasks[i].follow;
    }
    drain(t, n, event, &mut chain);
}

/// Ends tasks until none ends at this instant any more.
fn drain(t: &mut Tables, n: NicIdx, event: &EventKey, chain: &mut Chain) {
    while chain.head.is_some() {
        let i = chain.head;
        chain.head = t.tasks[i].next;
        if chain.head.is_none() {
            chain.tail = TaskIdx::NONE;
        }
        end(t, n, i, event, chain);
    }
}

/// Ends task `i` and releases the tasks that wait for it.
fn end(t: &mut Tables, n: NicIdx, i: TaskIdx, event: &EventKey, chain: &mut Chain) {
    let row = &mut t.tasks[i];
    row.done = event.t;
    let (first, count) = (row.done_first, row.done_n);
    t.one_less_left();
    release_all(t, n, first, count, event, chain);
}

/// Counts one dependency as met for each target of the `count` edges from `first` on.
fn release_all(t: &mut Tables, n: NicIdx, first: u32, count: u32, event: &EventKey, chain: &mut Chain) {
    for k in first..first + count {
        let edge = t.edges[k as usize];
        if edge & EDGE_SIGNAL != 0 {
            let s = edge & !EDGE_SIGNAL;
            t.signals[s as usize].at = event.t;
            t.signals[s as usize].next = t.nics[n].signals;
            t.nics[n].signals = s;
            t.raise(flag::SIGNALS);
        } else {
            let i = TaskIdx(edge);
            let row = &mut t.tasks[i];
            row.waits -= 1;
            if row.waits == 0 {
                release(t, n, i, event, chain);
            }
        }
    }
}

/// Starts task `i`, which waits for nothing any more. If it is no message and has no delay, it ends at once.
fn release(t: &mut Tables, n: NicIdx, i: TaskIdx, event: &EventKey, chain: &mut Chain) {
    let row = &mut t.tasks[i];
    row.at = event.t + row.delay;
    if row.delay > 0 || row.flags & task::MESSAGE != 0 {
        insert(t, n, i, chain.newest);
        chain.newest = i;
    } else {
        chain.add(t, i);
    }
}

/// Inserts task `i`, whose time is set, into the running tasks of NIC `n`.
pub fn under_way(t: &mut Tables, n: NicIdx, i: TaskIdx) {
    insert(t, n, i, TaskIdx::NONE);
}

/// [`under_way`], but the search begins at running task `near` if that comes before `i`.
fn insert(t: &mut Tables, n: NicIdx, i: TaskIdx, near: TaskIdx) {
    let new = rank(t, i);
    let (mut last, mut next) = (TaskIdx::NONE, t.nics[n].task_head);
    if near.is_some() && rank(t, near) < new {
        (last, next) = (near, t.tasks[near].next);
    }
    while next.is_some() && rank(t, next) < new {
        last = next;
        next = t.tasks[next].next;
    }
    t.tasks[i].next = next;
    if last.is_none() {
        t.nics[n].task_head = i;
        t.nics[n].next_task = t.tasks[i].at;
    } else {
        t.tasks[last].next = i;
    }
}

/// Sort key of tasks. It gives the same order as their event [`key`]s, because nothing else differs.
#[inline]
fn rank(t: &Tables, i: TaskIdx) -> (u64, u32, TaskIdx) {
    let row = &t.tasks[i];
    (row.at, row.root, i)
}

/// Key of task `i`'s event. It has no history, so that the same work runs the same way whatever happened before.
pub fn key(t: &Tables, i: TaskIdx) -> EventKey {
    let row = &t.tasks[i];
    EventKey { t: row.at, d: periodic(0, 0, row.root), kind: TASK, entity: i.0 }
}

/// Posts the messages that may be posted on queue pair `f`, in order. Returns whether the NIC may have something new to send: not if all of it waits
/// behind unsent bytes, unless every message starts with new congestion-control state.
fn post(t: &mut Tables, n: NicIdx, f: FlowIdx, event: &EventKey) -> bool {
    let fresh = t.exps[0].modes & mode::FRESH_QP != 0;
    let (mut posted, mut must_kick) = (false, false);
    loop {
        let i = t.flow_tx[f].msg_post;
        if i.is_none() || t.tasks[i].flags & task::READY == 0 {
            break;
        }
        let tx = &t.flow_tx[f];
        must_kick |= fresh || tx.snd_nxt >= tx.size;
        start(t, n, f, event);
        credit::begin(t, f);
        let row = &mut t.tasks[i];
        row.at = event.t;
        let tx = &mut t.flow_tx[f];
        tx.size = stream::next_start(&t.exps[0], tx.size) + row.bytes;
        tx.msg_post = row.follow;
        note(t, FoldTrace::Posted { task: i, first: !posted });
        posted = true;
    }
    must_kick
}

/// [`due`] for a message, but nothing is sent. Adds every message that can be posted on its queue pair to `posted`, with whether it is the first of
/// them.
pub fn due_unseen(t: &mut Tables, n: NicIdx, at_ps: u64, posted: &mut Vec<(TaskIdx, bool)>) {
    let i = take(t, n);
    t.tasks[i].flags |= task::READY;
    let f = t.tasks[i].flow;
    let mut first = true;
    loop {
        let i = t.flow_tx[f].msg_post;
        if i.is_none() || t.tasks[i].flags & task::READY == 0 {
            return;
        }
        t.tasks[i].at = at_ps;
        t.flow_tx[f].msg_post = t.tasks[i].follow;
        posted.push((i, first));
        first = false;
    }
}

/// Prepares queue pair `f` for a message that is about to be posted, and puts it in the NIC's order. A new queue pair sends at line rate; so does
/// every queue pair if messages start with new state. An idle one forgets telemetry and round-trip times, which say nothing after a pause.
fn start(t: &mut Tables, n: NicIdx, f: FlowIdx, event: &EventKey) {
    let e = &t.exps[0];
    let fresh = e.modes & mode::FRESH_QP != 0;
    let remembers = e.cc == cc::HPCC || e.cc == cc::TIMELY;
    let tx = &mut t.flow_tx[f];
    if tx.flags & qp::CREATED == 0 {
        queue_pair::create(t, n, f, event.t);
    } else if fresh {
        queue_pair::reset_cc(t, n, f);
    } else if remembers && tx.snd_una >= tx.size {
        tx.last_seq = 0;
    }
    let tx = &mut t.flow_tx[f];
    tx.flags &= !qp::FINISHED;
    if tx.flags & qp::QUEUED == 0 {
        tx.next_avail = tx.next_avail.max(event.t);
        queue_pair::join_order(t, n, f);
    }
}
