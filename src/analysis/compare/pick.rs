//! Parses the user's name of an experiment of a study.
//!
//! Layer: compare.

use super::{CompareError, Study};
use hyperfold_results::Cell;

/// An experiment that the user named: the index of its folder, and its row there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Index of its folder in [`Study::runs`].
    pub run: usize,
    /// Its row in that folder, from 0.
    pub row: usize,
}

impl Pick {
    /// Parses `ID`, or `DIR:ID` with a folder as it was given. `ID` alone is in the `nth` folder, or in the last one if there are not so many.
    ///
    /// # Errors
    /// There is no such folder or experiment.
    pub fn parse(study: &Study, text: &str, nth: usize) -> Result<Pick, CompareError> {
        let bad = |why: String| CompareError::Pick { pick: text.into(), why };
        let (run, id) = match text.rsplit_once(':') {
            None => (nth.min(study.runs.len() - 1), text),
            Some((dir, id)) => {
                let real = |p: &std::path::Path| p.canonicalize().unwrap_or_else(|_| p.to_path_buf());
                let wanted = real(dir.as_ref());
                let run = study.runs.iter().position(|r| real(&r.path) == wanted);
                let dirs: Vec<String> = study.runs.iter().map(|r| r.path.display().to_string()).collect();
                (run.ok_or_else(|| bad(format!("{dir} is not one of the folders given: {}", dirs.join(", "))))?, id)
            }
        };
        let id: u64 = id.trim().parse().map_err(|_| bad("write an exp_id, or DIR:EXP_ID".into()))?;
        let results = &study.runs[run];
        let missing = || {
            let ids = [0, results.rows.len().saturating_sub(1)]
                .map(|row| results.rows.get(row).map_or(0, |_| results.exp_id(row)));
            bad(format!(
                "there is no experiment {id} in {}; it has {} from {} to {}",
                study.dir(run),
                results.rows.len(),
                ids[0],
                ids[1]
            ))
        };
        Ok(Pick { run, row: results.find(id).ok_or_else(missing)? })
    }

    /// Name of the experiment for people: its id, with the folder if there are several.
    pub fn name(self, study: &Study) -> String {
        let id = study.runs[self.run].exp_id(self.row);
        if study.runs.len() > 1 { format!("{}:{id}", study.dir(self.run)) } else { id.to_string() }
    }

    pub(super) fn number(self, study: &Study, column: &str) -> Option<f64> {
        let run = &study.runs[self.run];
        run.column(column).and_then(|c| run.number(self.row, c))
    }

    pub(super) fn cell(self, study: &Study, column: &str) -> Cell {
        let run = &study.runs[self.run];
        run.column(column).map_or(Cell::Empty, |c| run.rows[self.row][c].clone())
    }
}
