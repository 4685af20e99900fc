//! Reads traces of jobs and of failures: CSV files with a header.
//!
//! Layer: cluster. docs/reference/file-formats.md explains the columns.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::job::{ClusterJob, announce_jobs};
use crate::error::ClusterError;
use crate::failing_parts::{Part, PartKind};
use hyperfold_base::budget;
use hyperfold_base::input;
use hyperfold_base::nearest::nearest;
use hyperfold_config::spec::{ClusterRun, JobClassKeys};

const JOB_COLUMNS: &[&str] = &[
    "job",
    "user",
    "submit_s",
    "gpus",
    "duration_s",
    "estimate_s",
    "priority",
    "min_gpus",
    "comm_share",
    "compute_s",
    "comm_mib",
    "class",
    "iterations",
];
const FAILURE_COLUMNS: &[&str] = &["time_s", "part", "index", "repair_s"];
/// Latest time in a trace, in seconds: a thousand years. No sum of two times overflows.
const MAX_S: f64 = 3.2e10;

/// Largest duration of a job, in seconds: a million hours, as for `jobs.max_hours`. Nanoseconds of work, including lost work, fit 64 bits.
const MAX_WORK_S: f64 = 3.6e9;

/// A failure that a trace lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedFailure {
    pub at_ms: u64,
    pub part: Part,
    pub repair_ms: u64,
}

struct Table<'a> {
    path: &'a Path,
    columns: Vec<Option<usize>>,
    names: &'static [&'static str],
    rows: Vec<csv::StringRecord>,
}

/// One line of a trace.
struct Line<'a> {
    table: &'a Table<'a>,
    row: &'a csv::StringRecord,
}

impl<'a> Table<'a> {
    fn read(
        path: &'a Path,
        names: &'static [&'static str],
        required: impl Fn(&csv::StringRecord) -> &'static [&'static str],
    ) -> Result<Table<'a>, ClusterError> {
        let unreadable = |source| ClusterError::Unreadable { path: path.into(), source };
        let file = input::open_table(path).map_err(unreadable)?;
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(file);
        let wrong = |e: csv::Error| {
            let line = e.position().map_or(1, csv::Position::line);
            ClusterError::Line { path: path.into(), line, why: input::csv_problem(&e) }
        };
        let header = reader.headers().map_err(wrong)?.clone();
        let bad = |why: String| ClusterError::Line { path: path.into(), line: 1, why };
        for name in &header {
            if !names.contains(&name) {
                let shown: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
                let hint =
                    nearest(name, names.iter().copied()).map_or(String::new(), |n| format!("did you mean `{n}`? "));
                return Err(bad(format!("column `{shown}` is unknown; {hint}columns are {}", names.join(", "))));
            }
        }
        if let Some(twice) = input::column_twice(&header) {
            return Err(bad(twice));
        }
        let columns: Vec<Option<usize>> = names.iter().map(|n| header.iter().position(|h| h == *n)).collect();
        let required = required(&header);
        if let Some(name) = required.iter().find(|r| !header.iter().any(|h| h == **r)) {
            return Err(bad(format!("column `{name}` is missing; required are {}", required.join(", "))));
        }
        let mut rows = Vec::new();
        for row in reader.records() {
            budget::check_growth("lines of the trace", &rows);
            rows.push(row.map_err(wrong)?);
        }
        Ok(Table { path, columns, names, rows })
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.rows.iter().map(|row| Line { table: self, row })
    }
}

impl Line<'_> {
    fn wrong(&self, why: String) -> ClusterError {
        let line = self.row.position().map_or(0, csv::Position::line);
        ClusterError::Line { path: self.table.path.into(), line, why }
    }

    /// Text of a field. `None`: it is empty, or the file has no such column.
    fn text(&self, name: &str) -> Option<&str> {
        let column = self.table.names.iter().position(|n| *n == name).and_then(|i| self.table.columns[i])?;
        self.row.get(column).filter(|text| !text.is_empty())
    }

    fn number(&self, name: &str, min: f64, max: f64) -> Result<Option<f64>, ClusterError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(x) if (min..=max).contains(&x) => Ok(Some(x)),
            _ => {
                let shown: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
                Err(self.wrong(format!("{name} is `{shown}`; it must be a number from {min} to {max}")))
            }
        }
    }

    fn ms(&self, name: &str, min_s: f64) -> Result<Option<u64>, ClusterError> {
        self.ms_to(name, min_s, MAX_S)
    }

    fn ms_to(&self, name: &str, min_s: f64, max_s: f64) -> Result<Option<u64>, ClusterError> {
        Ok(self.number(name, min_s, max_s)?.map(|s| (s * 1e3).round() as u64))
    }

    fn whole(&self, name: &str, min: f64) -> Result<Option<u32>, ClusterError> {
        match self.number(name, min, f64::from(u32::MAX))? {
            Some(x) if x.fract() != 0.0 => Err(self.wrong(format!("{name} is {x}; it must be a whole number"))),
            other => Ok(other.map(|x| x as u32)),
        }
    }

    /// Class that the line names, with its index. `None`: the line names none.
    fn class<'r>(&self, run: &'r ClusterRun) -> Result<Option<(u32, &'r JobClassKeys)>, ClusterError> {
        let Some(name) = self.text("class") else { return Ok(None) };
        let found = (0u32..).zip(&run.classes).find(|(_, class)| *class.name == *name);
        if found.is_some() {
            return Ok(found);
        }
        let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        let names: Vec<&str> = run.classes.iter().map(|class| &*class.name).collect();
        Err(self.wrong(match names[..] {
            [] => format!("class is `{shown}`, but the sweep has no [[job]] table; give it one with that name"),
            _ => format!("class is `{shown}`; [[job]] tables are {}", names.join(", ")),
        }))
    }

    /// Work of a job: a duration in ms, or, for a job of a class, a number of iterations.
    fn work(&self, of_class: bool) -> Result<(Option<u64>, Option<u64>), ClusterError> {
        let (duration, iterations) = (self.ms_to("duration_s", 0.001, MAX_WORK_S)?, self.iterations()?);
        match (duration, iterations) {
            (None, None) if of_class => Err(self.wrong("duration_s and iterations are empty; one is required".into())),
            (None, None) => Err(self.wrong("duration_s is empty; it is required".into())),
            (Some(_), Some(_)) => Err(self.wrong("duration_s and iterations say the same; leave one empty".into())),
            (None, Some(_)) if !of_class => {
                Err(self.wrong("iterations are those of a class; name one as class, or give duration_s".into()))
            }
            work => Ok(work),
        }
    }

    fn iterations(&self) -> Result<Option<u64>, ClusterError> {
        match self.number("iterations", 1.0, 1e12)? {
            Some(x) if x.fract() != 0.0 => Err(self.wrong(format!("iterations is {x}; it must be a whole number"))),
            other => Ok(other.map(|x| x as u64)),
        }
    }

    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, ClusterError> {
        value.ok_or_else(|| self.wrong(format!("{name} is empty; it is required")))
    }
}

/// Jobs of a trace in the order of their arrival.
///
/// # Errors
/// The file cannot be read, or one of its lines is wrong.
pub(crate) fn jobs(path: &Path, run: &ClusterRun) -> Result<Vec<ClusterJob>, ClusterError> {
    let required = |header: &csv::StringRecord| -> &'static [&'static str] {
        // With a class, GPUs and iteration time come from the class, so these columns are not required.
        if header.iter().any(|h| h == "class") { &["submit_s"] } else { &["submit_s", "gpus", "duration_s"] }
    };
    let table = Table::read(path, JOB_COLUMNS, required)?;
    announce_jobs(table.rows.len() as u64);
    let mut jobs = Vec::with_capacity(table.rows.len());
    let mut names = HashSet::with_capacity(table.rows.len());
    for (n, line) in table.lines().enumerate() {
        let name: Arc<str> = line.text("job").map_or_else(|| n.to_string().into(), Arc::from);
        if !names.insert(Arc::clone(&name)) {
            let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
            return Err(line.wrong(format!(
                "job is `{shown}`, as of an earlier line; give each job a name of its own, or leave the column out"
            )));
        }
        let of_class = line.class(run)?;
        let given = line.whole("gpus", 1.0)?;
        let gpus = match of_class.map(|(_, keys)| keys) {
            None => line.required("gpus", given)?,
            Some(keys) if given.is_some_and(|gpus| gpus != keys.gpus) => {
                let (name, gpus) = (&keys.name, keys.gpus);
                return Err(line.wrong(format!(
                    "gpus is {}; jobs of class {name} have {gpus}: leave it empty, or give the class a layout for as many",
                    given.unwrap_or(0)
                )));
            }
            Some(keys) => keys.gpus,
        };
        let (duration, iterations) = line.work(of_class.is_some())?;
        // The duration of a number of iterations is known only after they have been simulated.
        let duration_ms = duration.unwrap_or(0);
        let min_gpus_by_share = (u64::from(gpus) * run.min_share_ppm).div_ceil(1_000_000).max(1) as u32;
        let fewest = line.whole("min_gpus", 1.0)?;
        let min_gpus = fewest.unwrap_or(min_gpus_by_share);
        if min_gpus > gpus {
            return Err(line.wrong(format!("min_gpus is {min_gpus}; it must be at most gpus = {gpus}")));
        }
        if let Some((_, keys)) = of_class.filter(|(_, keys)| !keys.has_replicas && fewest.is_some_and(|n| n < gpus)) {
            let name = &keys.name;
            return Err(line.wrong(format!(
                "min_gpus is {min_gpus}; jobs of class {name} run on all of their {gpus} GPUs, as only models that are trained with workload.dp above 1 can give up replicas: leave it empty"
            )));
        }
        let share = line.number("comm_share", 0.0, 1.0)?.map(|x| (x * 1e6).round() as u64);
        let compute_ps = line.number("compute_s", 0.0, 3600.0)?.map(|s| (s * 1e12).round() as u64);
        let comm_bytes = line.number("comm_mib", 0.0, 1e7)?.map(|mib| (mib * f64::from(1 << 20)).round() as u64);
        let iteration = run.iterations.as_ref().map_or((0, 0), |keys| keys.of_gpus(gpus));
        jobs.push(ClusterJob {
            name,
            user: line.text("user").map_or_else(|| "0".into(), Arc::from),
            submit_ms: line.required("submit_s", line.ms("submit_s", 0.0)?)?,
            gpus,
            duration_ms,
            // 0 stands for the duration, which is not known yet.
            estimate_ms: line.ms("estimate_s", 0.001)?.unwrap_or(duration_ms),
            priority: line.whole("priority", 0.0)?.unwrap_or(0),
            min_gpus,
            comm_share_ppm: share.unwrap_or(run.comm_share_ppm),
            compute_ps: compute_ps.unwrap_or(iteration.0),
            comm_bytes: comm_bytes.unwrap_or(iteration.1),
            class: of_class.map(|(place, _)| place),
            iterations,
        });
    }
    if jobs.is_empty() {
        return Err(ClusterError::Line {
            path: path.into(),
            line: 1,
            why: "there are no jobs below the header".into(),
        });
    }
    // The sort is stable: jobs with the same time keep the order of the file.
    jobs.sort_by_key(|job| job.submit_ms);
    Ok(jobs)
}

/// Failures of a trace in the order of their times. `limit` returns the number of parts of a kind.
///
/// # Errors
/// The file cannot be read, or one of its lines is wrong.
pub(crate) fn failures(path: &Path, limit: impl Fn(PartKind) -> u32) -> Result<Vec<ListedFailure>, ClusterError> {
    let table = Table::read(path, FAILURE_COLUMNS, |_| FAILURE_COLUMNS)?;
    let mut listed = Vec::with_capacity(table.rows.len());
    for line in table.lines() {
        let name = line.required("part", line.text("part"))?;
        let Some(kind) = PartKind::ALL.into_iter().find(|kind| kind.name() == name) else {
            let names: Vec<&str> = PartKind::ALL.iter().map(|kind| kind.name()).collect();
            let shown: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
            return Err(line.wrong(format!("part is `{shown}`; it must be one of {}", names.join(", "))));
        };
        let index = line.required("index", line.whole("index", 0.0)?)?;
        if index >= limit(kind) {
            let why = format!("index is {index}; there are {} parts of kind {name}, counted from 0", limit(kind));
            return Err(line.wrong(why));
        }
        let at_ms = line.required("time_s", line.ms("time_s", 0.0)?)?;
        let repair_ms = line.required("repair_s", line.ms("repair_s", 0.001)?)?;
        listed.push(ListedFailure { at_ms, part: Part { kind, index }, repair_ms });
    }
    listed.sort_by_key(|f| f.at_ms);
    Ok(listed)
}
