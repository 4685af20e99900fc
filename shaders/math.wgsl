// Integer helpers (twin: `src/engine/cpu/math.rs`). Products of 128 bits are made of 32-bit limbs.

const MAX_U64: u64 = 0xfffffffffffffffflu;
const LOW_32: u64 = 0xfffffffflu;
// 1.0 and 2.0 in q32, 1.0 in q48.
const ONE_Q32: u64 = 0x100000000lu;
const TWO_Q32: u64 = 0x200000000lu;
const ONE_Q48: u64 = 0x1000000000000lu;

struct Wide {
    hi: u64,
    lo: u64,
}

fn wide_mul(a: u64, b: u64) -> Wide {
    let a0 = a & LOW_32;
    let a1 = a >> 32u;
    let b0 = b & LOW_32;
    let b1 = b >> 32u;
    let low = a0 * b0;
    let cross_a = a1 * b0;
    let cross_b = a0 * b1;
    let middle = (low >> 32u) + (cross_a & LOW_32) + (cross_b & LOW_32);
    let hi = a1 * b1 + (cross_a >> 32u) + (cross_b >> 32u) + (middle >> 32u);
    return Wide(hi, (low & LOW_32) | (middle << 32u));
}

fn leading_zeros(x: u64) -> u32 {
    let hi = u32(x >> 32u);
    return select(32u + countLeadingZeros(u32(x & LOW_32)), countLeadingZeros(hi), hi != 0u);
}

// One digit of the quotient in base 2^32 (Knuth's algorithm D): `(top * 2^32 + digit) / v` for a normalised `v`. At most two
// corrections, without branches: kernels compile and run faster so.
fn wide_digit(top: u64, digit: u64, v: u64) -> u64 {
    let v1 = v >> 32u;
    let v0 = v & LOW_32;
    var q = top / v1;
    var r = top - q * v1;
    let once = q > LOW_32 || q * v0 > ((r << 32u) | digit);
    q -= select(0lu, 1lu, once);
    r += select(0lu, v1, once);
    let twice = once && r <= LOW_32 && (q > LOW_32 || q * v0 > ((r << 32u) | digit));
    return q - select(0lu, 1lu, twice);
}

// `(hi * 2^64 + lo) / c` for `hi < c`.
fn wide_div(hi: u64, lo: u64, c: u64) -> u64 {
    let s = leading_zeros(c);
    let v = c << s;
    var top = hi << s;
    if s > 0u {
        top |= lo >> (64u - s);
    }
    let rest = lo << s;
    let d1 = rest >> 32u;
    let d0 = rest & LOW_32;
    let q1 = wide_digit(top, d1, v);
    // What is left after the first digit fits 64 bits, so the wrapping product is exact.
    let second = ((top << 32u) | d1) - q1 * v;
    let q0 = wide_digit(second, d0, v);
    return (q1 << 32u) + q0;
}

// `floor(a * b / 2^s)`, saturating; `s < 128`.
fn mul_shr(a: u64, b: u64, s: u32) -> u64 {
    let p = wide_mul(a, b);
    if s >= 64u {
        return p.hi >> (s - 64u);
    }
    if (p.hi >> s) != 0lu {
        return MAX_U64;
    }
    if s == 0u {
        return p.lo;
    }
    return (p.hi << (64u - s)) | (p.lo >> s);
}

// `floor(a * b / c)`, saturating; `c = 0` counts as 1.
fn mul_div(a: u64, b: u64, c0: u64) -> u64 {
    let c = max(c0, 1lu);
    let p = wide_mul(a, b);
    if p.hi == 0lu {
        return p.lo / c;
    }
    if p.hi >= c {
        return MAX_U64;
    }
    return wide_div(p.hi, p.lo, c);
}

// `floor(sqrt(x))`, bit by bit.
fn isqrt(x: u64) -> u64 {
    var root = 0u;
    for (var bit = 0x80000000u; bit != 0u; bit >>= 1u) {
        let trial = u64(root | bit);
        if trial * trial <= x {
            root |= bit;
        }
    }
    return u64(root);
}

// `ceil(a * g / 2^32)` for `a <= 2^32`, `g <= 2^31`.
fn decay_q32(a: u64, g: u64) -> u64 {
    return (a * g + LOW_32) >> 32u;
}

// Transmission time of `bytes` at `rate` bps, rounded half up to a multiple of `clock` ps.
fn tx_time(bytes: u32, rate: u64, clock: u64) -> u64 {
    let den = rate * clock;
    return clock * ((16000000000000lu * u64(bytes) + den) / (2lu * den));
}

// `t` as a u32, saturating: how lineages store times.
fn sat(t: u64) -> u32 {
    return u32(min(t, LOW_32));
}

// Differences and sums that stop at the ends of their range.
//
// The two functions of 64 bits have no `select`: NVIDIA's compiler (driver 580.159.04, on an H100) takes the carry of `a - b` or `a + b` for the comparison, and
// in large kernels the upper half of the result is then whatever its register held. `benches/runs/2026-11-27-gpu-visit.txt` has how it was found.
fn sub_sat(a: u64, b: u64) -> u64 {
    return a - min(a, b);
}

fn sub_sat_u32(a: u32, b: u32) -> u32 {
    return select(0u, a - b, a > b);
}

fn add_sat(a: u64, b: u64) -> u64 {
    return a + min(b, MAX_U64 - a);
}

fn add_sat_u32(a: u32, b: u32) -> u32 {
    let sum = a + b;
    return select(sum, 0xffffffffu, sum < a);
}

fn rotate_left(x: u32, n: u32) -> u32 {
    return (x << n) | (x >> (32u - n));
}

// murmur3_32 over three words: the counter-based generator, and ECMP's hash.
fn hash32(a: u32, b: u32, c: u32, seed: u32) -> u32 {
    var h = seed;
    h = murmur_round(h, a);
    h = murmur_round(h, b);
    h = murmur_round(h, c);
    h ^= 12u;
    h ^= h >> 16u;
    h *= 0x85ebca6bu;
    h ^= h >> 13u;
    h *= 0xc2b2ae35u;
    return h ^ (h >> 16u);
}

fn murmur_round(h: u32, word: u32) -> u32 {
    let k = rotate_left(word * 0xcc9e2d51u, 15u) * 0x1b873593u;
    return rotate_left(h ^ k, 13u) * 5u + 0xe6546b64u;
}
