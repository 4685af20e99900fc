// Which of its paths a packet takes (twin: `src/engine/cpu/transport/spraying.rs`).

// The path, of `n_paths`, that packet number `number` of flow `flow_id` takes. `direction`: 0 for data, 1 for answers.
fn path_of(flow_id: u32, number: u32, direction: u32, n_paths: u32) -> u32 {
    let in_turn = has_mode(MODE_IN_TURN);
    let drawn = hash32(flow_id, select(number, number / n_paths, in_turn), direction, exps[exp_row].routing_seed) % n_paths;
    return (drawn + select(0u, number % n_paths, in_turn)) % n_paths;
}
