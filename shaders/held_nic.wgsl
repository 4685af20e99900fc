// The NIC that an invocation works on, in registers (twin: `src/engine/cpu/nic.rs`, where they are the row itself). Its row is read once and written once,
// however many packets it sends and takes in a step. What only some events need stays in the row.

struct HeldNic {
    // Constants of the NIC. The peer has the bit `LINK_LOSES` while packets get lost on the way to it, and `FLOWS_LEFT` once
    // queue pairs have moved to another NIC.
    peer: u32,
    // Columns of its row.
    busy_until: u64,
    timer: u64,
    rto: u64,
    next_start: u64,
    ack_head: u32,
    paused: u32,
    free_head: u32,
    free_n: u32,
    rr: u32,
    qp_n: u32,
    // The wire to it: the first packet, when that arrives, and the number of packets.
    in_head: u32,
    in_n: u32,
    in_t: u64,
    // The wire to its peer: the last packet, and the number of packets.
    out_tail: u32,
    out_n: u32,
}

var<private> own: HeldNic;

// Takes up NIC `n`.
fn hold_nic(n: u32) {
    let row = nic_base + n;
    own.peer = nics[row].peer;
    own.busy_until = nics[row].busy_until;
    own.timer = nics[row].timer;
    own.rto = nics[row].rto;
    own.next_start = nics[row].next_start;
    own.ack_head = nics[row].ack_head;
    own.paused = nics[row].paused;
    own.free_head = nics[row].free_head;
    own.free_n = nics[row].free_n;
    own.rr = nics[row].rr;
    own.qp_n = nics[row].qp_n;
    own.in_head = wires[wire_base + n].head;
    own.in_n = wires[wire_base + n].n;
    own.in_t = clocks[clock_base + n];
    let wire = wire_base + (own.peer & ~LINK_TROUBLE);
    own.out_tail = wires[wire].tail;
    own.out_n = wires[wire].n;
}

// Writes NIC `n` back.
fn let_nic_go(n: u32) {
    let row = nic_base + n;
    nics[row].busy_until = own.busy_until;
    nics[row].timer = own.timer;
    nics[row].rto = own.rto;
    nics[row].next_start = own.next_start;
    nics[row].ack_head = own.ack_head;
    nics[row].paused = own.paused;
    nics[row].free_head = own.free_head;
    nics[row].free_n = own.free_n;
    nics[row].rr = own.rr;
    nics[row].qp_n = own.qp_n;
    wires[wire_base + n].head = own.in_head;
    wires[wire_base + n].n = own.in_n;
    if own.in_head == NONE {
        wires[wire_base + n].tail = NONE;
    }
    clocks[clock_base + n] = own.in_t;
    let wire = wire_base + (own.peer & ~LINK_TROUBLE);
    wires[wire].tail = own.out_tail;
    wires[wire].n = own.out_n;
}

// Takes the first packet off the wire to the NIC.
fn take_arrival() -> u32 {
    let p = own.in_head;
    own.in_head = packets[packet_base + p].next;
    own.in_n -= 1u;
    own.in_t = arrival_time(own.in_head);
    return p;
}

// Puts packet `p`, which arrives at `t`, on the wire to the NIC's peer.
fn nic_wire_push(p: u32, t: u64) {
    packets[packet_base + p].next = NONE;
    if own.out_n == 0u {
        let peer = own.peer & ~LINK_TROUBLE;
        wires[wire_base + peer].head = p;
        clocks[clock_base + peer] = t;
    } else {
        packets[packet_base + own.out_tail].next = p;
    }
    own.out_tail = p;
    own.out_n += 1u;
}
