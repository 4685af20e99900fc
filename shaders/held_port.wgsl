// The port that an invocation works on, in registers (twin: `src/engine/cpu/switch/egress.rs`, where they are the row itself). Its row is read once
// and written once, however many packets it sends in a step. What only some packets need stays in the row.

struct HeldPort {
    // Constants of the port. The peer has bits of `LINK_TROUBLE` while its link is down or loses packets, or its watchdog drops them.
    peer: u32,
    // Columns of its row.
    busy: u32,
    paused: u32,
    busy_until: u64,
    q_head: u32,
    q_tail: u32,
    q_bytes: u32,
    max_q: u32,
    frame_head: u32,
    in_frames: u32,
    // The wire to its peer: the last packet, and the number of packets.
    wire_tail: u32,
    wire_n: u32,
}

var<private> held: HeldPort;
// The held port plus 1; 0: none is held. And whether what is held differs from the row.
var<private> held_port: u32;
var<private> held_differs: bool;

// Takes up `port`. Another one that is held is written back.
fn hold(port: u32) {
    if held_port == port + 1u {
        return;
    }
    let_go();
    held_port = port + 1u;
    held_differs = false;
    let row = port_base + port;
    held.peer = ports[row].peer;
    held.busy = ports[row].busy;
    held.paused = ports[row].paused;
    held.busy_until = ports[row].busy_until;
    held.q_head = ports[row].q_head;
    held.q_tail = ports[row].q_tail;
    held.q_bytes = ports[row].q_bytes;
    held.max_q = ports[row].max_q;
    held.frame_head = ports[row].frame_head;
    held.in_frames = ports[row].in_frames;
    let wire = wire_base + (held.peer & ~LINK_TROUBLE);
    held.wire_tail = wires[wire].tail;
    held.wire_n = wires[wire].n;
}

// Writes back the port that is held.
fn let_go() {
    if held_port != 0u && held_differs {
        let row = port_base + held_port - 1u;
        ports[row].busy = held.busy;
        ports[row].paused = held.paused;
        ports[row].busy_until = held.busy_until;
        ports[row].q_head = held.q_head;
        ports[row].q_tail = held.q_tail;
        ports[row].q_bytes = held.q_bytes;
        ports[row].max_q = held.max_q;
        ports[row].frame_head = held.frame_head;
        ports[row].in_frames = held.in_frames;
        let wire = wire_base + (held.peer & ~LINK_TROUBLE);
        wires[wire].tail = held.wire_tail;
        wires[wire].n = held.wire_n;
    }
    held_port = 0u;
}

// Puts packet `p`, which arrives at `t`, on the wire to the peer of the held port.
fn held_wire_push(p: u32, t: u64) {
    packets[packet_base + p].next = NONE;
    if held.wire_n == 0u {
        let peer = held.peer & ~LINK_TROUBLE;
        wires[wire_base + peer].head = p;
        clocks[clock_base + peer] = t;
    } else {
        packets[packet_base + held.wire_tail].next = p;
    }
    held.wire_tail = p;
    held.wire_n += 1u;
}
