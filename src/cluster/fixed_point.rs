//! Logarithms and powers in fixed point, so that draws are the same on every machine.
//!
//! Layer: cluster. It uses integers, and floating point only with sums, products and quotients, which IEEE 754 rounds alike everywhere.

use std::sync::OnceLock;

use hyperfold_llm::workload::random::RandomStream;

/// Number of fraction bits of logarithms.
const BITS: u32 = 32;
/// Number of fraction bits of mantissas.
const MANTISSA: u32 = 62;

/// `log2(x)` with 32 fraction bits. PRECONDITION: `x` is at least 1.
pub(super) fn log2(x: u64) -> i64 {
    let whole = 63 - x.leading_zeros();
    // `m` is in [1, 2) with 62 fraction bits. The lowest bit of a full word is too small to change the result.
    let mut m = if whole <= MANTISSA { x << (MANTISSA - whole) } else { x >> (whole - MANTISSA) };
    let mut fraction = 0u64;
    for _ in 0..BITS {
        let square = (u128::from(m) * u128::from(m)) >> MANTISSA;
        let above = square >> (MANTISSA + 1);
        fraction = fraction << 1 | above as u64;
        m = (square >> above) as u64;
    }
    (i64::from(whole) << BITS) + fraction as i64
}

/// `2^y`, `y` with 32 fraction bits.
pub(super) fn exp2(y: i64) -> f64 {
    static ROOTS: OnceLock<[u64; BITS as usize]> = OnceLock::new();
    // 2^(1/2), 2^(1/4), ...
    let roots = ROOTS.get_or_init(|| {
        let mut root = 2u128 << MANTISSA;
        std::array::from_fn(|_| {
            root = (root << MANTISSA).isqrt();
            root as u64
        })
    });
    let (whole, fraction) = (y >> BITS, (y & ((1 << BITS) - 1)) as u64);
    let mut m = 1u64 << MANTISSA;
    for (i, root) in roots.iter().enumerate() {
        if fraction >> (BITS as usize - 1 - i) & 1 == 1 {
            m = ((u128::from(m) * u128::from(*root)) >> MANTISSA) as u64;
        }
    }
    let whole = whole.clamp(-1000, 1000);
    // The bits of an `f64` that is a power of two.
    m as f64 / (1u64 << MANTISSA) as f64 * f64::from_bits(((1023 + whole) as u64) << 52)
}

/// `base^power` of a number above 0.
pub(super) fn pow(base: f64, power: f64) -> f64 {
    const SCALE: f64 = (1u64 << BITS) as f64;
    // The logarithm comes from mantissa and exponent, so numbers of any size work.
    let bits = base.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i64 - 1023;
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let log = (exponent as f64) + (log2(mantissa) as f64 / SCALE - 52.0);
    exp2((log * power * SCALE).clamp(-4e12, 4e12) as i64)
}

/// A draw of the exponential distribution with mean 1: `-ln(u)`.
pub(super) fn exponential(random: &mut RandomStream) -> f64 {
    let u = (random.next_u64() >> 1).max(1);
    let log = (63i64 << BITS) - log2(u);
    log as f64 / (1u64 << BITS) as f64 * std::f64::consts::LN_2
}

/// A whole number from `lowest` to `highest` whose logarithm is uniformly distributed. PRECONDITION: both are at least 1.
pub(super) fn log_uniform(random: &mut RandomStream, lowest: u64, highest: u64) -> u64 {
    let (a, b) = (log2(lowest.max(1)), log2(highest.max(lowest).max(1)));
    let y = a + ((i128::from(b - a) * i128::from(random.next_u64() >> 1)) >> 63) as i64;
    (exp2(y).round() as u64).clamp(lowest, highest)
}

/// The gamma function, by Lanczos' series (g = 5, n = 6: Numerical Recipes, section 6.1). PRECONDITION: `x` is at least 1.
pub(super) fn gamma(x: f64) -> f64 {
    const SERIES: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let z = x + 4.5;
    let sum = SERIES.iter().zip(0u32..).fold(1.000_000_000_190_015, |sum, (c, i)| sum + c / (x + f64::from(i)));
    // sqrt(2 pi).
    2.506_628_274_631_000_5 * sum * pow(z, x - 0.5) / pow(std::f64::consts::E, z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_powers_agree_with_the_library() {
        for x in [1u64, 2, 3, 10, 1000, 123_456_789, u64::MAX / 3, u64::MAX] {
            let want = (x as f64).log2();
            assert!((log2(x) as f64 / 4_294_967_296.0 - want).abs() < 1e-8, "{x}");
            assert!((exp2(log2(x)) / x as f64 - 1.0).abs() < 1e-8, "{x}");
        }
        for (b, p) in [(0.3, 1.25), (7.5, -0.8), (1e-9, 0.5), (2.0, 10.0)] {
            assert!((pow(b, p) / f64::powf(b, p) - 1.0).abs() < 1e-7, "{b}^{p}");
        }
        assert!(
            (gamma(1.5) - 0.886_226_925_452_758).abs() < 1e-7 && (gamma(2.25) - 1.133_003_096_319_346).abs() < 1e-7
        );
    }

    #[test]
    fn draws_have_their_mean() {
        let mut random = RandomStream::new(1, 2);
        let mean = (0..100_000).map(|_| exponential(&mut random)).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        let logs = (0..100_000).map(|_| (log_uniform(&mut random, 10, 1000) as f64).log10()).sum::<f64>() / 1e5;
        assert!((logs - 2.0).abs() < 0.01, "{logs}");
    }
}
