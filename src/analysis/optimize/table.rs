//! `optimize.csv`: values of every candidate that the search saw, and why it was left out.
//!
//! Layer: optimize. It makes the text; others decide where it is written.

use super::objective::Objective;
use super::search::{CandidateFindings, Fate, SearchLevel};
use hyperfold_results::csv_rows::CollectedRows;
use hyperfold_results::{Axis, Cell, ColumnLine};

/// What stands for the name of an objective in [`LEVEL_COLUMNS`].
const OBJECTIVE: &str = "OBJECTIVE";

/// The column before those of axes.
pub const EXP_ID_COLUMN: ColumnLine = ColumnLine {
    name: "exp_id",
    values: "whole number",
    text: "The candidate's experiment. Those that ran in full are in `results.csv`.",
    see: None,
};

/// Columns after those of axes. Each stands once for every objective, with its name in place of `OBJECTIVE`.
pub const LEVEL_COLUMNS: [ColumnLine; 2] = [
    ColumnLine {
        name: "estimate_OBJECTIVE",
        values: "number",
        text: "Value of that objective as estimated without a packet, in the unit of its column; empty if there is none.",
        see: Some("how-to/search.md#what-happens"),
    },
    ColumnLine {
        name: "coarse_OBJECTIVE",
        values: "number",
        text: "Value of that objective in the coarse simulation, in the unit of its column; empty if there was none.",
        see: Some("how-to/search.md#what-happens"),
    },
];

/// The last columns.
pub const FATE_COLUMNS: [ColumnLine; 4] = [
    ColumnLine {
        name: "reached",
        values: "text",
        text: "How far the candidate came: `estimate`, `coarse` or `full`.",
        see: None,
    },
    ColumnLine {
        name: "rank",
        values: "whole number",
        text: "Its rank at the level that it reached, from 1, if it was left out because others are better.",
        see: None,
    },
    ColumnLine {
        name: "of",
        values: "whole number",
        text: "Number of candidates that were ranked at that level.",
        see: None,
    },
    ColumnLine { name: "why", values: "text", text: "Why it was left out; empty if it ran in full.", see: None },
];

/// Text of the file. `ids` and `values` are the `exp_id` and the axis values of each candidate.
pub fn table(
    axes: &[Axis],
    objectives: &[Objective],
    ids: &[u64],
    values: &[Vec<Cell>],
    found: &[CandidateFindings],
) -> Vec<u8> {
    let mut rows = CollectedRows::default();
    let levels = LEVEL_COLUMNS.iter().flat_map(|level| {
        objectives.iter().map(|objective| Cell::from(level.name.replace(OBJECTIVE, objective.name())))
    });
    let head = std::iter::once(Cell::from(EXP_ID_COLUMN.name)).chain(axes.iter().map(|a| Cell::from(a.key.as_str())));
    rows.push(head.chain(levels).chain(FATE_COLUMNS.map(|column| Cell::from(column.name))));
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
