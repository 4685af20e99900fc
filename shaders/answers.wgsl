// Answers to data, and PULLs, that wait at the NIC of a receiver (twin: `src/engine/cpu/transport/answers.rs`).

// Gives answer `p` of queue pair `f` its path, and appends it to the answers of NIC `n`.
fn queue_answer(n: u32, f: u32, p: u32) {
    let rx = flow_base + f;
    let pk = packet_base + p;
    var path = flow_rx[rx].path_first;
    let n_paths = flow_rx[rx].n_paths;
    if n_paths > 1u {
        path += path_of(flow_rx[rx].flow_id, flow_rx[rx].n_acks, 1u, n_paths) * flow_rx[rx].path_len;
    }
    packets[pk].path = path;
    flow_rx[rx].n_acks += 1u;
    packets[pk].next = NONE;
    var tail: u32;
    if has_classes() {
        let i = class_queue(n, class_of(packets[pk].meta_));
        tail = class_queues[i].q_tail;
        class_queues[i].q_tail = p;
        if tail == NONE {
            class_queues[i].q_head = p;
        }
    } else {
        tail = nics[nic_base + n].ack_tail;
        nics[nic_base + n].ack_tail = p;
        if tail == NONE {
            own.ack_head = p;
        }
    }
    if tail != NONE {
        packets[packet_base + tail].next = p;
    }
}
