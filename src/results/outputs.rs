//! The optional files and columns of a run.
//!
//! Layer: results.

use serde::{Deserialize, Serialize};

/// The optional files and columns that a sweep asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outputs {
    /// Whether `flows.csv` is written.
    pub flows: bool,
    /// Whether `links.csv` is written.
    pub links: bool,
    /// Whether `rtt.csv` is written.
    pub rtt: bool,
    /// Whether `rtt_means.csv` is written.
    #[serde(default)]
    pub rtt_means: bool,
    /// Whether `jobs.csv` is written, which every sweep with `[[job]]` tables has.
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
    /// Columns of clusters whose jobs' iterations are simulated, and `cluster_congestion.csv`, which every sweep with such a cluster has.
    #[serde(default)]
    pub iterations: bool,
    /// Columns of inference, which every sweep with `workload.kind = "inference"` has.
    #[serde(default)]
    pub serving: bool,
    /// `requests.csv`.
    #[serde(default)]
    pub requests: bool,
    /// `series_links.csv`.
    #[serde(default)]
    pub series_links: bool,
    /// `series_flows.csv`.
    #[serde(default)]
    pub series_flows: bool,
}

/// Which columns of clusters `results.csv` has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterColumns {
    /// No columns.
    #[default]
    Absent,
    /// The columns that every cluster over days has.
    Plain,
    /// The columns of simulated iterations, too.
    WithIterations,
}

/// The columns of `results.csv` besides those of every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnSets {
    /// Columns of clusters over days.
    pub cluster: ClusterColumns,
    /// Whether there are columns of inference.
    pub serving: bool,
}

impl ColumnSets {
    /// All columns.
    pub const ALL: ColumnSets = ColumnSets { cluster: ClusterColumns::WithIterations, serving: true };
}

impl Outputs {
    /// Returns the columns of `results.csv` besides those of every run.
    pub fn columns(&self) -> ColumnSets {
        let cluster = match (self.cluster, self.iterations) {
            (false, _) => ClusterColumns::Absent,
            (true, false) => ClusterColumns::Plain,
            (true, true) => ClusterColumns::WithIterations,
        };
        ColumnSets { cluster, serving: self.serving }
    }
}
