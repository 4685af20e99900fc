//! Warnings about what a folder of results holds, which every command that reads one prints.
//!
//! Layer: cli. Decides nothing; `results` says what is wrong.

use std::path::Path;

use super::output::tell;
use hyperfold_results::approximate;
use hyperfold_results::losses;

/// Warns about losses in the journal of a folder, whatever else is printed.
pub(crate) fn tell_losses(dir: &Path) {
    for text in losses(dir) {
        tell(&format!("warning: {text}"));
    }
}

/// Warns if skipped phases make results in `dir` approximate.
pub(crate) fn tell_approximate(dir: &Path) {
    if let Some(text) = approximate::of_folder(dir) {
        tell(&format!("warning: {text}"));
    }
}
