//! The validation suites: what each is held against, the bound, and where its rows come from.
//!
//! Layer: cli. Converts the rows of the layers below into one form.

use super::validate::Row;

/// A suite of `hyperfold validate`.
pub struct Suite {
    pub name: &'static str,
    pub about: &'static str,
    /// On the mean absolute relative error of each of its tables.
    pub bound: f64,
    /// `None`: not available in this version.
    pub rows: Option<fn() -> anyhow::Result<Vec<Row>>>,
}

/// All suites, in the order in which they are printed.
pub static SUITES: [Suite; 7] = [
    Suite { name: "reference", about: "flow completion times against the packet-level reference", bound: 0.01, rows: None },
    Suite { name: "closed-forms", about: "collectives and pipelines against their formulas", bound: 0.005, rows: None },
    Suite { name: "kernels", about: "times of single kernels against published measurements", bound: 0.15, rows: None },
    Suite { name: "layers", about: "times of transformer layers against published measurements", bound: 0.1, rows: None },
    Suite { name: "collectives", about: "collective operations against runs of nccl-tests, above 1 MiB", bound: 0.08, rows: None },
    Suite { name: "training", about: "training steps against published measurements", bound: 0.05, rows: None },
    Suite { name: "memory", about: "memory of training against published measurements", bound: 0.03, rows: None },
];
