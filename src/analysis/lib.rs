//! The meaning of results: studies, ranking, effects and recommendations.
//!
//! | module | content |
//! |---|---|
//! | [`compare`] | ranking, ties, Pareto, effects of axes, what changed between two runs, and gates |
//! | [`dominance`] | Pareto fronts |
//! | [`recommendation`] | which design a folder recommends, and what another choice costs |
//! | [`optimize`] | the objective of a search, and the model that chooses its next candidates |
//!
//! It reads folders of results and never simulates. The console and the report print what it finds.
//! Start with `compare/ranking.rs`.

#![forbid(unsafe_code)]

pub mod compare;
pub mod dominance;
pub mod optimize;
pub mod recommendation;
