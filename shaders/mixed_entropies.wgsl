// Mixed entropies: a sender takes good ones again, and walks over all others but for those with a penalty (twin: `src/engine/cpu/transport/mixed_entropies.rs`).
//
// What a queue pair knows of its entropies lies in `psn_bits`, behind the bits of positions.

// Number of bytes in a word of `psn_bits`.
const BYTES_IN_WORD: u32 = 4u;
// Bits of a penalty.
const PENALTY_BITS: u32 = 4u;
// Number of penalties in a word of `psn_bits`.
const PENALTIES_IN_WORD: u32 = 8u;
// The largest penalty.
const LARGEST_PENALTY: u32 = 15u;
// Penalty for a packet that was marked (htsim's).
const MARK_PENALTY: u32 = 1u;
// Penalty for a packet that was trimmed before its last hop (htsim's).
const TRIM_PENALTY: u32 = 4u;
// Penalty for a packet that a timeout takes for lost (htsim's).
const TIMEOUT_PENALTY: u32 = 15u;

// Whether senders choose entropies again and walk over the others, with penalties.
fn is_mixed() -> bool {
    return has_modes(MODE_MIXED);
}

// First word of the entropies of queue pair `f`.
fn mixed_first(f: u32) -> u32 {
    return bits_base + f * words_of_qp() + 3u * exps[exp_row].psn_range / WORD_BITS;
}

// First word of the penalties of queue pair `f`.
fn penalties_first(f: u32) -> u32 {
    return mixed_first(f) + exps[exp_row].psn_range / BYTES_IN_WORD;
}

// First word of the entropies that queue pair `f` keeps.
fn kept_first(f: u32) -> u32 {
    return penalties_first(f) + MIXED_PENALTY_WORDS;
}

// Byte number `place` of the words from `first` on.
fn byte_at(first: u32, place: u32) -> u32 {
    return (psn_bits[first + place / BYTES_IN_WORD] >> (8u * (place % BYTES_IN_WORD))) & 255u;
}

// Sets byte number `place` of the words from `first` on.
fn set_byte(first: u32, place: u32, value: u32) {
    let word = first + place / BYTES_IN_WORD;
    let shift = 8u * (place % BYTES_IN_WORD);
    psn_bits[word] = (psn_bits[word] & ~(255u << shift)) | (value << shift);
}

// Place of position `pos` among the entropies of positions.
fn place_of(pos: u64) -> u32 {
    return u32((pos / u64(exp_payload)) % u64(exps[exp_row].psn_range));
}

// Adds `more` to the penalty of `entropy`.
fn penalise(f: u32, entropy: u32, more: u32) {
    let word = penalties_first(f) + entropy / PENALTIES_IN_WORD;
    let shift = PENALTY_BITS * (entropy % PENALTIES_IN_WORD);
    let penalty = (psn_bits[word] >> shift) & LARGEST_PENALTY;
    psn_bits[word] += (min(penalty + more, LARGEST_PENALTY) - penalty) << shift;
}

// Takes 1 from the penalty of `entropy`. Returns whether it has none.
fn is_clean(f: u32, entropy: u32) -> bool {
    let word = penalties_first(f) + entropy / PENALTIES_IN_WORD;
    let shift = PENALTY_BITS * (entropy % PENALTIES_IN_WORD);
    if ((psn_bits[word] >> shift) & LARGEST_PENALTY) == 0u {
        return true;
    }
    psn_bits[word] -= 1u << shift;
    return false;
}

// Word with the number of the next step of the walk of queue pair `f`.
fn step_word(f: u32) -> u32 {
    return kept_first(f) + MIXED_KEPT_WORDS;
}

// The next entropy of the walk of queue pair `f`.
fn walk(f: u32) -> u32 {
    let tx = flow_base + f;
    let word = step_word(f);
    let step = psn_bits[word];
    psn_bits[word] = step + 1u;
    return path_of(flow_tx[tx].flow_id, step, 0u, flow_tx[tx].n_paths);
}

// The entropy that the next packet of queue pair `f` takes, without a look at where it is noted: the oldest that is kept, else the next one of the walk without
// a penalty. If all have one, it is the one after all of them.
fn pick_entropy(f: u32) -> u32 {
    let tx = flow_base + f;
    let n_paths = flow_tx[tx].n_paths;
    if n_paths == 1u {
        return 0u;
    }
    let count = flow_tx[tx].stage;
    if count > 0u {
        let place = u32(flow_tx[tx].alpha);
        flow_tx[tx].alpha = u64((place + 1u) % MIXED_KEPT);
        flow_tx[tx].stage = count - 1u;
        // The queue pair may have fewer paths than it had.
        return byte_at(kept_first(f), place) % n_paths;
    }
    for (var k = 0u; k < n_paths; k += 1u) {
        let entropy = walk(f);
        if is_clean(f, entropy) {
            return entropy;
        }
    }
    return walk(f);
}

// The entropy that the packet at position `pos` of queue pair `f` takes. It is noted, for a timeout.
fn next_mixed(f: u32, pos: u64) -> u32 {
    let entropy = pick_entropy(f);
    set_byte(mixed_first(f), place_of(pos), entropy);
    return entropy;
}

// Takes in what an answer with `answer_word` tells of the entropy that it carries.
fn learn(f: u32, answer_word: u32) {
    let tx = flow_base + f;
    let entropy = answer_word >> META_ENTROPY_SHIFT;
    if packet_kind(answer_word) == KIND_NACK && (answer_word & META_LAST_HOP) == 0u {
        penalise(f, entropy, TRIM_PENALTY);
        return;
    }
    if (answer_word & META_CNP) != 0u {
        penalise(f, entropy, MARK_PENALTY);
        return;
    }
    var count = flow_tx[tx].stage;
    var place = u32(flow_tx[tx].alpha);
    if count == MIXED_KEPT {
        place = (place + 1u) % MIXED_KEPT;
        flow_tx[tx].alpha = u64(place);
        count -= 1u;
    }
    set_byte(kept_first(f), (place + count) % MIXED_KEPT, entropy);
    flow_tx[tx].stage = count + 1u;
}

// The packet at position `pos` of queue pair `f` has become lost at a timeout.
fn distrust(f: u32, pos: u64) {
    if flow_tx[flow_base + f].n_paths > 1u {
        penalise(f, byte_at(mixed_first(f), place_of(pos)), TIMEOUT_PENALTY);
    }
}
