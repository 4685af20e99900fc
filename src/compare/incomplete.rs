//! Folders that lack experiments.
//!
//! Layer: compare. Says so; what follows from it is the command's to decide.

use super::{Section, Study};

/// The folders whose runs have not come to their end, a row each; `None` if all have.
pub fn section(study: &Study) -> Option<Section> {
    let mut section = Section::new("incomplete", "folders that do not have all results of their run", ["dir", "why"]);
    let rows = study
        .runs
        .iter()
        .enumerate()
        .filter_map(|(run, of)| Some(vec![study.dir(run).into(), of.incomplete()?.into()]));
    section.rows.extend(rows);
    (!section.rows.is_empty()).then_some(section)
}
