//! Integer helpers, the same by name and result in `shaders/math.wgsl`.

/// 1.0 and 2.0 in q32, 1.0 in q48.
pub const ONE_Q32: u64 = 1 << 32;
pub const TWO_Q32: u64 = 1 << 33;
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
    let p = a as u128 * b as u128;
    let (high, low) = ((p >> 64) as u64, p as u64);
    match high {
        0 => low / c,
        _ if high >= c => u64::MAX,
        _ => div_wide(high, low, c),
    }
}

/// `floor((2^64 * high + low) / c)`. One instruction of the processor, where a division of 128 by 128 bits is a call.
///
/// PRECONDITION: `high < c`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code)]
#[inline]
fn div_wide(high: u64, low: u64, c: u64) -> u64 {
    assert!(high < c, "the quotient has 64 bits");
    let q;
    // SAFETY: it reads and writes these registers only, and does not trap, as the divisor is not 0 and the quotient fits.
    unsafe {
        std::arch::asm!(
            "div {c}",
            c = in(reg) c,
            inout("rax") low => q,
            inout("rdx") high => _,
            options(pure, nomem, nostack)
        );
    }
    q
}

/// `floor((2^64 * high + low) / c)`. PRECONDITION: `high < c`.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn div_wide(high: u64, low: u64, c: u64) -> u64 {
    (((high as u128) << 64 | low as u128) / c as u128) as u64
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

/// `t` as a u32, saturating: how lineages store times.
#[inline]
pub fn sat(t: u64) -> u32 {
    if t > 0xffff_ffff { 0xffff_ffff } else { t as u32 }
}

/// murmur3_32 over three words: the counter-based generator, and ECMP's hash.
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
    fn wide_divisions_are_those_of_128_bits() {
        let mut seed = 3u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Of every magnitude.
            (seed ^ (seed >> 29)) >> (seed >> 58)
        };
        let (mut wide, mut saturated) = (0, 0);
        for _ in 0..200_000 {
            let (a, b, c) = (next(), next(), next());
            let exact = a as u128 * b as u128 / c.max(1) as u128;
            assert_eq!(mul_div(a, b, c), exact.min(u64::MAX as u128) as u64, "{a} * {b} / {c}");
            saturated += u32::from(exact > u64::MAX as u128);
            wide += u32::from(exact <= u64::MAX as u128 && a.checked_mul(b).is_none());
        }
        assert!(wide > 1_000 && saturated > 1_000, "{wide} wide, {saturated} saturated");
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
