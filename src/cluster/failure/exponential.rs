//! Failures that know nothing of those before.
//!
//! Layer: cluster.

use super::FailureModel;

/// `failures.model = "exponential"`.
pub(super) struct Exponential;

impl FailureModel for Exponential {
    fn gap(&self, draw: &mut dyn FnMut() -> f64) -> f64 {
        draw()
    }
}
