//! Failures that do not depend on earlier failures.
//!
//! Layer: cluster.

use super::FailureModel;

/// Failure model `failures.model = "exponential"`.
pub(super) struct Exponential;

impl FailureModel for Exponential {
    fn gap(&self, draw: &mut dyn FnMut() -> f64) -> f64 {
        draw()
    }
}
