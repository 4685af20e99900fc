// Averages of queues, by which switches mark (twin: `src/engine/cpu/switch/averages.rs`).

// Adds to its average the `q` bytes that packet `p` leaves in the queue of its class at `port` at `now`. Returns the average, in bytes.
fn averaged_queue(port: u32, p: u32, q: u32, now: u64) -> u32 {
    let n = exps[exp_row].average_weight;
    let words = average_words(port, queue_class(packets[packet_base + p].meta_));
    var sum = sum_now(port, words, now);
    sum = sum + u64(q) - (sum >> n);
    atomicStore(&shared_words[words + AVERAGE_SUM_LO], u32(sum & LOW_32));
    atomicStore(&shared_words[words + AVERAGE_SUM_HI], u32(sum >> 32u));
    if q == 0u {
        atomicStore(&shared_words[words + AVERAGE_EMPTY_LO], u32(now & LOW_32));
        atomicStore(&shared_words[words + AVERAGE_EMPTY_HI], u32(now >> 32u));
    } else {
        atomicStore(&shared_words[words + AVERAGE_EMPTY_LO], NONE);
        atomicStore(&shared_words[words + AVERAGE_EMPTY_HI], NONE);
    }
    return u32(sum >> n);
}

// The average of the queue of `class_` at `port` at `now`, in bytes: that of the last marking test, and less if the queue has been empty since.
fn average_now(port: u32, class_: u32, now: u64) -> u32 {
    return u32(sum_now(port, average_words(port, class_), now) >> exps[exp_row].average_weight);
}

// The average at `now` whose shared words begin at `words`, in units of 2^-`average_weight` bytes.
fn sum_now(port: u32, words: u32, now: u64) -> u64 {
    let sum = (u64(atomicLoad(&shared_words[words + AVERAGE_SUM_HI])) << 32u) | u64(atomicLoad(&shared_words[words + AVERAGE_SUM_LO]));
    let empty_at = (u64(atomicLoad(&shared_words[words + AVERAGE_EMPTY_HI])) << 32u) | u64(atomicLoad(&shared_words[words + AVERAGE_EMPTY_LO]));
    if empty_at == NEVER {
        return sum;
    }
    let halvings = (now - empty_at) / (ports[port_base + port].tx_full << exps[exp_row].average_weight);
    return sum >> u32(min(halvings, 63lu));
}
