//! Renders records as CSV text.
//!
//! Layer: results. [`super::writer`] decides when and where the text is written.

use super::cluster_record::{
    CLUSTER_CONGESTION, CLUSTER_JOBS, CLUSTER_MAP, CLUSTER_TIMELINE, ClusterCongestionRecord, ClusterJobRecord,
    ClusterMapRecord, ClusterSampleRecord,
};
use super::job_record::{JOBS, JobRecord, SHARED_LINKS, SharedLinkRecord};
use super::outputs::ColumnSets;
use super::record::{
    ExperimentRecord, Finished, FlowRecord, IDENTITY, LinkRecord, RttRecord, StatsRecord, outcome_columns,
};
use super::serving_record::{REQUESTS, RequestRecord};
use super::value::{Axis, Cell};

/// Header of `flows.csv`; with several jobs, the column `job` follows.
pub const FLOWS: &[&str] = &["exp_id", "flow_id", "src", "dst", "bytes", "start_ns", "fct_ns"];
/// Header of `links.csv`.
pub const LINKS: &[&str] = &[
    "exp_id",
    "link",
    "bytes",
    "utilisation",
    "max_queue_bytes",
    "mean_queue_bytes",
    "ecn_marks",
    "pfc_pauses",
    "drops",
];
/// Header of `rtt.csv`.
pub const RTT: &[&str] = &["exp_id", "flow_id", "sample_ns", "rtt_ns"];
/// Header of `stats.csv`.
pub const STATS: &[&str] = &[
    "exp_id",
    "packet_hops_simulated",
    "packet_hops_skipped",
    "memo_hits",
    "memo_misses",
    "steady_skips",
    "batches",
    "wall_s",
    "audit_fct_error",
    "steady_error",
    "episodes",
    "episodes_known",
    "snapshots",
    "snapshots_known",
    "partitions",
    "partitions_max",
    "partitions_mean",
    "memo_bytes",
    "hops_steady",
    "skipped_mean",
    "rounded",
    "switches_coupled",
    "couplings",
    "carried_skips",
    "carried_drift",
    "carried_audits",
    "carried_messages_error",
    "pauses_left_out",
    "exact_instead",
    "audited",
    "audit_hops",
    "audit_messages",
    "audit_fct_error_max",
    "audit_above_1pct",
    "theorem2_violations",
    "theorem3_violations",
    "simulating_s",
    "looking_up_s",
    "checkpointing_s",
    "auditing_s",
];

/// Puts an apostrophe before text that a spreadsheet would take for a formula; other text is unchanged.
pub fn neutralise(text: &str) -> String {
    if is_formula(text) { format!("'{text}") } else { text.to_string() }
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
}

impl Default for CollectedRows {
    fn default() -> Self {
        CollectedRows { csv: csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new()) }
    }
}

impl CollectedRows {
    /// Appends a row. Only text is neutralised, so that a negative number stays a number.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let fields = cells.into_iter().map(|cell| match cell {
            Cell::Text(text) => neutralise(&text),
            other => other.to_string(),
        });
        self.csv.write_record(fields).expect("memory takes every row, and all rows of a file have its header's length");
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

fn flow_row(exp_id: u64, f: &FlowRecord) -> [Cell; 7] {
    [exp_id.into(), f.flow_id.into(), f.src.into(), f.dst.into(), f.bytes.into(), f.start.into(), f.fct.into()]
}

fn link_row(exp_id: u64, l: &LinkRecord) -> [Cell; 9] {
    [
        exp_id.into(),
        l.link.as_str().into(),
        l.bytes.into(),
        l.utilisation.into(),
        l.packets.map(|p| p.max_queue_bytes).into(),
        l.packets.map(|p| p.mean_queue_bytes).into(),
        l.packets.map(|p| p.ecn_marks).into(),
        l.packets.map(|p| p.pfc_pauses).into(),
        l.packets.map(|p| p.drops).into(),
    ]
}

fn rtt_row(exp_id: u64, r: &RttRecord) -> [Cell; 4] {
    [exp_id.into(), r.flow_id.into(), r.sample.into(), r.rtt.into()]
}

fn stats_row(exp_id: u64, s: &StatsRecord) -> [Cell; 40] {
    let f = &s.folding;
    [
        exp_id.into(),
        s.packet_hops_simulated.into(),
        s.packet_hops_skipped.into(),
        s.memo_hits.into(),
        s.memo_misses.into(),
        s.steady_skips.into(),
        s.batches.into(),
        s.wall_s.into(),
        s.audit_fct_error.into(),
        s.steady_error.into(),
        f.episodes.into(),
        f.episodes_known.into(),
        f.snapshots.into(),
        f.snapshots_known.into(),
        f.partitions.into(),
        f.partitions_max.into(),
        f.partitions_mean.into(),
        f.memo_bytes.into(),
        f.hops_steady.into(),
        f.skipped_mean.into(),
        f.rounded.into(),
        f.switches_coupled.into(),
        f.couplings.into(),
        f.carried_skips.into(),
        f.carried_drift.into(),
        f.carried_audits.into(),
        f.carried_messages_error.into(),
        f.pauses_left_out.into(),
        f.exact_instead.into(),
        f.audited.into(),
        f.audit_hops.into(),
        f.audit_messages.into(),
        f.audit_fct_error_max.into(),
        f.audit_above_1pct.into(),
        f.theorem2_violations.into(),
        f.theorem3_violations.into(),
        f.simulating_s.into(),
        f.looking_up_s.into(),
        f.checkpointing_s.into(),
        f.auditing_s.into(),
    ]
}

fn text<T, R: IntoIterator<Item = Cell>>(exp_id: u64, records: &[T], row: impl Fn(u64, &T) -> R) -> Vec<u8> {
    let mut rows = CollectedRows::default();
    records.iter().for_each(|record| rows.push(row(exp_id, record)));
    rows.into_bytes()
}

/// Returns the rows of `flows.csv` for one experiment.
pub fn flows_text(finished: &Finished) -> Vec<u8> {
    text(finished.record.exp_id, &finished.flows, flow_row)
}

/// Returns the column names of `flows.csv`, with `job` for runs with several jobs.
pub fn flows_header(of_jobs: bool) -> Vec<&'static str> {
    FLOWS.iter().copied().chain(of_jobs.then_some("job")).collect()
}

/// Returns the rows of `flows.csv` for one experiment of several jobs: each flow with its job.
pub fn flows_of_jobs_text(finished: &Finished) -> Vec<u8> {
    // Flows of a job have consecutive ids.
    let mut first: Vec<(u64, u64, &str)> =
        finished.jobs.iter().filter_map(|job| Some((job.first_flow?, job.flows, job.job.as_str()))).collect();
    first.sort_unstable();
    let job = |id: u64| -> Option<&str> {
        let range = first.partition_point(|(begin, _, _)| *begin <= id).checked_sub(1).map(|i| first[i]);
        range.filter(|(begin, flows, _)| id - begin < *flows).map(|(_, _, job)| job)
    };
    let row = |exp_id: u64, f: &FlowRecord| {
        let [exp_id, id, src, dst, bytes, start, fct] = flow_row(exp_id, f);
        [exp_id, id, src, dst, bytes, start, fct, job(f.flow_id.into()).into()]
    };
    text(finished.record.exp_id, &finished.flows, row)
}

/// Returns the rows of `links.csv` for one experiment.
pub fn links_text(finished: &Finished) -> Vec<u8> {
    text(finished.record.exp_id, &finished.links, link_row)
}

/// Returns the rows of `rtt.csv` for one experiment.
pub fn rtt_text(finished: &Finished) -> Vec<u8> {
    text(finished.record.exp_id, &finished.rtt, rtt_row)
}

/// Returns the column names of `jobs.csv`.
pub fn jobs_header() -> Vec<&'static str> {
    std::iter::once("exp_id").chain(JOBS.iter().map(|(name, _)| *name)).collect()
}

fn job_row(exp_id: u64, job: &JobRecord) -> Vec<Cell> {
    std::iter::once(exp_id.into()).chain(JOBS.iter().map(|(_, cell)| cell(job))).collect()
}

/// Returns the rows of `jobs.csv` for one experiment.
pub fn jobs_text(finished: &Finished) -> Vec<u8> {
    text(finished.record.exp_id, &finished.jobs, job_row)
}

/// Returns the column names of `shared_links.csv`.
pub fn shared_links_header() -> Vec<&'static str> {
    std::iter::once("exp_id").chain(SHARED_LINKS.iter().map(|(name, _)| *name)).collect()
}

/// Returns the rows of `shared_links.csv` for one experiment.
pub fn shared_links_text(finished: &Finished) -> Vec<u8> {
    let row = |exp_id: u64, s: &SharedLinkRecord| -> Vec<Cell> {
        std::iter::once(exp_id.into()).chain(SHARED_LINKS.iter().map(|(_, cell)| cell(s))).collect()
    };
    text(finished.record.exp_id, &finished.shared_links, row)
}

/// Returns the column names of `cluster_timeline.csv`.
pub fn cluster_timeline_header() -> Vec<&'static str> {
    std::iter::once("exp_id").chain(CLUSTER_TIMELINE.iter().map(|(name, _)| *name)).collect()
}

/// Returns the column names of `cluster_jobs.csv`.
pub fn cluster_jobs_header() -> Vec<&'static str> {
    std::iter::once("exp_id").chain(CLUSTER_JOBS.iter().map(|(name, _)| *name)).collect()
}

/// Returns the rows of `cluster_timeline.csv` for one experiment.
pub fn cluster_timeline_text(finished: &Finished) -> Vec<u8> {
    let row = |exp_id: u64, s: &ClusterSampleRecord| -> Vec<Cell> {
        std::iter::once(exp_id.into()).chain(CLUSTER_TIMELINE.iter().map(|(_, cell)| cell(s))).collect()
    };
    text(finished.record.exp_id, &finished.cluster_timeline, row)
}

/// Returns the rows of `cluster_jobs.csv` for one experiment.
pub fn cluster_jobs_text(finished: &Finished) -> Vec<u8> {
    let row = |exp_id: u64, j: &ClusterJobRecord| -> Vec<Cell> {
        std::iter::once(exp_id.into()).chain(CLUSTER_JOBS.iter().map(|(_, cell)| cell(j))).collect()
    };
    text(finished.record.exp_id, &finished.cluster_jobs, row)
}

/// Returns the column names of `cluster_congestion.csv`.
pub fn cluster_congestion_header() -> Vec<&'static str> {
    std::iter::once("exp_id").chain(CLUSTER_CONGESTION.iter().map(|(name, _)| *name)).collect()
}

/// Returns the rows of `cluster_congestion.csv` for one experiment.
pub fn cluster_congestion_text(finished: &Finished) -> Vec<u8> {
    let row = |exp_id: u64, c: &ClusterCongestionRecord| -> Vec<Cell> {
        std::iter::once(exp_id.into()).chain(CLUSTER_CONGESTION.iter().map(|(_, cell)| cell(c))).collect()
    };
    text(finished.record.exp_id, &finished.cluster_congestion, row)
}

/// Returns the column names of `cluster_map.csv`.
pub fn cluster_map_header() -> Vec<&'static str> {
    std::iter::once("exp_id").chain(CLUSTER_MAP.iter().map(|(name, _)| *name)).collect()
}

/// Returns the rows of `cluster_map.csv` for one experiment.
pub fn cluster_map_text(finished: &Finished) -> Vec<u8> {
    let row = |exp_id: u64, m: &ClusterMapRecord| -> Vec<Cell> {
        std::iter::once(exp_id.into()).chain(CLUSTER_MAP.iter().map(|(_, cell)| cell(m))).collect()
    };
    text(finished.record.exp_id, &finished.cluster_map, row)
}

/// Returns the column names of `requests.csv`.
pub fn requests_header() -> Vec<&'static str> {
    std::iter::once("exp_id").chain(REQUESTS.iter().map(|(name, _)| *name)).collect()
}

/// Returns the rows of `requests.csv` for one experiment.
pub fn requests_text(finished: &Finished) -> Vec<u8> {
    let row = |exp_id: u64, r: &RequestRecord| -> Vec<Cell> {
        std::iter::once(exp_id.into()).chain(REQUESTS.iter().map(|(_, cell)| cell(r))).collect()
    };
    text(finished.record.exp_id, &finished.requests, row)
}

/// Returns the row of `stats.csv` for one experiment.
pub fn stats_text(finished: &Finished) -> Vec<u8> {
    text(finished.record.exp_id, std::slice::from_ref(&finished.stats), stats_row)
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
        let flow =
            |flow_id| FlowRecord { flow_id, src: 0, dst: 1, bytes: 9, start: super::super::value::Ps(0), fct: None };
        let record = super::super::record::ExperimentRecord::new(3, String::new(), String::new(), 0, 0, vec![]);
        let finished = Finished {
            jobs: vec![job("late", Some(2), 1), job("none", None, 0), job("early", Some(0), 2)],
            flows: (0..4).map(flow).collect(),
            ..Finished::without_rows(record, StatsRecord::default())
        };
        let text = String::from_utf8(flows_of_jobs_text(&finished)).unwrap();
        let jobs: Vec<&str> = text.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
        assert_eq!(jobs, ["early", "early", "late", ""]);
    }

    #[test]
    fn blanks_and_full_width_signs_hide_no_formula() {
        for text in [" =1+1", "\u{b}=1", "\u{a0}@x", "\u{ff1d}1+1", "\u{ff20}x", "\t1", "\r1", "\u{7f}-1"] {
            assert_eq!(neutralise(text), format!("'{text}"));
        }
        for text in ["a=b", "fat-tree", " x", ""] {
            assert_eq!(neutralise(text), text);
        }
    }

    #[test]
    fn a_single_empty_cell_is_still_a_row() {
        let mut rows = CollectedRows::default();
        rows.push([Cell::Empty]);
        assert_eq!(rows.into_bytes(), b"\"\"\n");
    }
}
