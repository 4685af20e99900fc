//! Converts a person's units to integers.
//!
//! Layer: spec. A leaf: one rounding, used for all keys.

/// Millionths in one.
pub(super) const PPM: f64 = 1e6;

/// Rounds a person's number times `scale` to an integer; the table's ranges keep it in 64 bits.
pub(super) fn scaled(x: f64, scale: f64) -> u64 {
    (x * scale).round() as u64
}

/// Converts a number to fixed point with `bits` fraction bits, rounded once.
pub(super) fn fixed(x: f64, bits: u32) -> u64 {
    scaled(x, (1u64 << bits) as f64)
}
