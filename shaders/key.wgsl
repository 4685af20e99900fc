// The order of events (twin: `src/engine/cpu/key.rs`). ARCHITECTURE.md, "Events and their order".

// An event: when, how it came about, what, where.
struct Key {
    t: u64,
    d: Lineage,
    kind: u32,
    entity: u32,
}

// Later than everything.
fn no_event() -> Key {
    return Key(NEVER, Lineage(), EVENT_NONE, 0u);
}

// Whether lineage `a` was scheduled earlier than `b`, both for the same instant: 1 yes, -1 no, 0 cannot tell.
fn older(a: Lineage, b: Lineage) -> i32 {
    if a[0] != b[0] {
        return select(-1, 1, a[0] > b[0]);
    }
    if a[1] != b[1] {
        return select(-1, 1, a[1] > b[1]);
    }
    return older_by_pattern(a, b);
}

// The rest of `older`: walks back over both patterns to the first difference.
fn older_by_pattern(a: Lineage, b: Lineage) -> i32 {
    var even = a[0];
    var odd = a[1];
    var index = 1u;
    for (var k = 0u; k < 2u; k++) {
        let ra = (a[4] >> (16u * k)) & 0xffffu;
        let rb = (b[4] >> (16u * k)) & 0xffffu;
        if ra == 0u && rb == 0u {
            break;
        }
        // Where only one pattern changes, the other goes on as before.
        let both = ra == rb;
        let a_first = rb == 0u || (ra != 0u && ra < rb);
        index += select(rb, ra, both || a_first);
        let expected = select(odd, even, index % 2u == 0u);
        let va = select(expected, select(a[2], a[3], k == 1u), both || a_first);
        let vb = select(expected, select(b[2], b[3], k == 1u), both || !a_first);
        if va != vb {
            return select(-1, 1, va > vb);
        }
        if !both {
            break;
        }
        if index % 2u == 0u {
            even = va;
        } else {
            odd = va;
        }
    }
    if a[5] != b[5] {
        return select(-1, 1, a[5] < b[5]);
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
fn lineage(ahead: u64, cause: Lineage) -> Lineage {
    let d = sat(ahead);
    let runs = cause[4];
    if d != cause[1] {
        return Lineage(d, cause[0], cause[1], cause[2], (runs << 16u) | 1u, cause[5]);
    }
    let first = runs & 0xffffu;
    if first == 0u || first == 0xffffu {
        // No change yet, or too long ago to tell: it has always been like this.
        return Lineage(d, cause[0], 0u, 0u, 0u, cause[5]);
    }
    return Lineage(d, cause[0], cause[2], cause[3], runs + 1u, cause[5]);
}
