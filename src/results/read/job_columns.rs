//! Adds the numbers of `jobs.csv` as columns of each experiment: `job.train.slowdown`.
//!
//! Layer: results. With these columns, jobs can be ranked, plotted and gated like experiments.

use std::collections::BTreeMap;

use super::super::job_record::JOBS;
use super::super::value::{Cell, ColumnKind};
use super::{ColumnInfo, ColumnRole, ReadError, RunColumns};
use crate::meter::memory_meter;
use hyperfold_base::input;
use hyperfold_config::spec::JOB;

/// Most jobs of a folder for which columns are added: nobody would find their way among more.
const JOBS_UP_TO: usize = 32;

/// Columns that number or place a job, and measure nothing.
const NO_MEASURE: &[&str] = &["gpus", "first_flow", "background"];

/// Measures in an experiment's own row that belong to one job, the first that is no background job.
const OF_ONE_JOB: [&str; 6] =
    ["iteration_time_ns", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "algbw_gbps", "busbw_gbps"];

impl RunColumns {
    /// Returns, for several jobs, the job that a column such as `iteration_time_ns` belongs to; `None` for one workload, and for columns of the whole network.
    pub fn job_of_column(&self, column: &str) -> Option<&str> {
        self.job_of_row.as_deref().filter(|_| OF_ONE_JOB.contains(&column))
    }
}

/// Adds a column for every number that any job has, named `job.NAME.COLUMN`. A folder without `jobs.csv` stays as it is.
pub(super) fn add(run: &mut RunColumns) -> Result<(), ReadError> {
    let path = run.path.join("jobs.csv");
    if !input::is_file(&path) {
        return Ok(());
    }
    let wrong = |source| ReadError::Csv { path: path.clone(), source };
    let mut reader = csv::Reader::from_reader(input::open_table_anywhere(&path).map_err(ReadError::io(&path))?);
    let headers = reader.headers().map_err(wrong)?.clone();
    let place = |name: &str| headers.iter().position(|h| h == name);
    let (Some(id), Some(job)) = (place("exp_id"), place("job")) else { return Ok(()) };
    let measures: Vec<(&str, usize)> = JOBS
        .iter()
        .filter(|(name, _)| !NO_MEASURE.contains(name))
        .filter_map(|(name, _)| place(name).map(|column_idx| (*name, column_idx)))
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
        let Some(row) = record[id].parse().ok().and_then(|id| run.find(id)) else { continue };
        let job_idx = names.iter().position(|n| *n == record[job]).unwrap_or_else(|| {
            names.push(record[job].into());
            names.len() - 1
        });
        if first.is_none() && background.is_none_or(|column_idx| record[column_idx] != *"true") {
            first = Some(names[job_idx].clone());
        }
        if names.len() > JOBS_UP_TO {
            run.job_of_row = first;
            return Ok(());
        }
        for (measure, (_, column_idx)) in measures.iter().enumerate() {
            if let Some(value) = record[*column_idx].parse().ok().filter(|v: &f64| v.is_finite()) {
                cells.entry((job_idx, measure)).or_default().push((row, value));
            }
        }
    }
    run.job_of_row = first.filter(|_| names.len() > 1);
    for ((job_idx, measure), values) in cells {
        let name = format!("{JOB}{}.{}", names[job_idx], measures[measure].0);
        if run.column(&name).is_some() {
            continue;
        }
        run.columns.push(ColumnInfo { name, kind: ColumnKind::Real, role: ColumnRole::Outcome });
        run.rows.iter_mut().for_each(|row| row.push(Cell::Empty));
        let column_idx = run.columns.len() - 1;
        values.into_iter().for_each(|(row, value)| run.rows[row][column_idx] = Cell::Real(value));
    }
    Ok(())
}
