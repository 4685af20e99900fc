//! Derives seeds from seeds and names.
//!
//! Layer: spec. A leaf.

/// Mixes three words well (the finaliser of splitmix64, applied per word).
pub fn mix(a: u64, b: u64, c: u64) -> u64 {
    let step = |h: u64, x: u64| {
        let mut z = (h ^ x).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    step(step(step(0, a), b), c)
}

/// Converts 64 random bits to a draw of the exponential distribution with mean 1.
pub(super) fn exponential(bits: u64) -> f64 {
    // From 2^-53 to 1.
    let unit = ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -libm::log(unit)
}

/// Hashes a name (FNV-1a, 64 bits), so that what is drawn for it depends neither on its place in a file nor on other names.
pub fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
