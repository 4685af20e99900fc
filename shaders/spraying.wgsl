// Which of its paths a packet takes (twin: `src/engine/cpu/transport/spraying.rs`).

// The path, of `n_paths`, that packet number `number` of flow `flow_id` takes. `direction`: 0 for data, 1 for answers.
fn path_of(flow_id: u32, number: u32, direction: u32, n_paths: u32) -> u32 {
    let in_turn = has_mode(MODE_IN_TURN);
    let drawn = hash32(flow_id, select(number, number / n_paths, in_turn), direction, exps[exp_row].routing_seed) % n_paths;
    return (drawn + select(0u, number % n_paths, in_turn)) % n_paths;
}

// Number of paths that a sender keeps to choose them again.
const KEPT_PATHS: u32 = 8u;
// Bits of each of these in `alpha`.
const PATH_BITS: u32 = 8u;

// The path that the next packet of the queue pair in row `tx` takes: the oldest that is kept, else a random one.
fn next_entropy(tx: u32) -> u32 {
    let count = flow_tx[tx].stage;
    if count == 0u {
        return hash32(flow_tx[tx].flow_id, flow_tx[tx].n_sent, 0u, exps[exp_row].routing_seed) % flow_tx[tx].n_paths;
    }
    let kept = flow_tx[tx].alpha;
    flow_tx[tx].alpha = kept >> PATH_BITS;
    flow_tx[tx].stage = count - 1u;
    // The queue pair may have fewer paths than it had.
    return u32(kept & 255lu) % flow_tx[tx].n_paths;
}

// Keeps `path`, on which a packet arrived without a mark, to choose it again.
fn keep_entropy(tx: u32, path: u32) {
    var count = flow_tx[tx].stage;
    var kept = flow_tx[tx].alpha;
    if count == KEPT_PATHS {
        kept >>= PATH_BITS;
        count -= 1u;
    }
    flow_tx[tx].alpha = kept | (u64(path) << (count * PATH_BITS));
    flow_tx[tx].stage = count + 1u;
}
