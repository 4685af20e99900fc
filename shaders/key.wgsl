// The order of events (twin: `src/engine/cpu/key.rs`). docs/explanation/model-semantics.md, "Events and their order".

// An event: when, how it came about, what, where.
struct EventKey {
    t: u64,
    d: Lineage,
    kind: u32,
    entity: u32,
}

// Later than everything.
fn no_event() -> EventKey {
    return EventKey(NEVER, Lineage(), EVENT_NONE, 0u);
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

// First word of the distances, and the root's place.
const RUNS: u32 = 2u + CHANGES;
const ROOT: u32 = LINEAGE_WORDS - 1u;

// The rest of `older`: walks back over both patterns to the first difference.
fn older_by_pattern(a_lineage: Lineage, b_lineage: Lineage) -> i32 {
    var a = a_lineage;
    var b = b_lineage;
    var even = a[0];
    var odd = a[1];
    var index = 1u;
    for (var k = 0u; k < CHANGES; k++) {
        let ra = (a[RUNS + k / 2u] >> (16u * (k % 2u))) & 0xffffu;
        let rb = (b[RUNS + k / 2u] >> (16u * (k % 2u))) & 0xffffu;
        if ra == 0u && rb == 0u {
            break;
        }
        // Where only one pattern changes, the other goes on as before.
        let both = ra == rb;
        let a_first = rb == 0u || (ra != 0u && ra < rb);
        index += select(rb, ra, both || a_first);
        let expected = select(odd, even, index % 2u == 0u);
        let va = select(expected, a[2u + k], both || a_first);
        let vb = select(expected, b[2u + k], both || !a_first);
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
    if a[ROOT] != b[ROOT] {
        return select(-1, 1, a[ROOT] < b[ROOT]);
    }
    return 0;
}

// Whether `a` happens before `b`.
fn before(a: EventKey, b: EventKey) -> bool {
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
    var l = cause;
    l[0] = d;
    l[1] = cause[0];
    if d != cause[1] {
        // The pattern changes two places back: one more change, the oldest is forgotten.
        for (var k = CHANGES - 1u; k > 0u; k--) {
            l[2u + k] = l[1u + k];
        }
        l[2] = cause[1];
        for (var w = CHANGES / 2u - 1u; w > 0u; w--) {
            l[RUNS + w] = (l[RUNS + w] << 16u) | (l[RUNS + w - 1u] >> 16u);
        }
        l[RUNS] = (l[RUNS] << 16u) | 1u;
        return l;
    }
    let first = cause[RUNS] & 0xffffu;
    if first == 0u || first == FARTHEST {
        // No change yet, or too long ago to tell: it has always been like this.
        return periodic(d, cause[0], cause[ROOT]);
    }
    l[RUNS] = cause[RUNS] + 1u;
    return l;
}

// A lineage as it is stored, and back.
fn stored(l: Lineage) -> StoredLineage {
    return StoredLineage(
        vec4<u32>(l[0], l[1], l[2], l[3]),
        vec4<u32>(l[4], l[5], l[6], l[7]),
        vec4<u32>(l[8], l[9], l[10], l[11])
    );
}

fn restored(s: StoredLineage) -> Lineage {
    let a = s[0];
    let b = s[1];
    let c = s[2];
    return Lineage(a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w);
}

// Lineage of an event whose history alternates between two ages.
fn periodic(newest: u32, next: u32, root: u32) -> Lineage {
    var l = Lineage();
    l[0] = newest;
    l[1] = next;
    l[ROOT] = root;
    return l;
}
