//! Table of folders in which experiments are missing.
//!
//! Layer: compare. The command decides what follows from it.

use super::{Section, Study};

/// Table of the folders whose runs are not complete, one row each. `None`: all are complete.
pub fn section(study: &Study) -> Option<Section> {
    let mut section = Section::new("incomplete", "folders that do not have all results of their run", ["dir", "why"]);
    let rows = study
        .runs
        .iter()
        .enumerate()
        .filter_map(|(index, run)| Some(vec![study.dir(index).into(), run.incomplete()?.into()]));
    section.rows.extend(rows);
    (!section.rows.is_empty()).then_some(section)
}
