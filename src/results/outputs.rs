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
    /// The column `job` of `flows.csv`, which sweeps with several `[[job]]` tables have.
    #[serde(default)]
    pub jobs_of_flows: bool,
    /// `shared_links.csv`.
    #[serde(default)]
    pub shared_links: bool,
    /// Columns of clusters and `cluster_timeline.csv`, which every sweep with `fidelity.mode = "job"` has.
    #[serde(default)]
    pub cluster: bool,
    /// `cluster_jobs.csv`.
    #[serde(default)]
    pub cluster_jobs: bool,
    /// `cluster_map.csv`.
    #[serde(default)]
    pub cluster_map: bool,
    /// Columns of clusters whose jobs' iterations are simulated, and `cluster_congestion.csv`, which every sweep with one has.
    #[serde(default)]
    pub iterations: bool,
    /// Columns of inference, which every sweep with `workload.kind = "inference"` has.
    #[serde(default)]
    pub serving: bool,
    /// `requests.csv`.
    #[serde(default)]
    pub requests: bool,
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

/// Which columns `results.csv` has beside those of every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnSets {
    pub cluster: ClusterColumns,
    pub serving: bool,
}

impl ColumnSets {
    /// Every column there is.
    pub const ALL: ColumnSets = ColumnSets { cluster: ClusterColumns::WithIterations, serving: true };
}

impl Outputs {
    /// The columns of `results.csv` beside those of every run.
    pub fn columns(&self) -> ColumnSets {
        let cluster = match (self.cluster, self.iterations) {
            (false, _) => ClusterColumns::Absent,
            (true, false) => ClusterColumns::Plain,
            (true, true) => ClusterColumns::WithIterations,
        };
        ColumnSets { cluster, serving: self.serving }
    }
}
