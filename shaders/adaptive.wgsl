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
    var lowest = 0xffffffffu;
    var n_lowest = 0u;
    for (var k = 0u; k < n; k++) {
        let own_grade = grade(paths[path_base + place + 1u + 2u * k]);
        if own_grade < lowest {
            lowest = own_grade;
            n_lowest = 0u;
        }
        if own_grade == lowest {
            n_lowest += 1u;
        }
    }
    let in_port = packets[packet_base + p].in_port;
    var left = hash32(in_port, u32(now & LOW_32), u32(now >> 32u), exps[exp_row].routing_seed) % n_lowest;
    var pair = path_base + place + 1u;
    for (var k = 0u; k < n; k++) {
        if grade(paths[pair]) == lowest {
            if left == 0u {
                break;
            }
            left -= 1u;
        }
        pair += 2u;
    }
    packets[packet_base + p].path = paths[pair + 1u];
    return paths[pair];
}

// Grade of egress `port`: its queue in whole grades, or more than that. PRECONDITION: no port is held.
fn grade(port: u32) -> u32 {
    let row = port_base + port;
    let paused = select(0u, PAUSED_GRADE, ports[row].paused != 0u);
    let cut_off = select(0u, CUT_OFF_GRADE, (ports[row].peer & LINK_DOWN) != 0u);
    return ports[row].q_bytes / exps[exp_row].adaptive_grade | paused | cut_off;
}

// Grade of a paused port with an empty queue. Grades of queues stay below it, as a grade has more than four bytes.
const PAUSED_GRADE: u32 = 0x40000000u;
// Grade of a port whose link is down.
const CUT_OFF_GRADE: u32 = 0x80000000u;
