// Self-test of a GPU adapter: five small kernels whose results `src/engine/gpu/selftest.rs` computes again in Rust.
//
// Each kernel exercises one thing that the engine relies on and that some driver has got wrong. Nothing here is part of the model.

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<storage, read_write> shared_counters: array<atomic<u32>>;

fn lcg(x: u32) -> u32 {
    return x * 1664525u + 1013904223u;
}

// Long loops: every invocation takes input[0] data-dependent steps. Mesa 22.3 ends loops at 65,535.
@compute @workgroup_size(64)
fn long_loops(@builtin(global_invocation_id) id: vec3<u32>) {
    let steps = input[0];
    var state = id.x;
    var count = 0u;
    loop {
        if count >= steps { break; }
        state = lcg(state);
        count += 1u;
    }
    output[2u * id.x] = count;
    output[2u * id.x + 1u] = state;
}

fn load_u64(word_idx: u32) -> u64 {
    return (u64(input[word_idx + 1u]) << 32u) | u64(input[word_idx]);
}

fn store_u64(word_idx: u32, value: u64) {
    output[word_idx] = u32(value & 0xfffffffflu);
    output[word_idx + 1u] = u32(value >> 32u);
}

// 64-bit integers: input holds pairs (a, b), b never zero; output holds eighteen words a pair.
@compute @workgroup_size(64)
fn wide_integers(@builtin(global_invocation_id) id: vec3<u32>) {
    let pairs = arrayLength(&input) / 4u;
    if id.x >= pairs { return; }
    let a = load_u64(4u * id.x);
    let b = load_u64(4u * id.x + 2u);
    let out = 18u * id.x;
    let shift = u32(b & 63lu);
    store_u64(out, a * b);
    store_u64(out + 2u, a / b);
    store_u64(out + 4u, a % b);
    store_u64(out + 6u, a << shift);
    store_u64(out + 8u, a >> shift);
    store_u64(out + 10u, a + b);
    store_u64(out + 12u, a - b);
    store_u64(out + 14u, min(a, b));
    output[out + 16u] = select(0u, 1u, a < b) | select(0u, 2u, a >= b) | select(0u, 4u, a == b);
    output[out + 17u] = u32(i64(a) >> 63u) & 1u;
}

var<workgroup> lanes: array<u32, 256>;

// Workgroup barriers: input[0] rounds in which each thread takes what its neighbour wrote in the round before.
fn rotate_once(thread: u32, width: u32, round: u32) -> u32 {
    return lcg(lanes[(thread + round + 1u) % width]) ^ round;
}

@compute @workgroup_size(64)
fn barriers_64(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    lanes[thread] = thread + 1000u * group.x;
    workgroupBarrier();
    for (var round = 0u; round < input[0]; round++) {
        let next = rotate_once(thread, 64u, round);
        workgroupBarrier();
        lanes[thread] = next;
        workgroupBarrier();
    }
    output[64u * group.x + thread] = lanes[thread];
}

@compute @workgroup_size(256)
fn barriers_256(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    lanes[thread] = thread + 1000u * group.x;
    workgroupBarrier();
    for (var round = 0u; round < input[0]; round++) {
        let next = rotate_once(thread, 256u, round);
        workgroupBarrier();
        lanes[thread] = next;
        workgroupBarrier();
    }
    output[256u * group.x + thread] = lanes[thread];
}

// Storage barriers in a fused loop, as the engine's: a workgroup owns input[1] rows twice in `output` (two generations), and
// each of input[0] rounds computes one generation from rows that other threads wrote in the other one.
@compute @workgroup_size(64)
fn storage_barriers(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let rounds = input[0];
    let rows = input[1];
    let base = 2u * rows * group.x;
    for (var row = thread; row < rows; row += 64u) {
        output[base + row] = row + 7777u * group.x;
        output[base + rows + row] = 0u;
    }
    storageBarrier();
    for (var round = 0u; round < rounds; round++) {
        let read = base + (round & 1u) * rows;
        let write = base + ((round & 1u) ^ 1u) * rows;
        for (var row = thread; row < rows; row += 64u) {
            let left = output[read + (row + 1u) % rows];
            let far = output[read + (row * 31u + round) % rows];
            output[write + row] = lcg(left) + (far >> 3u);
        }
        storageBarrier();
    }
}

// Atomics: order must not matter, and no update may be lost.
@compute @workgroup_size(256)
fn atomics(@builtin(global_invocation_id) id: vec3<u32>) {
    for (var k = 0u; k < input[0]; k++) {
        let value = lcg(lcg(id.x * 977u + k));
        atomicAdd(&shared_counters[0], 1u);
        atomicAdd(&shared_counters[1u + (value % 16u)], value);
        atomicMax(&shared_counters[17], value);
        atomicMin(&shared_counters[18], value);
        atomicOr(&shared_counters[19u + (id.x % 8u)], 1u << (value % 32u));
    }
}
