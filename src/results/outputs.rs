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
    /// Columns of clusters whose jobs' iterations are simulated, which every sweep with one has.
    #[serde(default)]
    pub iterations: bool,
}

/// Which columns of clusters files have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterColumns {
    /// None.
    #[default]
    Absent,
    /// Those that every cluster over days has.
    Plain,
    /// Those of simulated iterations, too.
    WithIterations,
}

impl Outputs {
    /// Which columns of clusters its files have.
    pub fn cluster_columns(&self) -> ClusterColumns {
        match (self.cluster, self.iterations) {
            (false, _) => ClusterColumns::Absent,
            (true, false) => ClusterColumns::Plain,
            (true, true) => ClusterColumns::WithIterations,
        }
    }
}
