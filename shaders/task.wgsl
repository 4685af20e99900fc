// Tasks: what a rank does, released by what it waits for (twin: `src/engine/cpu/task.rs`). Part of system `nic`: what happens on
// one NIC happens at once.
//
// What an event sets off is noted by its handler and followed by `drain`, which `nic` calls once after it: so the code that
// releases tasks is in the kernel once.

// Tasks that end at this instant, first released first.
var<private> chain_head: u32;
var<private> chain_tail: u32;
// Messages that have arrived whole, and messages that were acknowledged: each from the first up to but not the last.
var<private> delivered_from: u32;
var<private> delivered_until: u32;
var<private> acked_from: u32;
var<private> acked_until: u32;

// Nothing is set off yet.
fn begin_chain() {
    chain_head = NONE;
    chain_tail = NONE;
    delivered_from = NONE;
    delivered_until = NONE;
    acked_from = NONE;
    acked_until = NONE;
}

// Puts task `i` at the end of those that end at this instant.
fn chain_add(i: u32) {
    tasks[task_base + i].next = NONE;
    if chain_tail == NONE {
        chain_head = i;
    } else {
        tasks[task_base + chain_tail].next = i;
    }
    chain_tail = i;
}

// Removes the first of NIC `n`'s tasks under way from its list and returns it.
fn task_take(n: u32) -> u32 {
    let row = nic_base + n;
    let i = nics[row].task_head;
    let next = tasks[task_base + i].next;
    nics[row].task_head = next;
    if next == NONE {
        nics[row].next_task = NEVER;
    } else {
        nics[row].next_task = tasks[task_base + next].at;
    }
    return i;
}

// The first of NIC `n`'s tasks under way is due. Returns whether the NIC may have something to send, as `post` does.
fn due(n: u32, now: u64) -> bool {
    let i = task_take(n);
    let what = tasks[task_base + i].flags;
    if (what & TASK_MESSAGE) != 0u {
        tasks[task_base + i].flags = what | TASK_READY;
        return post(n, tasks[task_base + i].flow, now);
    }
    chain_add(i);
    return false;
}

// Messages from `first` up to but not `until`, one after another on a queue pair, have arrived whole.
fn delivered(first: u32, until: u32) {
    delivered_from = first;
    delivered_until = until;
}

// Messages from `first` up to but not `until`, one after another on a queue pair, are acknowledged.
fn acknowledged(first: u32, until: u32) {
    acked_from = first;
    acked_until = until;
}

// Follows what the event at NIC `n` has set off until nothing ends at this instant any more.
fn drain(n: u32, now: u64) {
    loop {
        if delivered_from != delivered_until {
            let row = task_base + delivered_from;
            delivered_from = tasks[row].follow;
            tasks[row].got = now;
            release_all(n, tasks[row].got_first, tasks[row].got_n, now);
            continue;
        }
        var i = acked_from;
        if i != acked_until {
            acked_from = tasks[task_base + i].follow;
        } else {
            i = chain_head;
            if i == NONE {
                break;
            }
            chain_head = tasks[task_base + i].next;
            if chain_head == NONE {
                chain_tail = NONE;
            }
        }
        task_end(n, i, now);
    }
}

// Task `i` ends.
fn task_end(n: u32, i: u32, now: u64) {
    let row = task_base + i;
    tasks[row].done = now;
    atomicSub(&shared_words[shared_base + SHARED_FLOWS_LEFT], 1u);
    release_all(n, tasks[row].done_first, tasks[row].done_n, now);
}

// Takes one dependency from everything that `count` edges from `first` on lead to.
fn release_all(n: u32, first: u32, count: u32, now: u64) {
    for (var k = first; k < first + count; k++) {
        let edge = edges[edge_base + k];
        if (edge & EDGE_SIGNAL) != 0u {
            let s = edge & ~EDGE_SIGNAL;
            signals[signal_base + s].at = now;
            signals[signal_base + s].next = nics[nic_base + n].signals;
            nics[nic_base + n].signals = s;
            set_flag(FLAG_SIGNALS);
        } else {
            let waits = tasks[task_base + edge].waits - 1u;
            tasks[task_base + edge].waits = waits;
            if waits == 0u {
                task_release(n, edge, now);
            }
        }
    }
}

// Nothing keeps task `i` any more: it gets under way, or, no message and without delay, ends at once.
fn task_release(n: u32, i: u32, now: u64) {
    let row = task_base + i;
    let delay = tasks[row].delay;
    tasks[row].at = now + delay;
    if delay > 0lu || (tasks[row].flags & TASK_MESSAGE) != 0u {
        under_way(n, i);
    } else {
        chain_add(i);
    }
}

// Puts task `i`, whose time is set, among NIC `n`'s tasks under way.
fn under_way(n: u32, i: u32) {
    let row = nic_base + n;
    let due_at = tasks[task_base + i].at;
    let root = tasks[task_base + i].root;
    var last = NONE;
    var next = nics[row].task_head;
    while next != NONE {
        if !is_before(next, i, due_at, root) {
            break;
        }
        last = next;
        next = tasks[task_base + next].next;
    }
    tasks[task_base + i].next = next;
    if last == NONE {
        nics[row].task_head = i;
        nics[row].next_task = due_at;
    } else {
        tasks[task_base + last].next = i;
    }
}

// Whether the event of task `i` is before that of task `other`, at `due_at` with root `root`: their lineages differ in nothing else.
fn is_before(i: u32, other: u32, due_at: u64, root: u32) -> bool {
    let row = task_base + i;
    if tasks[row].at != due_at {
        return tasks[row].at < due_at;
    }
    if tasks[row].root != root {
        return tasks[row].root < root;
    }
    return i < other;
}

// The event of task `i`: the past does not matter to it, so that the same work goes the same way whatever went before.
fn task_key(i: u32) -> EventKey {
    let row = task_base + i;
    return EventKey(tasks[row].at, periodic(0u, 0u, tasks[row].root), EVENT_TASK, i);
}

// Posts what may be posted on queue pair `f`, in its order. Returns whether the NIC may have something new to send: not if all of it waits
// behind unsent bytes, unless every message starts with new congestion-control state.
fn post(n: u32, f: u32, now: u64) -> bool {
    let tx = flow_base + f;
    var must_kick = false;
    loop {
        let i = flow_tx[tx].msg_post;
        if i == NONE {
            break;
        }
        let row = task_base + i;
        if (tasks[row].flags & TASK_READY) == 0u {
            break;
        }
        if has_mode(MODE_FRESH_QP) || flow_tx[tx].snd_nxt >= flow_tx[tx].size {
            must_kick = true;
        }
        task_start(n, f, now);
        begin(f);
        tasks[row].at = now;
        flow_tx[tx].size = next_start(flow_tx[tx].size) + tasks[row].bytes;
        flow_tx[tx].msg_post = tasks[row].follow;
    }
    return must_kick;
}

// A message is about to be posted on queue pair `f`, which joins the NIC's order. A new queue pair sends at line rate, as does each where
// messages start with new state. An idle one forgets telemetry and round-trip times, which say nothing after a pause.
fn task_start(n: u32, f: u32, now: u64) {
    let tx = flow_base + f;
    if (flow_tx[tx].flags & QP_CREATED) == 0u {
        create(n, f, now);
    } else if has_mode(MODE_FRESH_QP) {
        reset_cc(n, f);
    } else {
        let cc = exp_cc;
        if (cc == CC_HPCC || cc == CC_TIMELY) && flow_tx[tx].snd_una >= flow_tx[tx].size {
            flow_tx[tx].last_seq = 0lu;
        }
    }
    let flags_now = flow_tx[tx].flags & ~QP_FINISHED;
    flow_tx[tx].flags = flags_now;
    if (flags_now & QP_QUEUED) == 0u {
        flow_tx[tx].next_avail = max(flow_tx[tx].next_avail, now);
        join_order(n, f);
    }
}
