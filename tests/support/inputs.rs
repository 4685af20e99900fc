//! The files of others beside the project, where they are.

use std::fs;
use std::path::{Path, PathBuf};

/// Their folder; `None`, with a printed line, where it is absent.
pub fn folder() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().skip(1).take(2).map(|d| d.join("shared/inputs")).find(|d| d.is_dir());
    if found.is_none() {
        println!("no ../shared/inputs here: nothing to read");
    }
    found
}

/// Everything below a folder, in order of name; a folder of `.et` files counts as one.
pub fn entries(folder: &Path, into: &mut Vec<PathBuf>) {
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    if all.iter().any(|p| p.extension().is_some_and(|e| e == "et")) {
        into.push(folder.to_path_buf());
        return;
    }
    for path in all {
        match path.is_dir() {
            true => entries(&path, into),
            false => into.push(path),
        }
    }
}
