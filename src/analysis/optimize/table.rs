//! `optimize.csv`: values of every candidate that the search saw, and why it was left out.
//!
//! Layer: optimize. It makes the text; others decide where it is written.

use super::objective::Objective;
use super::search::{CandidateFindings, Fate, SearchLevel};
use hyperfold_results::csv_rows::CollectedRows;
use hyperfold_results::{Axis, Cell};

/// Text of the file. `ids` and `values` are the `exp_id` and the axis values of each candidate.
pub fn table(
    axes: &[Axis],
    objectives: &[Objective],
    ids: &[u64],
    values: &[Vec<Cell>],
    found: &[CandidateFindings],
) -> Vec<u8> {
    let mut rows = CollectedRows::default();
    let each = |level: &'static str| objectives.iter().map(move |o| Cell::from(format!("{level}_{}", o.name())));
    let head = std::iter::once(Cell::from("exp_id")).chain(axes.iter().map(|a| Cell::from(a.key.as_str())));
    rows.push(
        head.chain(each("estimate")).chain(each("coarse")).chain(["reached", "rank", "of", "why"].map(Cell::from)),
    );
    for ((&id, values), found) in ids.iter().zip(values).zip(found) {
        let mut row = vec![Cell::from(id)];
        row.extend(values.iter().cloned());
        let estimate = |k: usize| found.estimate.as_ref().and_then(|e| e[k]);
        let coarse = |k: usize| found.coarse.as_ref().map(|c| c[k]);
        row.extend(objectives.iter().enumerate().map(|(k, o)| Cell::from(estimate(k).map(|v| o.shown(v)))));
        row.extend(objectives.iter().enumerate().map(|(k, o)| Cell::from(coarse(k).map(|v| o.shown(v)))));
        row.extend(match &found.fate {
            Fate::Full => ["full".into(), Cell::Empty, Cell::Empty, "".into()],
            Fate::Left { at, rank, of } => {
                [name(*at).into(), (*rank as u64).into(), (*of as u64).into(), "others are better".into()]
            }
            Fate::Out { at, why } => [name(*at).into(), Cell::Empty, Cell::Empty, why.as_str().into()],
        });
        rows.push(row);
    }
    rows.into_bytes()
}

fn name(level: SearchLevel) -> &'static str {
    match level {
        SearchLevel::Estimate => "estimate",
        SearchLevel::CoarseEstimate | SearchLevel::Coarse => "coarse",
    }
}
