// System `schedule`, a row an experiment: the signals of this step reach their gates (twin: `src/engine/cpu/schedule.rs`).

// Counts signals; gates that everybody has reached are lined up for `analytical`, by time and number.
fn schedule() {
    if (flags() & FLAG_SIGNALS) == 0u {
        return;
    }
    atomicAnd(&shared_words[shared_base + SHARED_FLAGS], ~FLAG_SIGNALS);
    var collected = NONE;
    let nic_end = nic_base + exp_nic_len;
    for (var n = nic_base; n < nic_end; n++) {
        var s = nics[n].signals;
        nics[n].signals = NONE;
        while s != NONE {
            let signal = signal_base + s;
            let g = signals[signal].gate;
            let gate = gate_base + g;
            gates[gate].latest = max(gates[gate].latest, signals[signal].at);
            let waits = gates[gate].waits - 1u;
            gates[gate].waits = waits;
            if waits == 0u {
                gates[gate].next = collected;
                collected = g;
            }
            s = signals[signal].next;
        }
    }
    line_up(collected);
}

// Lines up the gates of list `collected`, by the time of their last signal and by number. A merge sort from the bottom up, so that n gates cost n log n.
fn line_up(collected: u32) {
    var rest = collected;
    var levels: array<u32, 24>;
    for (var level = 0u; level < 24u; level++) {
        levels[level] = NONE;
    }
    var top = 0u;
    while rest != NONE {
        var list = rest;
        rest = gates[gate_base + rest].next;
        gates[gate_base + list].next = NONE;
        var level = 0u;
        while levels[level] != NONE {
            list = merge_gates(levels[level], list);
            levels[level] = NONE;
            level += 1u;
        }
        levels[level] = list;
        top = max(top, level);
    }
    var fired = NONE;
    for (var level = 0u; level <= top; level++) {
        if levels[level] != NONE {
            fired = merge_gates(levels[level], fired);
        }
    }
    exps[exp_row].fired = fired;
}

// Merges two lists of gates, each by time and number.
fn merge_gates(first: u32, second: u32) -> u32 {
    var a = first;
    var b = second;
    var head = NONE;
    var tail = NONE;
    while a != NONE && b != NONE {
        let at_a = gates[gate_base + a].latest;
        let at_b = gates[gate_base + b].latest;
        let take_a = at_a < at_b || (at_a == at_b && a < b);
        let g = select(b, a, take_a);
        let next = gates[gate_base + g].next;
        if take_a {
            a = next;
        } else {
            b = next;
        }
        if tail == NONE {
            head = g;
        } else {
            gates[gate_base + tail].next = g;
        }
        tail = g;
    }
    let rest = select(b, a, a != NONE);
    if tail == NONE {
        return rest;
    }
    gates[gate_base + tail].next = rest;
    return head;
}
