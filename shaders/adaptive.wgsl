// Adaptive routing: a switch sends each data packet to one of the egress ports that lead on with the shortest queues (twin:
// `src/engine/cpu/switch/adaptive.rs`).

// Whether switches choose the egress ports of data packets.
fn is_adaptive() -> bool {
    return HAS_RARE_PARTS && has_mode(MODE_ADAPTIVE);
}

// Where data packet `p`, which has reached a switch, may go on: the first port of its choice at `place`. If that is the only one, the packet takes it.
fn first_choice(p: u32, place: u32) -> u32 {
    if paths[path_base + place] == 1u {
        packets[packet_base + p].path = paths[path_base + place + 2u];
    }
    return paths[path_base + place + 1u];
}

// Chooses the egress port of packet `p`, which arrives at `now` and was listed for port `first`. Gives the packet the way on from there. Only data at a switch
// where several ports lead on has a choice; others leave by `first`. No port is held afterwards.
fn choose(first: u32, p: u32, now: u64) -> u32 {
    let place = packets[packet_base + p].path;
    // A packet without a choice has gone on to the choice of another switch, which has other ports.
    if packet_kind(packets[packet_base + p].meta_) != KIND_DATA || paths[path_base + place + 1u] != first {
        return first;
    }
    let_go();
    let n = paths[path_base + place];
    let in_port = packets[packet_base + p].in_port;
    let draw = hash32(in_port, u32(now & LOW_32), u32(now >> 32u), exps[exp_row].routing_seed) % n;
    let unit = exps[exp_row].adaptive_grade;
    var chosen = place;
    var lowest = 0xffffffffu;
    for (var k = 0u; k < n; k++) {
        let pair = place + 1u + 2u * ((draw + k) % n);
        let row = port_base + paths[path_base + pair];
        let paused = select(0u, PAUSED_GRADE, ports[row].paused != 0u);
        let cut_off = select(0u, CUT_OFF_GRADE, (ports[row].peer & LINK_DOWN) != 0u);
        let grade = ports[row].q_bytes / unit | paused | cut_off;
        if grade < lowest {
            chosen = pair;
            lowest = grade;
        }
    }
    packets[packet_base + p].path = paths[path_base + chosen + 1u];
    return paths[path_base + chosen];
}

// Grade of a paused port with an empty queue. Grades of queues stay below it, as a grade has more than four bytes.
const PAUSED_GRADE: u32 = 0x40000000u;
// Grade of a port whose link is down.
const CUT_OFF_GRADE: u32 = 0x80000000u;
