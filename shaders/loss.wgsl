// Packets that get lost at random on their way over a link, and packets that arrive at a NIC that their queue pair has left (twin:
// `src/engine/cpu/loss.rs`).

// Whether packet `p` gets lost, which link end `end` has sent by `done`. Pause frames never do.
fn is_lost(end: u32, p: u32, done: u64) -> bool {
    let words = loss_words(end);
    let share = atomicLoad(&shared_words[words + LOSS_SHARE]);
    let arc = atomicLoad(&shared_words[words + LOSS_ARC]);
    let draw = hash32(~arc, u32(done & LOW_32), u32(done >> 32u), exps[exp_row].seed);
    return packet_kind(packets[packet_base + p].meta_) != KIND_FRAME && draw < share;
}

// Whether packet `p`, which arrives at NIC `n`, belongs to a queue pair whose end is at another NIC now.
fn is_stray(n: u32, p: u32) -> bool {
    let what = packet_kind(packets[packet_base + p].meta_);
    if what == KIND_FRAME {
        return false;
    }
    let f = flow_base + packets[packet_base + p].flow;
    if what == KIND_DATA {
        return flow_rx[f].nic != n;
    }
    return flow_tx[f].nic != n;
}

// Counts packet `p`, which NIC `end` has sent and which got lost, or which is a stray there, and keeps its record until `advance` returns it to its owner.
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
