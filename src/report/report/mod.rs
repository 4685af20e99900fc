//! `report.html`: the results of a run as one page that needs only a browser.
//!
//! Layer: report, between results and cli. It reads a result folder, computes all statistics (ranking with ties, effects, Pareto fronts, distributions), and
//! writes the page: data as JSON beside a small script that only draws it. It simulates nothing, prints nothing and writes no other file.

pub mod clusters;
pub mod design;
pub mod details;
pub mod load;
pub mod metric;
pub mod page;
pub mod pareto;
pub mod payload;
pub mod rank;
pub mod reasons;
pub mod recommend;
pub mod shared_links;
pub mod sheet;
pub mod sketch;
pub mod verdict;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use hyperfold_results::read::ReadError;

/// Why a report cannot be written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The folder has no results, or damaged ones.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A CSV file of the folder is damaged.
    #[error("{}: {source}", .path.display())]
    Csv {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong, and in which line.
        source: csv::Error,
    },
    /// The page cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// Path of the page.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Writes `report.html` into the folder, and returns its path. An earlier report is replaced as a whole.
///
/// # Errors
/// The folder holds no results, one of its files is damaged, or the page cannot be written.
pub fn write(dir: &Path) -> Result<PathBuf, ReportError> {
    let html = page::html(&load::load(dir)?, dir)?;
    let (path, part) = (dir.join("report.html"), dir.join("report.html.part"));
    let wrong = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ReportError::Write { path, source }
    };
    // A link at this path is removed and not followed, so that nothing outside the folder is written.
    if part.symlink_metadata().is_ok() {
        fs::remove_file(&part).map_err(wrong(&part))?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(&part).map_err(wrong(&part))?;
    file.write_all(html.as_bytes()).map_err(wrong(&part))?;
    fs::rename(&part, &path).map_err(wrong(&path))?;
    Ok(path)
}
