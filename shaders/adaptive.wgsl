// Adaptive routing: a switch sends each data packet to one of the egress ports that lead on with the shortest queues (twin:
// `src/engine/cpu/switch/adaptive.rs`).

// Whether switches choose the egress ports of data packets.
fn is_adaptive() -> bool {
    return has_mode(MODE_ADAPTIVE);
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
    let in_port = packets[packet_base + p].in_port;
    let class_ = queue_class(packets[packet_base + p].meta_);
    let pairs = path_base + place + 1u;
    let n = paths[path_base + place] & ~WEIGHED_CHOICE;
    let weights = pairs + 2u * n;
    let is_weighed = (paths[path_base + place] & WEIGHED_CHOICE) != 0u;
    let has_flowlets = exps[exp_row].flowlet_first != 0u;
    let number = weights + select(0u, n, is_weighed);
    if has_flowlets {
        let kept = flowlet_pair(pairs, n, paths[number], now);
        if kept != NONE {
            packets[packet_base + p].path = paths[kept + 1u];
            return paths[kept];
        }
    }
    var weight = ANY_WEIGHT;
    if is_weighed {
        weight = drawn_weight(pairs, n, class_, in_port, now);
    }
    var lowest = 0xffffffffu;
    var n_lowest = 0u;
    for (var k = 0u; k < n; k++) {
        if weight != ANY_WEIGHT && paths[weights + k] != weight {
            continue;
        }
        let own_grade = grade(pairs + 2u * k, class_);
        if own_grade < lowest {
            lowest = own_grade;
            n_lowest = 0u;
        }
        if own_grade == lowest {
            n_lowest += 1u;
        }
    }
    var left = hash32(in_port, u32(now & LOW_32), u32(now >> 32u), exps[exp_row].routing_seed) % n_lowest;
    var pair = pairs;
    for (var k = 0u; k < n; k++) {
        let is_among = weight == ANY_WEIGHT || paths[weights + k] == weight;
        if is_among && grade(pair, class_) == lowest {
            if left == 0u {
                break;
            }
            left -= 1u;
        }
        pair += 2u;
    }
    packets[packet_base + p].path = paths[pair + 1u];
    if has_flowlets {
        atomicStore(&shared_words[flowlet_words(paths[number]) + FLOWLET_PORT], paths[pair] + 1u);
    }
    return paths[pair];
}

// Place of the port, of the `n` whose pairs are at `pairs`, by which flowlet `number` goes on with a packet that arrives at `now`; `NONE`: a flowlet begins. Notes
// the packet's arrival. PRECONDITION: no port is held.
fn flowlet_pair(pairs: u32, n: u32, number: u32, now: u64) -> u32 {
    let words = flowlet_words(number);
    let last = (u64(atomicLoad(&shared_words[words + FLOWLET_LAST_HI])) << 32u) | u64(atomicLoad(&shared_words[words + FLOWLET_LAST_LO]));
    let port = atomicLoad(&shared_words[words + FLOWLET_PORT]);
    atomicStore(&shared_words[words + FLOWLET_LAST_LO], u32(now & LOW_32));
    atomicStore(&shared_words[words + FLOWLET_LAST_HI], u32(now >> 32u));
    if port == 0u || now - last > exps[exp_row].flowlet_gap || (ports[port_base + port - 1u].peer & LINK_DOWN) != 0u {
        return NONE;
    }
    for (var k = 0u; k < n; k++) {
        if paths[pairs + 2u * k] == port - 1u {
            return pairs + 2u * k;
        }
    }
    return NONE;
}

// Weight of the ports among which a packet goes on, drawn in proportion to the weights of all that are neither paused nor cut off. If all are, those count that
// are only paused. The choice's pairs, of `n` ports, are at `pairs`. The packet is of `class_` and came in by `in_port`. PRECONDITION: no port is held.
fn drawn_weight(pairs: u32, n: u32, class_: u32, in_port: u32, now: u64) -> u32 {
    let weights = pairs + 2u * n;
    var best = 0xffffffffu;
    var sum = 0u;
    for (var k = 0u; k < n; k++) {
        let state = grade(pairs + 2u * k, class_) / PAUSED_GRADE;
        if state < best {
            best = state;
            sum = 0u;
        }
        sum += select(0u, paths[weights + k], state == best);
    }
    var left = hash32(in_port, u32(now & LOW_32), u32(now >> 32u), exps[exp_row].routing_seed + 1u) % sum;
    var weight = ANY_WEIGHT;
    for (var k = 0u; k < n; k++) {
        if grade(pairs + 2u * k, class_) / PAUSED_GRADE == best {
            weight = paths[weights + k];
            if left < weight {
                break;
            }
            left -= weight;
        }
    }
    return weight;
}

// No port has this weight; ports of any weight may be chosen.
const ANY_WEIGHT: u32 = 0u;

// Grade for a packet of `class_` of the egress port that the pair at `pair` names: the queue of that class, with what waits further on as far as that is known,
// in whole grades, or more than that. PRECONDITION: no port is held.
fn grade(pair: u32, class_: u32) -> u32 {
    let port = paths[pair];
    let row = port_base + port;
    var q_bytes = ports[row].q_bytes;
    var is_paused = ports[row].paused != 0u;
    if has_classes() {
        let queue = port_queue_row(port, class_);
        q_bytes = class_queues[queue].q_bytes;
        is_paused = class_queues[queue].paused != 0u;
    }
    let paused = select(0u, PAUSED_GRADE, is_paused);
    var remote = 0u;
    if exps[exp_row].remote_first != 0u {
        remote = remote_queue(path_base + paths[pair + 1u], class_);
    }
    q_bytes += min(remote & ~REMOTE_DOWN, NONE - q_bytes);
    let is_cut_off = (ports[row].peer & LINK_DOWN) != 0u || (remote & REMOTE_DOWN) != 0u;
    let cut_off = select(0u, CUT_OFF_GRADE, is_cut_off);
    return q_bytes / exps[exp_row].adaptive_grade | paused | cut_off;
}

// The shortest queue of `class_` that was reported of the ports of the choice at `place`, which is that of the next switch. A port whose link is down has the
// longest, with `REMOTE_DOWN`. At the end of a path nothing waits.
fn remote_queue(place: u32, class_: u32) -> u32 {
    let n = paths[place] & ~WEIGHED_CHOICE;
    var shortest = select(NONE, 0u, n == 0u);
    for (var k = 0u; k < n; k++) {
        shortest = min(shortest, atomicLoad(&shared_words[remote_word(paths[place + 1u + 2u * k], class_)]));
    }
    return shortest;
}

// Grade of a paused port with an empty queue. Grades of queues stay below it, as a grade has more than four bytes.
const PAUSED_GRADE: u32 = 0x40000000u;
// Grade of a port whose link is down.
const CUT_OFF_GRADE: u32 = 0x80000000u;
