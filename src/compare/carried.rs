//! Folders with experiments that carried measured rates on where flows collide.
//!
//! Layer: compare. Says so; `stats.csv` says which.

use super::{Section, Study};

/// Experiments of a folder that carried rates on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CarriedRuns {
    pub experiments: u64,
    /// The largest estimate of how far times are off, relative.
    pub error: f64,
}

/// The folders in which rates were carried on, a row each; `None` if there are none.
pub fn section(study: &Study) -> Option<Section> {
    let columns = ["dir", "experiments", "largest steady_error %"];
    let title = "approximate where flows collide (fidelity.fast_forward = \"rates\"; carried_skips in stats.csv)";
    let mut section = Section::new("carried", title, columns);
    let carried = study.carried.iter().enumerate().filter(|(_, of)| of.experiments > 0);
    section
        .rows
        .extend(carried.map(|(run, of)| vec![study.dir(run).into(), of.experiments.into(), (100.0 * of.error).into()]));
    (!section.rows.is_empty()).then_some(section)
}
