//! From a person's units to integers.
//!
//! Layer: spec. A leaf: one rounding, used for all keys.

/// Parts in a million that make one.
pub(super) const PPM: f64 = 1e6;

/// Rounds a person's number times `scale` to an integer; the table's ranges keep it in 64 bits.
pub(super) fn scaled(x: f64, scale: f64) -> u64 {
    (x * scale).round() as u64
}

/// A fraction with `bits` fraction bits, rounded once.
pub(super) fn fixed(x: f64, bits: u32) -> u64 {
    scaled(x, (1u64 << bits) as f64)
}
