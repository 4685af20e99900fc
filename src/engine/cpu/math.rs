//! Integer helpers (twin: `shaders/math.wgsl`, with the same results).

/// The number 1.0 in q32.
pub const ONE_Q32: u64 = 1 << 32;
/// The number 2.0 in q32.
pub const TWO_Q32: u64 = 1 << 33;
/// The number 1.0 in q48.
pub const ONE_Q48: u64 = 1 << 48;

/// `floor(a * b / 2^s)`, saturating; `s < 128`.
#[inline]
pub fn mul_shr(a: u64, b: u64, s: u32) -> u64 {
    let q = (a as u128 * b as u128) >> s;
    if q > u64::MAX as u128 { u64::MAX } else { q as u64 }
}

/// `floor(a * b / c)`, saturating; `c = 0` counts as 1.
#[inline]
pub fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    let c = c.max(1);
    if let Some(p) = a.checked_mul(b) {
        return p / c;
    }
    let q = a as u128 * b as u128 / c as u128;
    if q > u64::MAX as u128 { u64::MAX } else { q as u64 }
}

/// `floor(sqrt(x))`.
#[inline]
pub fn isqrt(x: u64) -> u64 {
    x.isqrt()
}

/// `ceil(a * g / 2^32)` for `a <= 2^32`, `g <= 2^31`.
#[inline]
pub fn decay_q32(a: u64, g: u64) -> u64 {
    (a * g + 0xffff_ffff) >> 32
}

/// Transmission time of `bytes` at `rate` bps, rounded half up to a multiple of `clock` ps.
#[inline]
pub fn tx_time(bytes: u32, rate: u64, clock: u64) -> u64 {
    let den = rate * clock;
    clock * ((16_000_000_000_000 * bytes as u64 + den) / (2 * den))
}

/// `t` as a u32, saturating. Lineages store times like this.
#[inline]
pub fn sat(t: u64) -> u32 {
    if t > 0xffff_ffff { 0xffff_ffff } else { t as u32 }
}

/// murmur3_32 over three words. It serves as the counter-based random generator, and as ECMP's hash.
pub fn hash32(a: u32, b: u32, c: u32, seed: u32) -> u32 {
    let mut h = seed;
    h = murmur_round(h, a);
    h = murmur_round(h, b);
    h = murmur_round(h, c);
    h ^= 12;
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 13;
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

fn murmur_round(h: u32, word: u32) -> u32 {
    let k = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (h ^ k).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_products_saturate_and_survive_zero() {
        assert_eq!(mul_div(u64::MAX, u64::MAX, 1), u64::MAX);
        assert_eq!(mul_div(7, 9, 0), 63);
        assert_eq!(mul_div(1 << 60, 1 << 20, 1 << 30), 1 << 50);
        assert_eq!(mul_shr(u64::MAX, u64::MAX, 64), u64::MAX - 1);
        assert_eq!(mul_shr(3, 1 << 33, 33), 3);
    }

    #[test]
    fn decay_reaches_zero() {
        let mut alpha = 1u64 << 32;
        let mut ticks = 0;
        while alpha > 0 {
            alpha -= decay_q32(alpha, 1 << 24);
            ticks += 1;
        }
        assert!((4_000..6_000).contains(&ticks), "{ticks}");
    }
}
