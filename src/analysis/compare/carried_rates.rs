//! Table of the folders in which measured rates were carried on where flows collide, so that results are approximate.
//!
//! Layer: compare. `stats.csv` says which experiments these are.

use super::{Section, Study};

/// Table of the folders in which rates were carried on, one row per folder. `None`: there are none.
pub fn section(study: &Study) -> Option<Section> {
    let columns = ["dir", "experiments", "largest steady_error %"];
    let title = "approximate where flows collide (fidelity.fast_forward = \"rates\"; carried_skips in stats.csv)";
    let mut section = Section::new("carried", title, columns);
    let carried = study.carried.iter().enumerate().filter(|(_, carried_runs)| carried_runs.experiments > 0);
    section.rows.extend(carried.map(|(run, carried_runs)| {
        vec![study.dir(run).into(), carried_runs.experiments.into(), (100.0 * carried_runs.error).into()]
    }));
    (!section.rows.is_empty()).then_some(section)
}
