// System `analytical`, a row an experiment: what is no packets' is served and releases its tasks
// (twin: `src/engine/cpu/analytical.rs`).

// Serves the gates that fired, in their order. INVARIANT: a gate's latency is at least a step, so what it releases lies beyond
// this one; what it releases waits for nothing else.
fn analytical() {
    var g = exps[exp_row].fired;
    exps[exp_row].fired = NONE;
    while g != NONE {
        serve(g);
        g = gates[gate_base + g].next;
    }
}

// Serves gate `g`: it waits for its server, if it has one, and releases its tasks after its latency.
fn serve(g: u32) {
    let gate = gate_base + g;
    var free = gates[gate].latest;
    let server = gates[gate].server;
    if server != NONE {
        free = max(free, servers[server_base + server]) + gates[gate].serial;
        servers[server_base + server] = free;
    }
    let end = free + gates[gate].latency;
    let first = gates[gate].first;
    for (var k = first; k < first + gates[gate].n; k++) {
        let i = edges[edge_base + k];
        let row = task_base + i;
        let end_at = end + tasks[row].delay;
        let n = tasks[row].owner;
        tasks[row].waits -= 1u;
        tasks[row].at = end_at;
        under_way(n, i);
        let own = clock_base + exp_end_len + n;
        clocks[own] = min(clocks[own], end_at);
    }
}
