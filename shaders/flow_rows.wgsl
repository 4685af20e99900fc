// Rows of networks for `flow_fill.wgsl`, with the layout of those in `src/engine/gpu/rates/rows.rs`.

@group(0) @binding(0) var<storage, read> networks: array<NetworkRow>;
@group(0) @binding(1) var<storage, read_write> links: array<LinkRow>;
// Words of links that several lanes change: sums as two halves, marks.
@group(0) @binding(2) var<storage, read_write> link_words: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> carriers: array<CarrierRow>;
// Link, share.
@group(0) @binding(4) var<storage, read> crossings: array<vec2<u32>>;
// Each network has the carriers that are filled, then the links that these cross.
@group(0) @binding(5) var<storage, read_write> lists: array<u32>;
// Carrier, flows.
@group(0) @binding(6) var<storage, read> changes: array<vec2<u32>>;
// Each workgroup has its network, the first of its changes, and their number.
@group(0) @binding(7) var<storage, read> solutions: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> told: ToldRates;

struct NetworkRow {
    link_first: u32,
    n_links: u32,
    carrier_first: u32,
    n_carriers: u32,
    crossing_first: u32,
    // Its first touched link, among the lists.
    touched_first: u32,
    share_bits: u32,
    tolerance_shift: u32,
    ack_share: u32,
}

// What one lane at a time changes of a link.
struct LinkRow {
    capacity: u64,
    reserved: u64,
    free: u64,
    level: u64,
    stopped_at: u64,
    fastest: u64,
}

struct CarrierRow {
    first: u32,
    n: u32,
    first_ack: u32,
    n_ack: u32,
    flows: u32,
    bottleneck: u32,
    new_bottleneck: u32,
    state: u32,
    tie: u32,
    unused: u32,
    rate: u64,
    new_rate: u64,
    // The rate that the host knows.
    told: u64,
}

struct RateRow {
    network: u32,
    carrier: u32,
    rate: u64,
}

struct ToldRates {
    n: atomic<u32>,
    unused: u32,
    rows: array<RateRow>,
}

// Words of a link: two halves of a sum each, then marks.
const LOAD: u32 = 0u;
const ACKS: u32 = 2u;
const WEIGHT: u32 = 4u;
const RISING_WEIGHT: u32 = 6u;
const STOPPED_WEIGHT: u32 = 8u;
const DIRTY: u32 = 10u;
const UNSETTLED: u32 = 11u;
// In which turn of taking the link was touched first; `NONE`: it was not.
const TOUCHED: u32 = 12u;
// An earlier link of the same level has a carrier in common with it.
const BLOCKED: u32 = 13u;
const IS_BOTTLENECK: u32 = 14u;

const OUTSIDE: u32 = 0u;
const RISING: u32 = 1u;
const STOPPED: u32 = 2u;
