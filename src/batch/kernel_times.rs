//! How much longer or shorter a kernel takes than the model says: `workload.compute_scale`, jitter, stragglers.
//!
//! Layer: batch. Arithmetic; `job` asks for every kernel of every rank.

use crate::spec;

/// What scale, jitter and stragglers make of a kernel's time, 1 being 2^32. Jitter is normal, cut at three deviations and at a tenth of the mean.
pub(super) fn factor_q32(compute: &spec::Compute, seed: u64, rank: u32, op: u32) -> u64 {
    let mut factor = compute.scale_ppm as f64 / 1e6;
    if compute.jitter_ppm > 0 {
        let a = unit(spec::mix(seed, u64::from(rank), u64::from(op) * 2));
        let b = unit(spec::mix(seed, u64::from(rank), u64::from(op) * 2 + 1));
        // Box and Muller's way from two uniform draws to a normal one.
        let normal = libm::sqrt(-2.0 * libm::log(a)) * libm::cos(2.0 * std::f64::consts::PI * b);
        factor *= (1.0 + compute.jitter_ppm as f64 / 1e6 * normal.clamp(-3.0, 3.0)).max(0.1);
    }
    if compute.stragglers.binary_search(&rank).is_ok() {
        factor *= compute.straggler_ppm as f64 / 1e6;
    }
    (factor * 4_294_967_296.0) as u64
}

/// A number in (0, 1] from a hash.
fn unit(hash: u64) -> f64 {
    ((hash >> 11) + 1) as f64 / (1u64 << 53) as f64
}
