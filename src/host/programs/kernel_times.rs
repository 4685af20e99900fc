//! Factors on kernel times relative to the model: `workload.compute_scale`, jitter, stragglers.
//!
//! Layer: host. Arithmetic; `job` calls it for every kernel of every rank.

use hyperfold_config::spec;

/// Returns the factor of scale, jitter and stragglers on a kernel's time; 2^32 stands for 1. Jitter is normal, cut off at three deviations, and its factor is
/// at least 0.1.
pub(crate) fn factor_q32(compute: &spec::Compute, seed: u64, rank: u32, op: u32) -> u64 {
    let mut factor = compute.scale_ppm as f64 / 1e6;
    if compute.jitter_ppm > 0 {
        let a = unit(spec::mix(seed, u64::from(rank), u64::from(op) * 2));
        let b = unit(spec::mix(seed, u64::from(rank), u64::from(op) * 2 + 1));
        // Box-Muller transform from two uniform draws to a normal one.
        let normal = libm::sqrt(-2.0 * libm::log(a)) * libm::cos(2.0 * std::f64::consts::PI * b);
        factor *= (1.0 + compute.jitter_ppm as f64 / 1e6 * normal.clamp(-3.0, 3.0)).max(0.1);
    }
    if compute.stragglers.binary_search(&rank).is_ok() {
        factor *= compute.straggler_ppm as f64 / 1e6;
    }
    (factor * 4_294_967_296.0) as u64
}

/// Maps a hash to a number in (0, 1].
fn unit(hash: u64) -> f64 {
    ((hash >> 11) + 1) as f64 / (1u64 << 53) as f64
}
