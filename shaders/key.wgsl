// The order of events (twin: `src/engine/cpu/key.rs`). ARCHITECTURE.md, "Events and their order".

// An event: when, how it came about, what, where.
struct Key {
    t: u64,
    d: array<u32, 4>,
    kind: u32,
    entity: u32,
}

// Later than everything.
fn no_event() -> Key {
    return Key(NEVER, array<u32, 4>(0u, 0u, 0u, 0u), EVENT_NONE, 0u);
}

// Whether lineage `a` was scheduled earlier than `b`, both for the same instant: 1 yes, -1 no, 0 cannot tell.
fn older(a: array<u32, 4>, b: array<u32, 4>) -> i32 {
    if a[0] != b[0] {
        return select(-1, 1, a[0] > b[0]);
    }
    if a[1] != b[1] {
        return select(-1, 1, a[1] > b[1]);
    }
    if a[2] != b[2] {
        return select(-1, 1, a[2] > b[2]);
    }
    if a[3] != b[3] {
        return select(-1, 1, a[3] > b[3]);
    }
    return 0;
}

// Whether `a` happens before `b`.
fn before(a: Key, b: Key) -> bool {
    if a.t != b.t {
        return a.t < b.t;
    }
    let o = older(a.d, b.d);
    if o != 0 {
        return o > 0;
    }
    if a.kind != b.kind {
        return a.kind < b.kind;
    }
    return a.entity < b.entity;
}

// Lineage of an event scheduled `ahead` ps before it happens by an event with lineage `cause`.
fn lineage(ahead: u64, cause: array<u32, 4>) -> array<u32, 4> {
    return array<u32, 4>(sat(ahead), cause[0], cause[1], cause[2]);
}
