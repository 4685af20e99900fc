// What kernels know of the experiment at hand. Tables are storage buffers; their declarations come before this file and are generated from
// the list of tables (`src/columns/registry.rs`), as are `exp_row`, the bases and `enter`.
//
// Indices inside rows count from the experiment's own first row, as in `src/columns`; the bases turn them into indices of
// the shared tables. `enter` sets them once for an invocation, which works for one experiment only.

// Whether mode bit `bit` of the experiment is set.
fn has_mode(bit: u32) -> bool {
    return (exp_modes & bit) != 0u;
}

// Whether all of the mode bits `bits` of the experiment are set.
fn has_modes(bits: u32) -> bool {
    return (exp_modes & bits) == bits;
}

fn set_flag(bit: u32) {
    atomicOr(&shared_words[shared_base + SHARED_FLAGS], bit);
}

fn flags() -> u32 {
    return atomicLoad(&shared_words[shared_base + SHARED_FLAGS]);
}

// Bytes charged to ingress `port`, a shared word: several egresses release into it in one system.
fn ingress_word(port: u32) -> u32 {
    return shared_base + SHARED_HEADER + port;
}

fn ingress_bytes(port: u32) -> u32 {
    return atomicLoad(&shared_words[ingress_word(port)]);
}

// Place of the first shared word about losses of link end `end`.
fn loss_words(end: u32) -> u32 {
    let of_ports = exps[exp_row].port_len * (1u + exps[exp_row].mask_words + exps[exp_row].class_n);
    return shared_base + SHARED_HEADER + of_ports + end * LOSS_WORDS;
}

// Place of the first shared word about flowlet `number`.
fn flowlet_words(number: u32) -> u32 {
    return shared_base + exps[exp_row].flowlet_first + number * FLOWLET_WORDS;
}

// Place of the shared word with what was reported last of the queue of `class_` at `port`.
fn remote_word(port: u32, class_: u32) -> u32 {
    return shared_base + exps[exp_row].remote_first + port * max(exps[exp_row].class_n, 1u) + class_;
}

// Place of the first shared word about the average of `class_` of `port`.
fn average_words(port: u32, class_: u32) -> u32 {
    return shared_base + exps[exp_row].average_first + (port * max(exps[exp_row].class_n, 1u) + class_) * AVERAGE_WORDS;
}

// Place of the first shared word about pauses of `class_` of `port`.
fn watch_words(port: u32, class_: u32) -> u32 {
    return shared_base + exps[exp_row].watch_first + (port * max(exps[exp_row].class_n, 1u) + class_) * WATCH_WORDS;
}

fn packet_kind(meta_word: u32) -> u32 {
    return (meta_word >> META_KIND_SHIFT) & META_KIND_MASK;
}

// Returns the time at which the step ends.
fn step_end() -> u64 {
    return min(exps[exp_row].now + exps[exp_row].step, exps[exp_row].time_limit);
}
