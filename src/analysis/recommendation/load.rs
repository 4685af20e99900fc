//! Loads a result folder as a sheet.
//!
//! Layer: recommendation. [`RunColumns`] says what columns mean. The digits of numbers are taken from `results.csv` if they match the number in the Parquet file, so
//! that a page shows exact decimals. It interprets nothing.

use std::path::{Path, PathBuf};

use crate::compare::Questions;
use crate::compare::metric::objectives;
use hyperfold_base::input;
use hyperfold_results::memory_meter;
use hyperfold_results::read::{ColumnRole, ReadError, RunColumns};
use hyperfold_results::{Cell, ColumnKind, FoldingRecord, Manifest, StatsRecord};

use thiserror::Error;

use super::sheet::{Holds, Sheet, SheetColumn};

/// Why a folder cannot be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The results cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A CSV file of the folder is damaged.
    #[error("{}: {source}", .path.display())]
    Csv {
        /// Path of the file.
        path: PathBuf,
        /// The fault, and the line that it is in.
        source: csv::Error,
    },
}

/// The small files of a result folder. `flows.csv` and `links.csv` can be large; they are read later, when it is known which experiments are shown.
pub struct LoadedFolder {
    /// Content of `results.csv`.
    pub sheet: Sheet,
    /// Columns of `stats.csv`, in the order of the sheet's rows. Empty if there is no such file.
    pub stats: Vec<SheetColumn>,
    /// Possible relative error of the times of each row, by [`StatsRecord::times_error`]. `None`: there is no `stats.csv`.
    pub times_error: Option<SheetColumn>,
    /// Content of `manifest.json`.
    pub manifest: Manifest,
    /// A sentence about whether the run is complete.
    pub state: String,
    /// Whether the run was a search, which chose its experiments.
    pub searched: bool,
    /// Objectives of the search, if the sweep names any.
    pub objectives: Vec<String>,
}

/// Loads the folder.
///
/// # Errors
/// It is no result folder, or one of its files is damaged.
pub fn load(dir: &Path) -> Result<LoadedFolder, LoadError> {
    let run = RunColumns::open(dir)?;
    let exact = exact_texts(dir, &run)?;
    let column = |c: usize| {
        let cell_text = |row: usize| match &exact {
            Some(texts) if run.columns[c].kind == ColumnKind::Real => texts[row][c].clone(),
            _ => run.rows[row][c].to_string(),
        };
        let holds = match run.columns[c].kind {
            ColumnKind::Int | ColumnKind::Unsigned | ColumnKind::Real => Holds::Number,
            ColumnKind::Flag | ColumnKind::Text => Holds::Text,
        };
        SheetColumn { name: run.columns[c].name.clone(), holds, text: (0..run.rows.len()).map(cell_text).collect() }
    };
    let axes: Vec<usize> = run.axes().collect();
    let first_outcome = run.columns.iter().position(|c| c.role == ColumnRole::Outcome).unwrap_or(run.columns.len());
    let axes = axes.first().map_or(first_outcome..first_outcome, |&first| first..first + axes.len());
    let mut asked = Questions::default();
    asked.add(run.sweep().as_ref(), |key| {
        run.column(key).map(|c| run.rows.iter().map(|row| row[c].to_string()).collect()).unwrap_or_default()
    });
    asked.add_not_compared(&run.manifest.not_compared);
    let job = |name: &String| run.job_of_column(name).map(|job| (name.clone(), job.to_string()));
    let of_job = run.columns.iter().filter_map(|c| job(&c.name)).collect();
    let sheet = Sheet { columns: (0..run.columns.len()).map(column).collect(), axes, asked, of_job };
    let sweep = run.sweep();
    let method = sweep.as_ref().and_then(|s| s.get("sweep")?.get("method")?.as_str());
    let searched = method == Some("optimize");
    let kind = if searched { "search" } else { "run" };
    let state = match run.incomplete() {
        Some(why) => format!("Not all is here: {}.", why.replacen("the run", &format!("the {kind}"), 1)),
        None => format!("The {kind} is complete."),
    };
    let (stats, times_error) = stats(&run)?;
    Ok(LoadedFolder {
        stats,
        times_error,
        state,
        searched,
        objectives: objectives(sweep.as_ref()),
        manifest: run.manifest,
        sheet,
    })
}

/// Texts of `results.csv`, in the order of the rows. `None`: there is no such file, or its numbers are not those of the rows.
fn exact_texts(dir: &Path, run: &RunColumns) -> Result<Option<Vec<Vec<String>>>, LoadError> {
    let path = dir.join("results.csv");
    if !path.is_file() {
        return Ok(None);
    }
    let bad = |source| LoadError::Csv { path: path.clone(), source };
    let file = input::open_table_anywhere(&path).map_err(|e| bad(e.into()))?;
    let mut reader = csv::Reader::from_reader(file);
    let meter = memory_meter();
    let same_names = reader.headers().map_err(bad)?.iter().eq(run.columns.iter().map(|c| c.name.as_str()));
    let mut texts: Vec<Vec<String>> = Vec::new();
    for record in reader.records() {
        meter
            .check("texts of results", 0)
            .map_err(|exceeded| ReadError::Memory { path: path.clone(), allowance: exceeded.allowance })?;
        texts.push(record.map_err(bad)?.iter().map(String::from).collect());
    }
    let same_number = |(cell, text): (&Cell, &String)| match cell {
        Cell::Real(v) => text.parse() == Ok(*v),
        Cell::Empty => text.is_empty(),
        _ => true,
    };
    let same_row = |(cells, texts): (&Vec<Cell>, &Vec<String>)| cells.iter().zip(texts).all(same_number);
    let same = same_names && texts.len() == run.rows.len() && run.rows.iter().zip(&texts).all(same_row);
    Ok(same.then_some(texts))
}

/// Columns of `stats.csv` and of the error of times, in the order of the rows. Cells are empty for rows that the file lacks.
fn stats(run: &RunColumns) -> Result<(Vec<SheetColumn>, Option<SheetColumn>), LoadError> {
    /// Columns of folding that are shown where measured rates were carried on.
    const CARRIED: [&str; 2] = ["carried_skips", "carried_drift"];
    let mut records: Vec<Option<StatsRecord>> = vec![None; run.rows.len()];
    let there = run.each_stats(|exp_id, record| {
        if let Some(row) = run.find(exp_id) {
            records[row] = Some(record);
        }
    })?;
    let column = |name: &str, cell: fn(&StatsRecord) -> Cell| {
        let text = records.iter().map(|s| s.as_ref().map_or(String::new(), |s| cell(s).to_string())).collect();
        SheetColumn { name: name.into(), holds: Holds::Number, text }
    };
    let any_carried = records.iter().flatten().any(|s| s.folding.carried_skips > 0);
    let carried = FoldingRecord::COLUMNS.iter().filter(|c| any_carried && CARRIED.contains(&c.name));
    let shown = StatsRecord::COLUMNS.iter().chain(carried).map(|c| column(c.name, c.cell));
    let stats = if there { shown.collect() } else { Vec::new() };
    Ok((stats, there.then(|| column("times_error", |s| s.times_error().into()))))
}
