// System `schedule`, a row an experiment: the signals of this step reach their gates (twin: `src/engine/cpu/schedule.rs`).

// Counts signals; gates that everybody has reached are lined up for `analytical`, by time and number.
fn schedule() {
    if (flags() & FLAG_SIGNALS) == 0u {
        return;
    }
    atomicAnd(&shared_words[shared_base + SHARED_FLAGS], ~FLAG_SIGNALS);
    let nic_end = nic_base + exps[exp_row].nic_len;
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
                add_fired(g);
            }
            s = signals[signal].next;
        }
    }
}

// Puts gate `g` among those that fired.
fn add_fired(g: u32) {
    let due = gates[gate_base + g].latest;
    var last = NONE;
    var next = exps[exp_row].fired;
    while next != NONE {
        let other = gates[gate_base + next].latest;
        if other > due || (other == due && next > g) {
            break;
        }
        last = next;
        next = gates[gate_base + next].next;
    }
    gates[gate_base + g].next = next;
    if last == NONE {
        exps[exp_row].fired = g;
    } else {
        gates[gate_base + last].next = g;
    }
}
