// Max-min fair rates of many networks, a workgroup each (twin: `src/flow/maxmin.rs` and `src/flow/maxmin/progressive_filling.rs`).
//
// The CPU goes from link to link. Here all lanes do one phase over all rows, meet, and lane 0 chooses the next phase. Rates are the same to the bit: sums
// are sums of integers, sets are the same sets, and links that are full at one level stop their carriers together only where none of them shares a rising
// carrier with an earlier one. Decision 33 has the argument. Rows are those of `flow_rows.wgsl`; constants come from
// `src/engine/gpu/rates/source.rs`.

const CHANGE: u32 = 0u;
const MARK_BOTTLENECKS: u32 = 1u;
const SETTLE: u32 = 2u;
const TAKE_DIRTY: u32 = 3u;
const CLEAN: u32 = 4u;
const EMPTY_LINKS: u32 = 5u;
const WEIGH: u32 = 6u;
const LEVELS: u32 = 7u;
const TIES: u32 = 8u;
const STOP: u32 = 9u;
const LEAVE: u32 = 10u;
const TAKE_DISPLACED: u32 = 11u;
const TAKE_CONNECTED: u32 = 12u;
const COMMIT: u32 = 13u;
const TELL: u32 = 14u;
const DONE: u32 = 15u;

const LANE_GROUPS: u32 = WORKGROUP / 16u;

var<workgroup> phase: u32;
// The level at which links stop their carriers now.
var<workgroup> min_level: u64;
// Turns of taking so far.
var<workgroup> turn: u32;
var<workgroup> n_filled: atomic<u32>;
var<workgroup> n_touched: atomic<u32>;
var<workgroup> n_dirty: atomic<u32>;
var<workgroup> n_unsettled: atomic<u32>;
var<workgroup> n_active: atomic<u32>;
var<workgroup> lane_levels: array<u64, WORKGROUP>;
var<workgroup> group_levels: array<u64, LANE_GROUPS>;

// Only lane 0 uses these variables.
var<private> solve_round: u32;
var<private> fill_round: u32;
var<private> filled_before: u32;
var<private> takes_all: bool;

// All lanes have the same values in these variables.
var<private> network: u32;
var<private> link_first: u32;
var<private> carrier_first: u32;
var<private> crossing_first: u32;
var<private> touched_first: u32;

fn word(link: u32, which: u32) -> u32 {
    return (link_first + link) * LINK_WORDS + which;
}

// Adds to a sum of 64 bits in two words. Each overflow of the low one carries once, so the sum is right when all lanes have added, in whatever order.
fn add_to(word_idx: u32, value: u64) {
    let low = u32(value & LOW_32);
    let before = atomicAdd(&link_words[word_idx], low);
    let high = u32(value >> 32u) + select(0u, 1u, before + low < low);
    if high != 0u {
        atomicAdd(&link_words[word_idx + 1u], high);
    }
}

fn sum_at(word_idx: u32) -> u64 {
    return (u64(atomicLoad(&link_words[word_idx + 1u])) << 32u) | u64(atomicLoad(&link_words[word_idx]));
}

fn set_sum(word_idx: u32, value: u64) {
    atomicStore(&link_words[word_idx], u32(value & LOW_32));
    atomicStore(&link_words[word_idx + 1u], u32(value >> 32u));
}

// What so many flows weigh on a link that they cross with `share`.
fn weight_of(share: u32, flows: u32) -> u64 {
    return u64(share >> (SHARE_BITS - networks[network].share_bits)) * u64(flows);
}

// What acknowledgements of so many flows at `rate` take.
fn acks_of(rate: u64, flows: u32, share: u32) -> u64 {
    let product = wide_mul(rate, u64(flows) * u64(share));
    return (product.hi << (64u - SHARE_BITS)) | (product.lo >> SHARE_BITS);
}

// Takes what acknowledgements took off their links, adds what they take, and has that looked at.
fn replace_acks(c: u32, old_rate: u64, old_flows: u32, rate: u64, flows: u32) {
    let first = crossing_first + carriers[c].first_ack;
    for (var k = first; k < first + carriers[c].n_ack; k++) {
        let crossing = crossings[k];
        add_to(word(crossing.x, ACKS), acks_of(rate, flows, crossing.y) - acks_of(old_rate, old_flows, crossing.y));
        atomicStore(&link_words[word(crossing.x, UNSETTLED)], 1u);
    }
}

fn change_flows(c: u32, flows: u32) {
    let old = carriers[c].flows;
    let rate = carriers[c].rate;
    let new_rate = select(rate, 0lu, flows == 0u);
    let first = crossing_first + carriers[c].first;
    for (var k = first; k < first + carriers[c].n; k++) {
        let crossing = crossings[k];
        let more = weight_of(crossing.y, flows) - weight_of(crossing.y, old);
        add_to(word(crossing.x, WEIGHT), more);
        add_to(word(crossing.x, LOAD), more * rate);
        atomicStore(&link_words[word(crossing.x, DIRTY)], 1u);
    }
    replace_acks(c, rate, old, new_rate, flows);
    carriers[c].flows = flows;
    if flows == 0u {
        carriers[c].rate = 0lu;
        carriers[c].told = 0lu;
        carriers[c].bottleneck = NONE;
    }
}

// Links keep what acknowledgements take, where that is more than they keep, or clearly less.
fn settle(link: u32) {
    let row = link_first + link;
    atomicStore(&link_words[word(link, UNSETTLED)], 0u);
    let acks = sum_at(word(link, ACKS));
    let before = links[row].reserved;
    let capacity = links[row].capacity;
    let slack = capacity >> SLACK_SHIFT;
    let over = acks > before;
    if !over && acks + slack >= before {
        return;
    }
    var kept = acks;
    if over {
        kept = before + mul_div(acks - before, u64(WHOLE), u64(WHOLE) + u64(networks[network].ack_share));
    }
    let reserved = min(kept + slack / 2lu, capacity);
    links[row].reserved = reserved;
    let bits = networks[network].share_bits;
    let full = sum_at(word(link, LOAD)) + (reserved << bits) > capacity << bits;
    if full || (reserved < before && atomicLoad(&link_words[word(link, IS_BOTTLENECK)]) != 0u) {
        atomicStore(&link_words[word(link, DIRTY)], 1u);
    }
    if over {
        atomicStore(&link_words[word(link, UNSETTLED)], 1u);
        atomicAdd(&n_unsettled, 1u);
    }
}

// Fills a carrier with the others: it gives back what it has of its links.
fn take(c: u32, in_turn: u32) {
    carriers[c].state = RISING;
    lists[carrier_first + atomicAdd(&n_filled, 1u)] = c;
    let first = crossing_first + carriers[c].first;
    for (var k = first; k < first + carriers[c].n; k++) {
        let crossing = crossings[k];
        add_to(word(crossing.x, LOAD), 0lu - weight_of(crossing.y, carriers[c].flows) * carriers[c].rate);
        if atomicMin(&link_words[word(crossing.x, TOUCHED)], in_turn) == NONE {
            lists[touched_first + atomicAdd(&n_touched, 1u)] = crossing.x;
        }
    }
}

fn is_outside(c: u32) -> bool {
    return carriers[c].flows > 0u && carriers[c].state == OUTSIDE;
}

fn crosses_dirty(c: u32) -> bool {
    let first = crossing_first + carriers[c].first;
    for (var k = first; k < first + carriers[c].n; k++) {
        if atomicLoad(&link_words[word(crossings[k].x, DIRTY)]) != 0u {
            return true;
        }
    }
    return false;
}

fn crosses_touched(c: u32, last_turn: u32) -> bool {
    let first = crossing_first + carriers[c].first;
    for (var k = first; k < first + carriers[c].n; k++) {
        if atomicLoad(&link_words[word(crossings[k].x, TOUCHED)]) <= last_turn {
            return true;
        }
    }
    return false;
}

// By how much a rate may be off.
fn tolerance(rate: u64) -> u64 {
    return max(EQUALS, rate >> networks[network].tolerance_shift);
}

// Whether a carrier outside cannot keep its rate: it is faster than those that a link has stopped, or its link is no bottleneck of it any more.
fn is_displaced(c: u32, last_turn: u32) -> bool {
    let rate = carriers[c].rate;
    let bits = networks[network].share_bits;
    let first = crossing_first + carriers[c].first;
    for (var k = first; k < first + carriers[c].n; k++) {
        let link = crossings[k].x;
        if atomicLoad(&link_words[word(link, TOUCHED)]) > last_turn {
            continue;
        }
        let row = link_first + link;
        let stopped_at = links[row].stopped_at;
        if stopped_at != NEVER && rate > stopped_at + tolerance(stopped_at) {
            return true;
        }
        if carriers[c].bottleneck == link {
            let unused =
                max(2lu * EQUALS * sum_at(word(link, WEIGHT)), (links[row].capacity << bits) >> networks[network].tolerance_shift);
            if links[row].free > unused || links[row].fastest > rate + tolerance(rate) {
                return true;
            }
        }
    }
    return false;
}

// What is left of a link for those that rise, who weigh nothing yet.
fn empty_link(link: u32) {
    let row = link_first + link;
    let capacity = links[row].capacity;
    let all = (capacity - min(links[row].reserved, capacity)) << networks[network].share_bits;
    links[row].free = sub_sat(all, sum_at(word(link, LOAD)));
    links[row].stopped_at = NEVER;
    links[row].fastest = 0lu;
    set_sum(word(link, RISING_WEIGHT), 0lu);
}

fn weigh(c: u32) {
    carriers[c].state = RISING;
    let first = crossing_first + carriers[c].first;
    for (var k = first; k < first + carriers[c].n; k++) {
        let crossing = crossings[k];
        add_to(word(crossing.x, RISING_WEIGHT), weight_of(crossing.y, carriers[c].flows));
    }
}

// The level at which a link stops those that rise, which is kept; `NEVER` where nobody does.
fn level_of(link: u32) -> u64 {
    let row = link_first + link;
    let weight = sum_at(word(link, RISING_WEIGHT));
    var level = NEVER;
    if weight > 0lu {
        level = links[row].free / weight;
    }
    links[row].level = level;
    return level;
}

// The first link of the least level that a carrier crosses. Later ones wait for it.
fn find_tie(c: u32) {
    var tie = NONE;
    let first = crossing_first + carriers[c].first;
    for (var k = first; k < first + carriers[c].n; k++) {
        let link = crossings[k].x;
        if links[link_first + link].level == min_level {
            tie = min(tie, link);
        }
    }
    carriers[c].tie = tie;
    if tie == NONE {
        return;
    }
    for (var k = first; k < first + carriers[c].n; k++) {
        let link = crossings[k].x;
        if link != tie && links[link_first + link].level == min_level {
            atomicStore(&link_words[word(link, BLOCKED)], 1u);
        }
    }
}

fn stop(c: u32) {
    let tie = carriers[c].tie;
    if tie == NONE || atomicLoad(&link_words[word(tie, BLOCKED)]) != 0u {
        return;
    }
    carriers[c].state = STOPPED;
    carriers[c].new_rate = min_level;
    carriers[c].new_bottleneck = tie;
    let first = crossing_first + carriers[c].first;
    for (var k = first; k < first + carriers[c].n; k++) {
        let crossing = crossings[k];
        add_to(word(crossing.x, STOPPED_WEIGHT), weight_of(crossing.y, carriers[c].flows));
    }
}

// Carriers that were stopped rise no more. Returns the link's level afterwards.
fn leave(link: u32) -> u64 {
    let row = link_first + link;
    let rising = sum_at(word(link, RISING_WEIGHT));
    let stopped = sum_at(word(link, STOPPED_WEIGHT));
    if rising > 0lu && links[row].level == min_level && atomicLoad(&link_words[word(link, BLOCKED)]) == 0u {
        links[row].stopped_at = min_level;
    }
    atomicStore(&link_words[word(link, BLOCKED)], 0u);
    if stopped == 0lu {
        return links[row].level;
    }
    links[row].free = sub_sat(links[row].free, stopped * min_level);
    links[row].fastest = min_level;
    set_sum(word(link, RISING_WEIGHT), rising - stopped);
    set_sum(word(link, STOPPED_WEIGHT), 0lu);
    return level_of(link);
}

// A carrier that was filled has its new rate.
fn commit(c: u32) {
    let flows = carriers[c].flows;
    let rate = carriers[c].new_rate;
    carriers[c].state = OUTSIDE;
    carriers[c].bottleneck = carriers[c].new_bottleneck;
    let first = crossing_first + carriers[c].first;
    for (var k = first; k < first + carriers[c].n; k++) {
        let crossing = crossings[k];
        add_to(word(crossing.x, LOAD), weight_of(crossing.y, flows) * rate);
    }
    if rate != carriers[c].rate {
        replace_acks(c, carriers[c].rate, flows, rate, flows);
        carriers[c].rate = rate;
    }
}

fn tell(c: u32, id: u32) {
    let rate = carriers[c].rate;
    if rate != carriers[c].told {
        carriers[c].told = rate;
        told.rows[atomicAdd(&told.n, 1u)] = RateRow(network, id, rate);
    }
}

// Lane 0: which phase follows `now`. `lowest` is the lowest level after phases that find it.
fn next_phase(now: u32, lowest: u64) -> u32 {
    let filled = atomicLoad(&n_filled);
    switch now {
        case CHANGE: {
            return MARK_BOTTLENECKS;
        }
        case MARK_BOTTLENECKS: {
            atomicStore(&n_dirty, 0u);
            atomicStore(&n_unsettled, 0u);
            return SETTLE;
        }
        case SETTLE: {
            atomicStore(&n_active, 0u);
            turn = 0u;
            fill_round = 0u;
            if atomicLoad(&n_dirty) > 0u {
                return TAKE_DIRTY;
            }
            if atomicLoad(&n_unsettled) == 0u {
                return TELL;
            }
            return next_round();
        }
        case TAKE_DIRTY: {
            return CLEAN;
        }
        case CLEAN: {
            return EMPTY_LINKS;
        }
        case EMPTY_LINKS: {
            return WEIGH;
        }
        case WEIGH: {
            return LEVELS;
        }
        case LEVELS, LEAVE: {
            min_level = lowest;
            if lowest != NEVER {
                return TIES;
            }
            filled_before = filled;
            return TAKE_DISPLACED;
        }
        case TIES: {
            return STOP;
        }
        case STOP: {
            return LEAVE;
        }
        case TAKE_DISPLACED: {
            turn += 1u;
            if filled == filled_before {
                return COMMIT;
            }
            filled_before = filled;
            takes_all = fill_round >= 2u * PRECISE_ROUNDS || is_many(filled);
            if fill_round >= PRECISE_ROUNDS || takes_all {
                // Rounds that are not precise take neighbours first, whom `is_many` counts too.
                return TAKE_CONNECTED;
            }
            fill_round += 1u;
            return EMPTY_LINKS;
        }
        case TAKE_CONNECTED: {
            turn += 1u;
            let grew = filled > filled_before;
            filled_before = filled;
            if select(is_many(filled), grew, takes_all) {
                takes_all = true;
                return TAKE_CONNECTED;
            }
            fill_round += 1u;
            return EMPTY_LINKS;
        }
        case COMMIT: {
            atomicStore(&n_filled, 0u);
            atomicStore(&n_touched, 0u);
            return next_round();
        }
        default: {
            return DONE;
        }
    }
}

fn next_round() -> u32 {
    solve_round += 1u;
    return select(TELL, MARK_BOTTLENECKS, solve_round < MAX_PASSES);
}

fn is_many(filled: u32) -> bool {
    return MANY * filled >= atomicLoad(&n_active);
}

@compute @workgroup_size(WORKGROUP)
fn flow_fill(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let solution = solutions[group.x];
    network = solution.x;
    link_first = networks[network].link_first;
    carrier_first = networks[network].carrier_first;
    crossing_first = networks[network].crossing_first;
    touched_first = networks[network].touched_first;
    let n_links = networks[network].n_links;
    let n_carriers = networks[network].n_carriers;
    if lane == 0u {
        phase = CHANGE;
        atomicStore(&n_filled, 0u);
        atomicStore(&n_touched, 0u);
    }
    loop {
        let now = workgroupUniformLoad(&phase);
        if now == DONE {
            break;
        }
        var lowest = NEVER;
        switch now {
            case CHANGE: {
                for (var k = lane; k < solution.z; k += WORKGROUP) {
                    let change = changes[solution.y + k];
                    change_flows(carrier_first + change.x, change.y);
                }
            }
            case MARK_BOTTLENECKS: {
                for (var k = lane; k < n_carriers; k += WORKGROUP) {
                    let c = carrier_first + k;
                    if carriers[c].flows > 0u && carriers[c].bottleneck != NONE {
                        atomicStore(&link_words[word(carriers[c].bottleneck, IS_BOTTLENECK)], 1u);
                    }
                }
            }
            case SETTLE: {
                for (var link = lane; link < n_links; link += WORKGROUP) {
                    if atomicLoad(&link_words[word(link, UNSETTLED)]) != 0u {
                        settle(link);
                    }
                    atomicStore(&link_words[word(link, IS_BOTTLENECK)], 0u);
                    if atomicLoad(&link_words[word(link, DIRTY)]) != 0u {
                        atomicAdd(&n_dirty, 1u);
                    }
                }
            }
            case TAKE_DIRTY: {
                var senders = 0u;
                for (var k = lane; k < n_carriers; k += WORKGROUP) {
                    let c = carrier_first + k;
                    if carriers[c].flows > 0u {
                        senders += 1u;
                        if crosses_dirty(c) {
                            take(c, 0u);
                        }
                    }
                }
                atomicAdd(&n_active, senders);
            }
            case CLEAN: {
                for (var link = lane; link < n_links; link += WORKGROUP) {
                    atomicStore(&link_words[word(link, DIRTY)], 0u);
                }
            }
            case EMPTY_LINKS: {
                for (var k = lane; k < atomicLoad(&n_touched); k += WORKGROUP) {
                    empty_link(lists[touched_first + k]);
                }
            }
            case WEIGH: {
                for (var k = lane; k < atomicLoad(&n_filled); k += WORKGROUP) {
                    weigh(lists[carrier_first + k]);
                }
            }
            case LEVELS: {
                for (var k = lane; k < atomicLoad(&n_touched); k += WORKGROUP) {
                    lowest = min(lowest, level_of(lists[touched_first + k]));
                }
            }
            case TIES: {
                for (var k = lane; k < atomicLoad(&n_filled); k += WORKGROUP) {
                    let c = lists[carrier_first + k];
                    if carriers[c].state == RISING {
                        find_tie(c);
                    }
                }
            }
            case STOP: {
                for (var k = lane; k < atomicLoad(&n_filled); k += WORKGROUP) {
                    let c = lists[carrier_first + k];
                    if carriers[c].state == RISING {
                        stop(c);
                    }
                }
            }
            case LEAVE: {
                for (var k = lane; k < atomicLoad(&n_touched); k += WORKGROUP) {
                    lowest = min(lowest, leave(lists[touched_first + k]));
                }
            }
            case TAKE_DISPLACED: {
                for (var k = lane; k < n_carriers; k += WORKGROUP) {
                    let c = carrier_first + k;
                    if is_outside(c) && is_displaced(c, turn) {
                        take(c, turn + 1u);
                    }
                }
            }
            case TAKE_CONNECTED: {
                for (var k = lane; k < n_carriers; k += WORKGROUP) {
                    let c = carrier_first + k;
                    if is_outside(c) && crosses_touched(c, turn) {
                        take(c, turn + 1u);
                    }
                }
            }
            case COMMIT: {
                for (var k = lane; k < atomicLoad(&n_filled); k += WORKGROUP) {
                    commit(lists[carrier_first + k]);
                }
                for (var k = lane; k < atomicLoad(&n_touched); k += WORKGROUP) {
                    atomicStore(&link_words[word(lists[touched_first + k], TOUCHED)], NONE);
                }
            }
            default: {
                for (var link = lane; link < n_links; link += WORKGROUP) {
                    atomicStore(&link_words[word(link, DIRTY)], 0u);
                    atomicStore(&link_words[word(link, UNSETTLED)], 0u);
                }
                for (var k = lane; k < n_carriers; k += WORKGROUP) {
                    tell(carrier_first + k, k);
                }
            }
        }
        lane_levels[lane] = lowest;
        storageBarrier();
        workgroupBarrier();
        if lane < LANE_GROUPS {
            var of_group = NEVER;
            for (var k = 0u; k < 16u; k++) {
                of_group = min(of_group, lane_levels[16u * lane + k]);
            }
            group_levels[lane] = of_group;
        }
        workgroupBarrier();
        if lane == 0u {
            var of_all = NEVER;
            for (var k = 0u; k < LANE_GROUPS; k++) {
                of_all = min(of_all, group_levels[k]);
            }
            phase = next_phase(now, of_all);
        }
    }
}
