//! Which optional files a run has.
//!
//! Layer: results.

use serde::{Deserialize, Serialize};

/// Which of the optional files a sweep asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outputs {
    pub flows: bool,
    pub links: bool,
    pub rtt: bool,
    /// `jobs.csv`, which every sweep with `[[job]]` tables has.
    #[serde(default)]
    pub jobs: bool,
    /// Columns of clusters and `cluster_timeline.csv`, which every sweep with `fidelity.mode = "job"` has.
    #[serde(default)]
    pub cluster: bool,
    /// `cluster_jobs.csv`.
    #[serde(default)]
    pub cluster_jobs: bool,
}
