//! Reads a run's folder: manifest, rows with types, and the companion files on demand.
//!
//! Layer: results. The one reader that comparison, reports and traces share. Reads the folder of any run, finished, interrupted or a shard. Judges nothing,
//! computes nothing.

mod companions;
mod error;
pub mod fixture;
mod job_columns;
mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use error::ReadError;
use job_columns::{JobColumns, OF_ONE_JOB};

use super::dir::{JOURNAL, in_use};
use super::journal_reader::finished;
use super::manifest::{Manifest, Outcome};
use super::outputs::ColumnSets;
use super::record::{IDENTITY, RecordColumn, Status, outcome_columns};
use super::record_macro::Shown;
use super::value::{Cell, ColumnKind};
use hyperfold_base::input;
use hyperfold_base::units::counted;

/// The role of a result column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnRole {
    /// Identity of the experiment: ids, keys, replica, seed.
    Identity,
    /// A key that the sweep varies.
    Axis,
    /// Outcome of the experiment: status, error and everything measured.
    Outcome,
}

/// A column of the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Heading of the column.
    pub name: String,
    /// Type of its values.
    pub kind: ColumnKind,
    /// Whether it names the experiment, varies it, or is an outcome.
    pub role: ColumnRole,
}

/// The results of one folder as columns by name. Rows ascend by `exp_id`; a cell is of its column's kind or empty.
#[derive(Clone, Debug)]
pub struct RunColumns {
    /// Path of the folder.
    pub path: PathBuf,
    /// The manifest that the run wrote about itself.
    pub manifest: Manifest,
    /// Columns of `results.csv`, in its order.
    pub columns: Vec<ColumnInfo>,
    /// A row an experiment, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
    /// Indices of the columns `exp_id`, `config_key`, `replica` and `status`, which every row has.
    identity: [usize; 4],
    /// With several jobs, the job that some columns of a row belong to ([`RunColumns::job_of_column`]).
    job_of_row: Option<String>,
}

impl RunColumns {
    /// Reads manifest and rows. Rows come from `results.parquet`; if the run is not complete, from the journal, which also has experiments whose predecessors
    /// have not finished; if another version wrote the journal, from `results.csv`.
    ///
    /// # Errors
    /// It is no folder of results, or one of the files is damaged.
    pub fn open(path: &Path) -> Result<RunColumns, ReadError> {
        if !path.is_dir() {
            return Err(ReadError::Absent(path.into()));
        }
        let manifest = manifest(path)?;
        let (parquet, csv) = (path.join("results.parquet"), path.join("results.csv"));
        let (file, table) = if parquet.is_file() {
            let table = table::from_parquet(&parquet)?;
            (parquet, table)
        } else if let Some((axes, sets, records)) = finished(path).map_err(ReadError::memory(&path.join(JOURNAL)))? {
            let journal = path.join(JOURNAL);
            let table = table::from_records(&journal, &axes, sets, records.values())?;
            (journal, table)
        } else if csv.is_file() {
            let table = table::from_csv(&csv, &manifest.axes)?;
            (csv, table)
        } else {
            return Err(ReadError::NotResults { path: path.into(), missing: "results.parquet and no results.csv" });
        };
        let columns: Vec<ColumnInfo> = table
            .columns
            .into_iter()
            .map(|(name, kind)| ColumnInfo { role: role(&name, &manifest), name, kind })
            .collect();
        let position_of = |name: &str| columns.iter().position(|c| c.name == name);
        let identity = ["exp_id", "config_key", "replica", "status"].map(|name| position_of(name).ok_or(name));
        if let Some(Err(name)) = identity.iter().find(|p| p.is_err()) {
            return Err(ReadError::Table { path: file, why: format!("it has no column {name}") });
        }
        let identity = identity.map(|p| p.expect("absent ones have returned"));
        let mut run = RunColumns { path: path.into(), manifest, columns, rows: table.rows, identity, job_of_row: None };
        run.check(&file)?;
        let jobs = job_columns::read(path, |exp_id| run.find(exp_id))?;
        run.add_columns_of(jobs);
        Ok(run)
    }

    fn add_columns_of(&mut self, jobs: JobColumns) {
        self.job_of_row = jobs.job_of_row;
        for (name, values) in jobs.columns {
            if self.column(&name).is_some() {
                continue;
            }
            self.columns.push(ColumnInfo { name, kind: ColumnKind::Real, role: ColumnRole::Outcome });
            self.rows.iter_mut().for_each(|row| row.push(Cell::Empty));
            let column_idx = self.columns.len() - 1;
            values.into_iter().for_each(|(row, value)| self.rows[row][column_idx] = Cell::Real(value));
        }
    }

    fn check(&mut self, file: &Path) -> Result<(), ReadError> {
        let [id, config, replica, status] = self.identity;
        let bad = |why: String| Err(ReadError::Table { path: file.into(), why });
        for (row_idx, row) in self.rows.iter().enumerate() {
            let whole = |column_idx: usize| matches!(row[column_idx], Cell::Unsigned(_));
            if !(whole(id)
                && whole(replica)
                && matches!(row[config], Cell::Text(_))
                && status_of(&row[status]).is_some())
            {
                return bad(format!("row {} has no valid exp_id, config_key, replica or status", row_idx + 1));
            }
        }
        let order = |row: &Vec<Cell>| if let Cell::Unsigned(id) = row[id] { id } else { 0 };
        self.rows.sort_by_key(order);
        match self.rows.windows(2).find(|w| order(&w[0]) == order(&w[1])) {
            Some(twice) => bad(format!("experiment {} has two rows", order(&twice[0]))),
            None => Ok(()),
        }
    }

    /// Returns the index of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// Returns, for several jobs, the job that a column such as `iteration_time_ns` belongs to; `None` for one workload, and for columns of the whole network.
    pub fn job_of_column(&self, column: &str) -> Option<&str> {
        self.job_of_row.as_deref().filter(|_| OF_ONE_JOB.contains(&column))
    }

    /// Returns the indices of the axes' columns, in their order.
    pub fn axes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.columns.len()).filter(|&c| self.columns[c].role == ColumnRole::Axis)
    }

    /// Returns the `exp_id` of a row.
    pub fn exp_id(&self, row: usize) -> u64 {
        self.whole(row, 0)
    }

    /// Returns the key that the replicas of one configuration share.
    pub fn config_key(&self, row: usize) -> &str {
        match &self.rows[row][self.identity[1]] {
            Cell::Text(key) => key,
            _ => "",
        }
    }

    /// Returns the replica of a row, from 0.
    pub fn replica(&self, row: usize) -> u64 {
        self.whole(row, 2)
    }

    /// Returns how the experiment of a row ended.
    pub fn status(&self, row: usize) -> Status {
        status_of(&self.rows[row][self.identity[3]]).unwrap_or(Status::Failed)
    }

    /// Returns a cell as a number; `None` if it is empty or no number. Whole numbers beyond 2^53 round.
    pub fn number(&self, row: usize, column: usize) -> Option<f64> {
        self.rows[row][column].number()
    }

    /// Returns the row of an experiment.
    pub fn find(&self, exp_id: u64) -> Option<usize> {
        self.rows
            .binary_search_by_key(&exp_id, |row| if let Cell::Unsigned(id) = row[self.identity[0]] { id } else { 0 })
            .ok()
    }

    /// Returns the sweep with every key resolved; `None` if the manifest has none.
    pub fn sweep(&self) -> Option<toml::Table> {
        let text = Some(&self.manifest.sweep).filter(|text| input::tree_fits(text.len()))?;
        text.parse().ok().filter(|t: &toml::Table| !t.is_empty())
    }

    /// Describes why these are not all results of the run; `None` if they are.
    pub fn incomplete(&self) -> Option<String> {
        let m = &self.manifest;
        let what = match m.outcome {
            Outcome::Running if in_use(&self.path) => "the run is still going on",
            Outcome::Running => "the run was killed",
            Outcome::Interrupted => "the run is incomplete",
            Outcome::Aborted => "the run broke off",
            Outcome::Complete => return None,
        };
        let (selected, have) = (m.selected, self.rows.len() as u64);
        // A search runs a few of the selected experiments, and until its end it is unknown which.
        let is_search = self
            .sweep()
            .is_some_and(|s| s.get("sweep").and_then(|s| s.get("method")).and_then(|m| m.as_str()) == Some("optimize"));
        Some(match selected.saturating_sub(have) {
            missing if missing > 0 && !is_search => {
                let have = if missing == 1 { "has" } else { "have" };
                format!("{what}: {missing} of {} {have} no result", counted(selected, "experiment"))
            }
            _ => what.into(),
        })
    }

    fn whole(&self, row: usize, which: usize) -> u64 {
        match self.rows[row][self.identity[which]] {
            Cell::Unsigned(v) => v,
            _ => 0,
        }
    }
}

fn status_of(cell: &Cell) -> Option<Status> {
    let Cell::Text(text) = cell else { return None };
    Status::read(text).ok()
}

/// Returns the role of a column. Old manifests name no axes: then a column that is neither identity nor outcome is an axis.
fn role(name: &str, manifest: &Manifest) -> ColumnRole {
    let named = |c: &RecordColumn| c.name == name;
    match () {
        () if IDENTITY.iter().any(named) => ColumnRole::Identity,
        () if manifest.axes.iter().any(|a| a.key == name) => ColumnRole::Axis,
        () if manifest.axes.is_empty() && !outcome_columns(ColumnSets::ALL).any(named) => ColumnRole::Axis,
        () => ColumnRole::Outcome,
    }
}

fn manifest(dir: &Path) -> Result<Manifest, ReadError> {
    let path = dir.join("manifest.json");
    if !path.is_file() {
        return Err(ReadError::NotResults { path: dir.into(), missing: "manifest.json" });
    }
    let bytes = input::read_anywhere(&path, input::max_table_bytes()).map_err(ReadError::io(&path))?;
    serde_json::from_slice(&bytes).map_err(|source| ReadError::Manifest { path, source })
}
