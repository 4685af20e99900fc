// System `advance`, a row an experiment (twin: `src/engine/cpu/advance.rs`). It returns records to their owners, finds the next
// instant at which anything happens, and decides whether the experiment goes on.

// Moves the experiment to its next event. `next_known` is the least of its clocks. `Exp::status` then says whether it goes on.
fn advance(end: u64, next_known: u64) {
    let found = flags();
    if (found & FLAG_NEEDS_FRAMES) != 0u {
        exps[exp_row].status = STATUS_NEEDS_PACKETS;
        exps[exp_row].phase = 1u;
        return;
    }
    var next = next_known;
    if (found & FLAG_TO_RETURN) != 0u {
        next = min(next, reclaim());
        atomicAnd(&shared_words[shared_base + SHARED_FLAGS], ~FLAG_TO_RETURN);
    }
    exps[exp_row].phase = 0u;
    exps[exp_row].steps += 1lu;
    let now = select(end, next, next > end && next != NEVER);
    exps[exp_row].now = now;
    if (found & (FLAG_OVER_BUFFER | FLAG_POOL_EMPTY)) != 0u {
        exps[exp_row].status = STATUS_VIOLATION;
    } else if (found & FLAG_GAVE_UP) != 0u {
        exps[exp_row].status = STATUS_GAVE_UP;
    } else if next == NEVER {
        exps[exp_row].status = STATUS_DONE;
    } else if now >= exps[exp_row].time_limit {
        exps[exp_row].status = STATUS_TIME_LIMIT;
    } else if (found & FLAG_NEEDS_PACKETS) != 0u {
        exps[exp_row].status = STATUS_NEEDS_PACKETS;
    }
}

// The least of every `WORKGROUP`th clock from number `lane` on.
fn next_clock(lane: u32) -> u64 {
    let n = 2u * exp_end_len;
    var earliest = NEVER;
    for (var c = lane; c < n; c += WORKGROUP) {
        earliest = min(earliest, clocks[clock_base + c]);
    }
    return earliest;
}

// Returns dropped packets and used pause frames to the pools they came from, and hands packets over to other NICs. Returns the time at which the first of these
// arrives there.
fn reclaim() -> u64 {
    var earliest = NEVER;
    let nic_end = nic_base + exp_nic_len;
    for (var n = nic_base; n < nic_end; n++) {
        var p = nics[n].to_return;
        nics[n].to_return = NONE;
        while p != NONE {
            let after = packets[packet_base + p].next;
            if has_mode(MODE_CHANGES) && packets[packet_base + p].path == HANDED_OVER {
                earliest = min(earliest, hand_over(p));
            } else {
                return_record(p);
            }
            p = after;
        }
    }
    let port_end = port_base + exp_port_len;
    for (var q = port_base; q < port_end; q++) {
        var p = ports[q].to_return;
        ports[q].to_return = NONE;
        while p != NONE {
            p = return_record(p);
        }
    }
    return earliest;
}

// Gives record `p` back to the pool of NIC `n`.
fn return_to_pool(n: u32, p: u32) {
    let row = nic_base + n;
    packets[packet_base + p].next = nics[row].free_head;
    nics[row].free_head = p;
    nics[row].free_n += 1u;
}

// Returns record `p`, and what travels with it, to its owner; gives the record after it in the list.
fn return_record(p: u32) -> u32 {
    let pk = packet_base + p;
    let what = packet_kind(packets[pk].meta_);
    let after = packets[pk].next;
    if what == KIND_FRAME {
        let sw = switch_base + packets[pk].flow;
        packets[pk].next = switches[sw].free_head;
        switches[sw].free_head = p;
        switches[sw].free_n += 1u;
        return after;
    }
    var owner = flow_tx[flow_base + packets[pk].flow].nic;
    if what == KIND_ACK && (packets[pk].meta_ & META_PULL) != 0u {
        owner = flow_rx[flow_base + packets[pk].flow].nic;
    }
    if what != KIND_DATA {
        var q = packets[pk].payload;
        while q != NONE {
            let next = packets[packet_base + q].next;
            return_to_pool(owner, q);
            q = next;
        }
    }
    return_to_pool(owner, p);
    return after;
}
