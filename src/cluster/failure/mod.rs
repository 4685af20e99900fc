//! Failure models: when parts fail.
//!
//! Layer: cluster. A model is one file here that implements [`FailureModel`], and one line of the registry (`src/base/registries.rs`). It draws the time to a
//! part's next failure. `failing_parts` says what a failure stops; `failures_and_repairs` says what follows.
//!
//! An example, failures at equal distances:
//!
//! ```
//! use hyperfold_cluster::FailureModel;
//!
//! struct Regular;
//!
//! impl FailureModel for Regular {
//!     fn gap(&self, _draw: &mut dyn FnMut() -> f64) -> f64 {
//!         1.0
//!     }
//! }
//!
//! assert_eq!(Regular.gap(&mut || 0.3), 1.0);
//! ```

mod exponential;
mod weibull;

use hyperfold_base::{by_name, for_each_failure_model};
use hyperfold_config::spec::FailureKeys;

/// A distribution of times between failures.
pub trait FailureModel: Send + Sync {
    /// The next gap over the mean gap, from draws of the exponential distribution with mean 1.
    fn gap(&self, draw: &mut dyn FnMut() -> f64) -> f64;
}

/// Makes a model from the failure keys of a configuration.
type MakeModel = fn(&FailureKeys) -> Box<dyn FailureModel>;

/// All failure models by name. `"trace"` is not among them, because its failures are listed.
pub const FAILURE_MODELS: &[(&str, MakeModel)] = for_each_failure_model!(by_name);

/// The built-in failure model that the keys name. `None`: failures are listed in a trace, or the model is registered.
pub(super) fn failure_model(keys: &FailureKeys) -> Option<Box<dyn FailureModel>> {
    FAILURE_MODELS.iter().find(|(known, _)| *known == keys.model).map(|(_, make)| make(keys))
}
