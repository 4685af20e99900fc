//! `method = "optimize"`: finds the best of many candidates by running few of them in full.
//!
//! Layer: optimize. Successive halving over levels of detail: every candidate is estimated without a packet, the promising ones are simulated with coarse packets, the most
//! promising of those in full. Decides by values alone, so that whoever gives it the same values gets the same decisions; runs nothing itself and writes no file.

mod limit;
mod objective;
mod rank;
mod reduce;
mod residual;
mod search;
mod table;

pub use limit::{SearchLimit, WithinLimits, record_within, within};
pub use objective::{Objective, ObjectiveError};
pub use reduce::coarser;
pub use search::{Budget, CandidateFindings, CandidateValues, Evaluate, Fate, SearchLevel, search};
pub use table::table;
