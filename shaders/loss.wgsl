// Packets that get lost at random on their way over a link (twin: `src/engine/cpu/loss.rs`).

// Whether packet `p` gets lost, which link end `end` has sent by `done`. Pause frames never do.
fn is_lost(end: u32, p: u32, done: u64) -> bool {
    let words = loss_words(end);
    let share = atomicLoad(&shared_words[words + LOSS_SHARE]);
    let arc = atomicLoad(&shared_words[words + LOSS_ARC]);
    let draw = hash32(~arc, u32(done & LOW_32), u32(done >> 32u), exps[exp_row].seed);
    return packet_kind(packets[packet_base + p].meta_) != KIND_FRAME && draw < share;
}

// Counts packet `p`, which NIC `end` has sent and which got lost, and keeps its record until `advance` returns it to its owner.
fn lose_of_nic(end: u32, p: u32) {
    let words = loss_words(end);
    atomicAdd(&shared_words[words + LOSS_LOST], 1u);
    let is_data = packet_kind(packets[packet_base + p].meta_) == KIND_DATA;
    let payload = select(0u, packets[packet_base + p].payload, is_data);
    let low = atomicAdd(&shared_words[words + LOSS_BYTES_LO], payload) + payload;
    atomicAdd(&shared_words[words + LOSS_BYTES_HI], select(0u, 1u, low < payload));
    packets[packet_base + p].next = nics[nic_base + end].to_return;
    nics[nic_base + end].to_return = p;
    set_flag(FLAG_TO_RETURN);
}
