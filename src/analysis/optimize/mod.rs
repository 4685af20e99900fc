//! `method = "optimize"`: finds the best of many candidates, and runs only few of them in full.
//!
//! Layer: optimize. Successive halving over levels of detail: every candidate is estimated without packets, promising ones are simulated with coarse packets,
//! and the most promising of those in full. Decisions depend only on values, so equal values give equal decisions. It runs nothing itself and writes no file.

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
pub use table::{EXP_ID_COLUMN, FATE_COLUMNS, LEVEL_COLUMNS, table};
