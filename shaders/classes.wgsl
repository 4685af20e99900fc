// Traffic classes at a link end: where their queues are, and which class sends next (twin: `src/engine/cpu/classes.rs`).

// Largest number of traffic classes: as many as a packet can name.
const MAX_CLASSES: u32 = META_CLASS_MASK + 1u;

// Whether the experiment has several traffic classes.
fn has_classes() -> bool {
    return has_mode(MODE_CLASSES);
}

// Traffic class of a packet or pause frame.
fn class_of(meta_word: u32) -> u32 {
    return (meta_word >> META_CLASS_SHIFT) & META_CLASS_MASK;
}

// Traffic class in whose queue a packet waits: 0 where there are no classes, as other bits may be in their place.
fn queue_class(meta_word: u32) -> u32 {
    return select(0u, class_of(meta_word), exps[exp_row].class_n > 0u);
}

// Index in `class_queues` of the row of `class_` at `end`.
fn class_queue(end: u32, class_: u32) -> u32 {
    return class_base + end * exps[exp_row].class_n + class_;
}

// Chooses the class that sends next at `end`. `candidates` has a bit for each class that can send now, and is not 0. If it is the turn of another class than
// before, that class gets its allowance.
fn choose_class(end: u32, candidates: u32) -> u32 {
    let first = class_queue(end, 0u);
    var level = NONE;
    var members = 0u;
    var left = candidates;
    while left != 0u {
        let class_ = countTrailingZeros(left);
        left &= left - 1u;
        let level_of_class = class_queues[first + class_].level;
        if level_of_class < level {
            level = level_of_class;
            members = 0u;
        }
        members |= select(0u, 1u, level_of_class == level) << class_;
    }
    let last = class_queues[first + level].last;
    if ((members >> last) & 1u) != 0u && class_queues[first + last].allowance > 0li {
        return last;
    }
    let later = members & ~((2u << last) - 1u);
    let class_ = countTrailingZeros(select(members, later, later != 0u));
    class_queues[first + class_].allowance = min(class_queues[first + class_].allowance, 0li) + i64(class_queues[first + class_].quantum);
    class_queues[first + level].last = class_;
    return class_;
}

// Takes a packet of `wire` bytes off the allowance of `class_` at `end`.
fn spend_allowance(end: u32, class_: u32, wire: u32) {
    class_queues[class_queue(end, class_)].allowance -= i64(wire);
}
