//! Adds the numbers of `jobs.csv` as columns of each experiment: `job.train.slowdown`.
//!
//! Layer: results. With these columns, jobs can be ranked, plotted and gated like experiments.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::job_record::JobRecord;
use super::error::ReadError;
use crate::meter::memory_meter;
use hyperfold_base::input;
use hyperfold_config::spec::JOB;

/// Most jobs of a folder for which columns are added: nobody would find their way among more.
const JOBS_UP_TO: usize = 32;

/// Columns that number or place a job, and measure nothing.
const NO_MEASURE: &[&str] = &["gpus", "first_flow", "background"];

/// Measures in an experiment's own row that belong to one job, the first that is no background job.
pub(super) const OF_ONE_JOB: [&str; 6] =
    ["iteration_time_ns", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "algbw_gbps", "busbw_gbps"];

/// Numbers of the jobs of a folder, as columns.
#[derive(Default)]
pub(super) struct JobColumns {
    /// With several jobs, the job that some columns of a row belong to.
    pub(super) job_of_row: Option<String>,
    /// Names and values of the columns; each value has the index of its row.
    pub(super) columns: Vec<(String, Vec<(usize, f64)>)>,
}

/// Reads a column for every number that any job has, named `job.NAME.COLUMN`. `row_of` gives the row of an experiment. A folder without `jobs.csv` has none.
pub(super) fn read(dir: &Path, row_of: impl Fn(u64) -> Option<usize>) -> Result<JobColumns, ReadError> {
    let path = dir.join("jobs.csv");
    if !input::is_file(&path) {
        return Ok(JobColumns::default());
    }
    let wrong = |source| ReadError::Csv { path: path.clone(), source };
    let mut reader = csv::Reader::from_reader(input::open_table_anywhere(&path).map_err(ReadError::io(&path))?);
    let headers = reader.headers().map_err(wrong)?.clone();
    let place = |name: &str| headers.iter().position(|h| h == name);
    let (Some(id), Some(job)) = (place("exp_id"), place("job")) else { return Ok(JobColumns::default()) };
    let measures: Vec<(&str, usize)> = JobRecord::COLUMNS
        .iter()
        .filter(|column| !NO_MEASURE.contains(&column.name))
        .filter_map(|column| place(column.name).map(|column_idx| (column.name, column_idx)))
        .collect();
    let background = place("background");
    let mut names: Vec<String> = Vec::new();
    let mut first: Option<String> = None;
    // Values by job and measure, each with its row of the results.
    let mut cells: BTreeMap<(usize, usize), Vec<(usize, f64)>> = BTreeMap::new();
    let meter = memory_meter();
    for record in reader.records() {
        meter.check("jobs of results", 0).map_err(ReadError::memory(&path))?;
        let record = record.map_err(wrong)?;
        let Some(row) = record[id].parse::<u64>().ok().and_then(&row_of) else { continue };
        let job_idx = names.iter().position(|n| *n == record[job]).unwrap_or_else(|| {
            names.push(record[job].into());
            names.len() - 1
        });
        if first.is_none() && background.is_none_or(|column_idx| record[column_idx] != *"true") {
            first = Some(names[job_idx].clone());
        }
        if names.len() > JOBS_UP_TO {
            return Ok(JobColumns { job_of_row: first, columns: Vec::new() });
        }
        for (measure, (_, column_idx)) in measures.iter().enumerate() {
            if let Some(value) = record[*column_idx].parse().ok().filter(|v: &f64| v.is_finite()) {
                cells.entry((job_idx, measure)).or_default().push((row, value));
            }
        }
    }
    let job_of_row = first.filter(|_| names.len() > 1);
    let named = |(job_idx, measure): (usize, usize)| format!("{JOB}{}.{}", names[job_idx], measures[measure].0);
    let columns = cells.into_iter().map(|(key, values)| (named(key), values)).collect();
    Ok(JobColumns { job_of_row, columns })
}
