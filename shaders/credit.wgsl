// Receiver credit: a receiver hands out credit at the rate of its NIC, and a sender sends no packet without it (twin:
// `src/engine/cpu/transport/credit.rs`).

// Lets a burst of queue pair `f` begin without asking, if nothing was left to send. It is called before bytes are posted.
fn begin(f: u32) {
    let tx = flow_base + f;
    if takes_credit() && flow_tx[tx].lost == 0u && flow_tx[tx].snd_nxt >= flow_tx[tx].size {
        flow_tx[tx].credit = max(flow_tx[tx].credit, exps[exp_row].credit_burst);
    }
}

// Takes the credit of a packet that has been taken off what is left to send of the queue pair in row `tx`. Returns what the packet carries beside its position
// `seq`: the credit that its sender wants. `sharing` is the number of queue pairs in the order of the NIC.
fn spend(tx: u32, seq: u64, sharing: u32, now: u64) -> u64 {
    let credit = flow_tx[tx].credit - 1u;
    flow_tx[tx].credit = credit;
    if credit == 0u {
        flow_tx[tx].back_at = now;
    }
    let payload = u64(exp_payload);
    var need = u64(flow_tx[tx].lost) + (sub_sat(flow_tx[tx].size, flow_tx[tx].snd_nxt) + payload - 1lu) / payload;
    if exp_cc == CC_NSCC {
        need = min(need, flow_tx[tx].win / full_wire() + 1lu);
    }
    let needed = u32(min(need, u64(exps[exp_row].credit_window)));
    var demand = 0u;
    if needed > credit {
        demand = max((needed - credit) / sharing, 1u);
    }
    let want = (flow_tx[tx].pulled - flow_tx[tx].nacked + demand) & PSN_WANT_MASK;
    return seq | (u64(want) << PSN_OFFSET_SHIFT);
}

// Answer `p` has come back to the sender, also one to a queue pair that is finished.
fn note_answer(p: u32) {
    if !takes_credit() {
        return;
    }
    let tx = flow_base + packets[packet_base + p].flow;
    if packet_kind(packets[packet_base + p].meta_) == KIND_NACK {
        flow_tx[tx].nacked += 1u;
    }
    if details[packet_base + p].sent_at >= flow_tx[tx].back_at {
        flow_tx[tx].back_at = 0lu;
    }
}

// The deadline of the queue pair in row `tx`, which has nothing in flight: there is one only if the packet that asked for credit may be lost.
fn deadline(tx: u32, now: u64) -> u64 {
    let asked = flow_tx[tx].back_at;
    if takes_credit() && asked > 0lu {
        return max(now, asked + exps[exp_row].rto);
    }
    return NEVER;
}

// A deadline of the queue pair in row `tx` at which `found` packets were found to be lost.
fn credit_time_out(tx: u32, found: u64, now: u64) {
    if !takes_credit() {
        return;
    }
    let asked = flow_tx[tx].back_at;
    if found == 0lu && asked + exps[exp_row].rto > now {
        flow_tx[tx].rto_at = deadline(tx, now);
    } else if found > 0lu || asked > 0lu {
        // The request may be lost too, and without credit nothing would tell the receiver.
        flow_tx[tx].credit = max(flow_tx[tx].credit, 1u);
        flow_tx[tx].back_at = 0lu;
    }
}

// PULL `p` has come back to the sender. Its record returns to the receiver, as that of a frame does.
fn on_pull(p: u32) {
    let tx = flow_base + packets[packet_base + p].flow;
    let given = u32(details[packet_base + p].seq & LOW_32);
    let news = given - flow_tx[tx].pulled;
    // Another path may have brought a later one before.
    if news < 0x80000000u {
        flow_tx[tx].credit = min(add_sat_u32(flow_tx[tx].credit, news), exps[exp_row].credit_window);
        flow_tx[tx].pulled = given;
    }
}

// A data packet of queue pair `f` wants credit, at NIC `n` of the receiver; `nacked`: it was answered with a NACK. Returns whether credit was given.
fn on_want(n: u32, f: u32, want: u32, nacked: bool, event: EventKey) -> bool {
    let rx = flow_base + f;
    var wanted = flow_rx[rx].wanted;
    let waited = wanted > 0u;
    if nacked {
        // Its credit has brought nothing.
        wanted += 1u;
        flow_rx[rx].nacks += 1u;
    }
    // What its sender does not know yet is neither given nor lost twice.
    let beyond = (want - (flow_rx[rx].given - flow_rx[rx].nacks)) & PSN_WANT_MASK;
    if beyond <= PSN_WANT_MASK / 2u {
        wanted = max(wanted, beyond);
    }
    flow_rx[rx].wanted = wanted;
    if wanted > 0u && !waited {
        wait_for_grant(n, f);
    }
    if nics[nic_base + n].waiting == NONE || own.timer != NEVER {
        return false;
    }
    return grant(n, event);
}

// Appends queue pair `f` to those of NIC `n` that wait for a grant.
fn wait_for_grant(n: u32, f: u32) {
    let last = nics[nic_base + n].waiting;
    nics[nic_base + n].waiting = f;
    if last == NONE {
        flow_rx[flow_base + f].next_waiting = f;
    } else {
        flow_rx[flow_base + f].next_waiting = flow_rx[flow_base + last].next_waiting;
        flow_rx[flow_base + last].next_waiting = f;
    }
}

// Takes the first queue pair of NIC `n` that waits for a grant off the ring. PRECONDITION: there is one.
fn take_first(n: u32) -> u32 {
    let last = nics[nic_base + n].waiting;
    let first = flow_rx[flow_base + last].next_waiting;
    if first == last {
        nics[nic_base + n].waiting = NONE;
    } else {
        flow_rx[flow_base + last].next_waiting = flow_rx[flow_base + first].next_waiting;
    }
    return first;
}

// Gives credit to the queue pair of NIC `n` whose turn it is, if one waits, and sets the time of the next grant. Returns whether it did.
fn grant(n: u32, event: EventKey) -> bool {
    if nics[nic_base + n].waiting == NONE {
        return false;
    }
    let p = own.free_head;
    if p == NONE {
        set_flag(FLAG_POOL_EMPTY);
        return false;
    }
    let pk = packet_base + p;
    own.free_head = packets[pk].next;
    own.free_n -= 1u;
    let f = take_first(n);
    let rx = flow_base + f;
    let count = exps[exp_row].credit_grant;
    let given = flow_rx[rx].given + count;
    let before = flow_rx[rx].wanted;
    flow_rx[rx].given = given;
    packets[pk].flow = f;
    packets[pk].meta_ = exp_ack_bytes | (KIND_ACK << META_KIND_SHIFT) | META_PULL;
    packets[pk].payload = NONE;
    details[pk].seq = u64(given);
    details[pk].sent_at = event.t;
    if before > count {
        flow_rx[rx].wanted = before - count;
        wait_for_grant(n, f);
    } else {
        flow_rx[rx].wanted = 0u;
    }
    queue_answer(n, f, p);
    let gap = mul_shr(u64(count) * nics[nic_base + n].tx_full, u64(exps[exp_row].credit_stretch_q16), 16u);
    own.timer = event.t + gap;
    nics[nic_base + n].timer_d = lineage(gap, event.d);
    return true;
}
