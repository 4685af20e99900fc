// Averages of queues, by which switches mark (twin: `src/engine/cpu/switch/averages.rs`).

// Adds to its average the `q` bytes that packet `p` leaves in the queue of its class at `port` at `now`. Returns the average, in bytes.
fn averaged_queue(port: u32, p: u32, q: u32, now: u64) -> u32 {
    let n = exps[exp_row].average_weight;
    let words = average_words(port, queue_class(packets[packet_base + p].meta_));
    var sum = (u64(atomicLoad(&shared_words[words + AVERAGE_SUM_HI])) << 32u) | u64(atomicLoad(&shared_words[words + AVERAGE_SUM_LO]));
    let empty_at = (u64(atomicLoad(&shared_words[words + AVERAGE_EMPTY_HI])) << 32u) | u64(atomicLoad(&shared_words[words + AVERAGE_EMPTY_LO]));
    if empty_at != NEVER {
        let halvings = (now - empty_at) / (ports[port_base + port].tx_full << n);
        sum = sum >> u32(min(halvings, 63lu));
    }
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
