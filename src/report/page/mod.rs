//! `report.html`: the results of a run as one page that needs only a browser.
//!
//! Layer: report, between results and cli. It reads a result folder, has `analysis` compute rankings, effects, fronts and recommendations, and writes the page:
//! data as JSON beside a small script that only draws it. It simulates nothing, prints nothing and writes no other file.

pub mod clusters;
pub mod details;
mod error;
pub mod html;
pub mod payload;
pub mod reasons;
pub mod shared_links;
pub mod sketch;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

pub use error::ReportError;

use hyperfold_analysis::recommendation::load::load;

/// Writes `report.html` into the folder, and returns its path. An earlier report is replaced as a whole.
///
/// # Errors
/// The folder holds no results, one of its files is damaged, or the page cannot be written.
pub fn write(dir: &Path) -> Result<PathBuf, ReportError> {
    let html = html::html(&load(dir)?, dir)?;
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
