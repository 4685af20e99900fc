//! Tasks at flow level: the end of a task releases the tasks that wait for it, as in the packet engine, but without steps.
//!
//! Layer: flow level. It applies the packet engine's rules (`engine::cpu::task`, `schedule`, `analytical`) to the same rows. A gate is served at the instant of
//! its last signal; gates of one instant are served by number.

use hyperfold_columns::{EDGE_SIGNAL, FlowIdx, NEVER, NONE, SHARED_FLOWS_LEFT, Tables, TaskIdx, qp, task};

/// The consequences of an instant's ends.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// Tasks with a known later time, or messages that are due now.
    pub due: Vec<TaskIdx>,
    /// Gates that have received all signals.
    fired: Vec<u32>,
    /// Tasks that end at this instant.
    chain: Vec<TaskIdx>,
}

impl Released {
    /// Ends task `i`, and all tasks after it that take no time.
    pub(super) fn end(&mut self, t: &mut Tables, i: TaskIdx, now: u64) {
        self.chain.push(i);
        while let Some(i) = self.chain.pop() {
            let row = &mut t.tasks[i];
            row.done = now;
            let (first, n) = (row.done_first, row.done_n);
            t.shared[SHARED_FLOWS_LEFT as usize] -= 1;
            self.release(t, first, n, now);
        }
    }

    /// Handles the complete arrival of message `i`.
    pub(super) fn arrive(&mut self, t: &mut Tables, i: TaskIdx, now: u64) {
        let row = &mut t.tasks[i];
        row.got = now;
        let (first, n) = (row.got_first, row.got_n);
        self.release(t, first, n, now);
        while let Some(i) = self.chain.pop() {
            self.end(t, i, now);
        }
    }

    /// Removes one dependency from the target of each of `n` edges, beginning with `first`.
    fn release(&mut self, t: &mut Tables, first: u32, n: u32, now: u64) {
        for k in first..first + n {
            let edge = t.edges[k as usize];
            if edge & EDGE_SIGNAL != 0 {
                let number = t.signals[(edge & !EDGE_SIGNAL) as usize].gate;
                let gate = &mut t.gates[number as usize];
                gate.latest = now;
                gate.waits -= 1;
                if gate.waits == 0 {
                    self.fired.push(number);
                }
                continue;
            }
            let i = TaskIdx(edge);
            let row = &mut t.tasks[i];
            row.waits -= 1;
            if row.waits > 0 {
                continue;
            }
            row.at = now + row.delay;
            if row.delay > 0 || row.flags & task::MESSAGE != 0 {
                self.due.push(i);
            } else {
                self.chain.push(i);
            }
        }
    }

    /// Serves the gates of this instant. The tasks that they release begin later.
    pub(super) fn serve(&mut self, t: &mut Tables) {
        self.fired.sort_unstable();
        for number in self.fired.drain(..) {
            let gate = t.gates[number as usize];
            let mut free = gate.latest;
            if gate.server != NONE {
                let server = &mut t.servers[gate.server as usize];
                free = free.max(*server) + gate.serial;
                *server = free;
            }
            for k in gate.first..gate.first + gate.n {
                let i = TaskIdx(t.edges[k as usize]);
                let row = &mut t.tasks[i];
                row.waits -= 1;
                row.at = free + gate.latency + row.delay;
                self.due.push(i);
            }
        }
    }
}

/// Posts the messages of queue pair `f` that are next in order and ready. Returns whether the queue pair thereby begins to send.
pub(super) fn post(t: &mut Tables, f: FlowIdx, now: u64) -> bool {
    loop {
        let i = t.flow_tx[f].msg_post;
        if i.is_none() || t.tasks[i].flags & task::READY == 0 {
            break;
        }
        let row = &mut t.tasks[i];
        row.at = now;
        let tx = &mut t.flow_tx[f];
        tx.size += row.bytes;
        tx.msg_post = row.follow;
    }
    let tx = &mut t.flow_tx[f];
    // A message behind one that is being sent begins when that one has been sent.
    let begins = tx.flags & qp::QUEUED == 0 && tx.msg_send != tx.msg_post;
    if begins {
        tx.flags |= qp::QUEUED;
    }
    begins
}

/// Handles the end of transmission of queue pair `f`'s message. Returns the message, its bytes, and the bytes of the next message, or `None` if there is none.
/// A flow has no message and no next one.
pub(super) fn sent(t: &mut Tables, f: FlowIdx) -> (TaskIdx, u64, Option<u64>) {
    let i = t.flow_tx[f].msg_send;
    if i.is_none() {
        let bytes = t.flow_tx[f].size;
        count(t, f, bytes);
        return (i, bytes, None);
    }
    let (bytes, next) = (t.tasks[i].bytes, t.tasks[i].follow);
    count(t, f, bytes);
    let tx = &mut t.flow_tx[f];
    tx.msg_send = next;
    if next == tx.msg_post {
        tx.flags &= !qp::QUEUED;
        return (i, bytes, None);
    }
    (i, bytes, Some(t.tasks[next].bytes))
}

/// Counts bytes as sent and arrived, since nothing is lost.
fn count(t: &mut Tables, f: FlowIdx, bytes: u64) {
    let (tx, rx) = (&mut t.flow_tx[f], &mut t.flow_rx[f]);
    tx.sent_bytes += bytes;
    tx.snd_nxt += bytes;
    tx.snd_una += bytes;
    rx.arrived_bytes += bytes;
    rx.expected += bytes;
}

/// Tasks that wait for nothing when the experiment begins.
pub(super) fn first_due(t: &Tables) -> impl Iterator<Item = TaskIdx> {
    let waits_not =
        |(i, row): (usize, &hyperfold_columns::Task)| (row.waits == 0 && row.at != NEVER).then(|| TaskIdx::new(i));
    t.tasks.iter().enumerate().filter_map(waits_not)
}
