//! Comparison of results: which configuration is best, by how much, why, and whether anything got worse.
//!
//! Layer: compare, below the command line and above results. It reads folders of results ([`Study`]) and makes plain tables ([`Section`]): ranking with ties,
//! effects of axes, Pareto front, differences between two experiments (and between their recorded timelines), and gates. It simulates nothing and prints
//! nothing.

pub mod better;
pub mod carried_rates;
pub mod changes;
pub mod effect;
pub mod explain;
pub mod explain_one;
pub mod fidelity;
pub mod fit;
#[cfg(test)]
mod fixture;
pub mod gate;
pub mod incomplete;
mod jobs;
pub mod knee;
pub mod levels;
mod link_kinds;
pub mod metric;
pub mod ops;
pub mod pairs;
pub mod pareto;
pub mod pick;
pub mod questions;
pub mod rank;
pub mod ranking;
mod resent;
mod shared_links;
pub mod spread;
mod stated_errors;
pub mod study;
pub mod unmodelled;

use thiserror::Error;

pub use better::Better;
pub use effect::{Effects, effects};
pub use explain::explain;
pub use explain_one::explain_one;
pub use gate::{GateCondition, GateVerdict};
pub use metric::RankingMetric;
pub use pareto::front;
pub use pick::Pick;
pub use questions::Questions;
pub use rank::{Ranked, RankedGroup, rank};
pub use ranking::{MeasuredValue, Ranking, TIE_SHARE};
pub use spread::Sample;
pub use study::{Study, StudyConfiguration};

use hyperfold_results::{Cell, ReadError};

/// Why results cannot be compared. The user can fix all of these.
#[derive(Debug, Error)]
pub enum CompareError {
    /// A folder has no results, or damaged ones.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A folder is named twice.
    #[error("{0}: given twice; name different folders")]
    Twice(String),
    /// An option names a column that there is not, or that has no numbers.
    #[error("{option}: there is no metric `{name}`; {hint}")]
    Metric {
        /// The option that names the column, such as `--metric`.
        option: &'static str,
        /// The name that the user wrote.
        name: String,
        /// Names that can be used instead, in words.
        hint: String,
    },
    /// No experiment has a value of the metric.
    #[error("no experiment has a result to rank by; `status` and `error` in results.csv say why")]
    Nothing,
    /// A Pareto front cannot be made; the text says why.
    #[error("--pareto: {0}")]
    Pareto(String),
    /// The experiment to explain does not exist, or has nothing to explain.
    #[error("--explain {pick}: {why}")]
    Pick {
        /// The experiment as the user wrote it.
        pick: String,
        /// Its fault, in words for the user.
        why: String,
    },
    /// The condition of a gate cannot be read.
    #[error("--fail-if `{text}`: {why}")]
    Gate {
        /// The condition as the user wrote it.
        text: String,
        /// Its fault, in words for the user.
        why: String,
    },
}

/// A table of findings, as plain data. The code that prints it chooses the form.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// One word that programs can recognise the table by.
    pub kind: &'static str,
    /// One line for people.
    pub title: String,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// Rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
    /// Remarks about the table.
    pub notes: Vec<String>,
}

impl Section {
    /// A table without rows and notes.
    pub fn new(
        kind: &'static str,
        title: impl Into<String>,
        columns: impl IntoIterator<Item = impl Into<String>>,
    ) -> Section {
        Section {
            kind,
            title: title.into(),
            columns: columns.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }
}
