//! Renders records as CSV text, and names the files that have them.
//!
//! Layer: results. [`super::writer`] decides when and where the text is written.

use std::fmt::Write as _;

use super::cluster_record::{ClusterCongestionRecord, ClusterJobRecord, ClusterMapRecord, ClusterSampleRecord};
use super::job_record::{JobRecord, SharedLinkRecord};
use super::network_record::{
    FlowMeasures, FlowRecord, LinkEnds, LinkPackets, LinkPauses, LinkRecord, MeanRttRecord, RttRecord,
};
use super::outputs::{ColumnSets, Outputs};
use super::record::{ExperimentRecord, Finished, IDENTITY, outcome_columns};
use super::record_macro::{ColumnLine, FileColumn};
use super::series_record::{FlowSampleRecord, LinkSampleRecord};
use super::serving_record::RequestRecord;
use super::stats_record::{FoldingRecord, StatsRecord};
use super::value::{Axis, Cell};

/// A file beside `results.csv` with rows of each experiment.
pub struct Companion {
    /// Name of the file in the folder.
    pub name: &'static str,
    /// Whether a run writes it.
    pub is_wanted: fn(&Outputs) -> bool,
    /// Returns its columns, as the reference describes them.
    pub columns: fn(&Outputs) -> Vec<ColumnLine>,
    /// Returns the rows of an experiment as text.
    pub text: fn(&Outputs, &Finished) -> Vec<u8>,
}

impl Companion {
    /// Returns the line of its column names.
    pub fn header(&self, outputs: &Outputs) -> Vec<u8> {
        header((self.columns)(outputs).into_iter().map(|column| column.name))
    }
}

/// The first column of each of these files.
const EXP_ID: ColumnLine =
    ColumnLine { name: "exp_id", values: "whole number", text: "The experiment, as in `results.csv`.", see: None };

/// The column of `flows.csv` that sweeps with several jobs have between those of the flow and of its measures.
const JOB_OF_FLOW: ColumnLine =
    ColumnLine { name: "job", values: "text", text: "With several `[[job]]` tables: whose flow it is.", see: None };

const FLOWS: Companion = Companion {
    name: "flows.csv",
    is_wanted: |outputs| outputs.flows,
    columns: |outputs| {
        let mut lines = columns(&[FlowRecord::COLUMNS]);
        lines.extend(outputs.jobs_of_flows.then_some(JOB_OF_FLOW));
        lines.extend(FlowMeasures::COLUMNS.iter().map(|column| column.line));
        lines
    },
    text: |outputs, finished| {
        if outputs.jobs_of_flows {
            flows_of_jobs(finished)
        } else {
            text(finished.record.exp_id, &finished.flows, &[FlowRecord::COLUMNS, FlowMeasures::COLUMNS])
        }
    },
};

/// Lists [`FLOWS`] and files that have the same columns in every run: whether a run writes them, their rows, and the columns of these after `exp_id`.
macro_rules! companions {
    ($($name:literal if $is_wanted:expr, $rows:expr, [$($columns:expr),+];)*) => {
        &[FLOWS, $(Companion {
            name: $name,
            is_wanted: $is_wanted,
            columns: |_| columns(&[$($columns),+]),
            text: |_, finished| {
                let rows: fn(&Finished) -> &[_] = $rows;
                text(finished.record.exp_id, rows(finished), &[$($columns),+])
            },
        }),*]
    };
}

/// Files beside `results.csv`.
pub const COMPANIONS: &[Companion] = companions! {
    "stats.csv" if |_| true, |f| std::slice::from_ref(&f.stats), [StatsRecord::COLUMNS, FoldingRecord::COLUMNS];
    "links.csv" if |o| o.links, |f| &f.links, [LinkRecord::COLUMNS, LinkPackets::COLUMNS, LinkEnds::COLUMNS, LinkPauses::COLUMNS];
    "rtt.csv" if |o| o.rtt, |f| &f.rtt, [RttRecord::COLUMNS];
    "rtt_means.csv" if |o| o.rtt_means, |f| &f.rtt_means, [MeanRttRecord::COLUMNS];
    "jobs.csv" if |o| o.jobs, |f| &f.jobs, [JobRecord::COLUMNS];
    "shared_links.csv" if |o| o.shared_links, |f| &f.shared_links, [SharedLinkRecord::COLUMNS];
    "cluster_timeline.csv" if |o| o.cluster, |f| &f.cluster_timeline, [ClusterSampleRecord::COLUMNS];
    "cluster_jobs.csv" if |o| o.cluster_jobs, |f| &f.cluster_jobs, [ClusterJobRecord::COLUMNS];
    "cluster_congestion.csv" if |o| o.iterations, |f| &f.cluster_congestion, [ClusterCongestionRecord::COLUMNS];
    "cluster_map.csv" if |o| o.cluster_map, |f| &f.cluster_map, [ClusterMapRecord::COLUMNS];
    "requests.csv" if |o| o.requests, |f| &f.requests, [RequestRecord::COLUMNS];
    "series_links.csv" if |o| o.series_links, |f| &f.series_links, [LinkSampleRecord::COLUMNS];
    "series_flows.csv" if |o| o.series_flows, |f| &f.series_flows, [FlowSampleRecord::COLUMNS];
};

/// Returns `exp_id`, then columns.
fn columns<T>(columns: &[&[FileColumn<T>]]) -> Vec<ColumnLine> {
    std::iter::once(EXP_ID).chain(columns.iter().copied().flatten().map(|column| column.line)).collect()
}

/// Returns rows as text: `exp_id`, then their columns.
fn text<T>(exp_id: u64, records: &[T], columns: &[&[FileColumn<T>]]) -> Vec<u8> {
    let mut rows = CollectedRows::default();
    for record in records {
        let cells = columns.iter().copied().flatten().map(|column| (column.cell)(record));
        rows.push(std::iter::once(exp_id.into()).chain(cells));
    }
    rows.into_bytes()
}

/// Returns the rows of `flows.csv` for an experiment of several jobs: each flow with its job.
fn flows_of_jobs(finished: &Finished) -> Vec<u8> {
    // Flows of a job have consecutive ids.
    let mut first: Vec<(u64, u64, &str)> =
        finished.jobs.iter().filter_map(|job| Some((job.first_flow?, job.flows, job.job.as_str()))).collect();
    first.sort_unstable();
    let job = |id: u64| -> Option<&str> {
        let range = first.partition_point(|(begin, _, _)| *begin <= id).checked_sub(1).map(|i| first[i]);
        range.filter(|(begin, flows, _)| id - begin < *flows).map(|(_, _, job)| job)
    };
    let mut rows = CollectedRows::default();
    for flow in &finished.flows {
        let cells = FlowRecord::COLUMNS.iter().map(|column| (column.cell)(flow));
        let measures = FlowMeasures::COLUMNS.iter().map(|column| (column.cell)(flow));
        let job = job(flow.flow_id.into()).into();
        rows.push(std::iter::once(finished.record.exp_id.into()).chain(cells).chain([job]).chain(measures));
    }
    rows.into_bytes()
}

/// Puts an apostrophe before text that a spreadsheet would take for a formula; other text is unchanged.
fn neutralise(text: String) -> String {
    if is_formula(&text) { format!("'{text}") } else { text }
}

/// Whether a spreadsheet may take text for a formula. Some skip blanks before the sign, and some accept its full-width form.
pub(crate) fn is_formula(text: &str) -> bool {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let sign = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
    text.starts_with(['\t', '\r']) || text.trim_start_matches(blank).starts_with(sign)
}

/// Collects CSV rows in memory.
pub struct CollectedRows {
    csv: csv::Writer<Vec<u8>>,
    /// Text of a field, kept for the next one.
    field: String,
}

impl Default for CollectedRows {
    fn default() -> Self {
        let csv = csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new());
        CollectedRows { csv, field: String::new() }
    }
}

impl CollectedRows {
    /// Appends a row. Only text is neutralised, so that a negative number stays a number.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        for cell in cells {
            self.field.clear();
            match cell {
                Cell::Empty => {}
                Cell::Text(text) => self.field.push_str(&neutralise(text)),
                other => write!(self.field, "{other}").expect("a text takes everything"),
            }
            self.csv.write_field(&self.field).expect("memory takes every field");
        }
        self.csv.write_record(None::<&[u8]>).expect("all rows of a file have its header's length");
    }

    /// Returns the text so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.csv.into_inner().expect("memory takes every row")
    }
}

/// Returns one line of column names.
pub fn header<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut rows = CollectedRows::default();
    rows.push(names.into_iter().map(Cell::from));
    rows.into_bytes()
}

/// Returns the column names of `results.csv`, with the optional columns in `sets`.
pub fn results_header(axes: &[Axis], sets: ColumnSets) -> Vec<&str> {
    let names = IDENTITY.iter().map(|c| c.name).chain(axes.iter().map(|a| a.key.as_str()));
    names.chain(outcome_columns(sets).map(|c| c.name)).collect()
}

/// Returns the column names of `failed.csv`.
pub fn failed_header(axes: &[Axis]) -> Vec<&str> {
    ["exp_id", "exp_key"].into_iter().chain(axes.iter().map(|a| a.key.as_str())).chain(["error"]).collect()
}

/// Returns the row of `results.csv`, in the order of [`results_header`].
pub fn results_row(record: &ExperimentRecord, sets: ColumnSets) -> Vec<Cell> {
    let identity = IDENTITY.iter().map(|c| (c.cell)(record));
    let outcome = outcome_columns(sets).map(|c| (c.cell)(record));
    identity.chain(record.axis_values.iter().cloned()).chain(outcome).collect()
}

/// Returns the row of `failed.csv`.
pub fn failed_row(record: &ExperimentRecord) -> Vec<Cell> {
    let mut row = vec![record.exp_id.into(), record.exp_key.as_str().into()];
    row.extend(record.axis_values.iter().cloned());
    row.push(record.error.as_str().into());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text_and_numbers_stay_numbers() {
        let mut rows = CollectedRows::default();
        rows.push(["=1+1".into(), "@x".into(), "a,\"b\"".into(), Cell::Int(-5), Cell::Empty]);
        assert_eq!(String::from_utf8(rows.into_bytes()).unwrap(), "'=1+1,'@x,\"a,\"\"b\"\"\",-5,\n");
    }

    #[test]
    fn flows_of_several_jobs_name_theirs() {
        let job =
            |name: &str, first_flow, flows| JobRecord { job: name.into(), first_flow, flows, ..JobRecord::default() };
        let flow = |flow_id| FlowRecord { flow_id, dst: 1, bytes: 9, ..FlowRecord::default() };
        let record = ExperimentRecord::new(3, String::new(), String::new(), 0, 0, vec![]);
        let finished = Finished {
            jobs: vec![job("late", Some(2), 1), job("none", None, 0), job("early", Some(0), 2)],
            flows: (0..4).map(flow).collect(),
            ..Finished::without_rows(record, StatsRecord::default())
        };
        let text = String::from_utf8(flows_of_jobs(&finished)).unwrap();
        let jobs: Vec<&str> = text.lines().map(|line| line.split(',').nth(7).unwrap()).collect();
        assert_eq!(jobs, ["early", "early", "late", ""]);
    }

    #[test]
    fn blanks_and_full_width_signs_hide_no_formula() {
        for text in [" =1+1", "\u{b}=1", "\u{a0}@x", "\u{ff1d}1+1", "\u{ff20}x", "\t1", "\r1", "\u{7f}-1"] {
            assert_eq!(neutralise(text.into()), format!("'{text}"));
        }
        for text in ["a=b", "fat-tree", " x", ""] {
            assert_eq!(neutralise(text.into()), text);
        }
    }

    #[test]
    fn a_single_empty_cell_is_still_a_row() {
        let mut rows = CollectedRows::default();
        rows.push([Cell::Empty]);
        assert_eq!(rows.into_bytes(), b"\"\"\n");
    }
}
