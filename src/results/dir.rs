//! The folder of a run: claimed once, and nothing is written outside it.
//!
//! Layer: results.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::ResultsError;

/// A folder that belongs to this run.
#[derive(Debug)]
pub struct ResultDir {
    path: PathBuf,
}

impl ResultDir {
    /// Whether `path` can become a run's folder: absent, or an empty folder. Changes nothing, so that bad input found
    /// later leaves no folder behind.
    ///
    /// # Errors
    /// A file, a folder with anything in it, or one that cannot be read.
    pub fn check(path: &Path) -> Result<(), ResultsError> {
        match fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                None => Ok(()),
                Some(_) => Err(ResultsError::InUse(path.into())),
            },
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(_) if path.is_file() => Err(ResultsError::NotAFolder(path.into())),
            Err(e) => Err(ResultsError::io(path)(e)),
        }
    }

    /// Creates the folder and claims it.
    ///
    /// # Errors
    /// As [`ResultDir::check`], or it cannot be created.
    pub fn create(path: &Path) -> Result<ResultDir, ResultsError> {
        Self::check(path)?;
        fs::create_dir_all(path).map_err(|e| ResultsError::Cannot { path: path.into(), why: e.to_string() })?;
        Ok(ResultDir { path: path.into() })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new file in it. One that is there already means that another run claimed the folder in between.
    ///
    /// # Errors
    /// It exists, or cannot be created.
    pub(super) fn new_file(&self, name: &str) -> Result<(PathBuf, File), ResultsError> {
        let path = self.path.join(name);
        match OpenOptions::new().read(true).append(true).create_new(true).open(&path) {
            Ok(file) => Ok((path, file)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(ResultsError::InUse(self.path.clone())),
            Err(e) => Err(ResultsError::io(path)(e)),
        }
    }

    /// Writes a whole file so that a reader sees the old one or the new one, never a part.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), ResultsError> {
        let (path, part) = (self.path.join(name), self.path.join(format!("{name}.part")));
        let mut file = File::create(&part).map_err(ResultsError::io(&part))?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(ResultsError::io(&part))?;
        fs::rename(&part, &path).map_err(ResultsError::io(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_or_empty_folder_is_free_and_others_are_not() {
        let root = tempfile::tempdir().unwrap();
        let absent = root.path().join("a/b");
        assert!(ResultDir::check(&absent).is_ok());
        assert!(!absent.exists(), "checking creates nothing");
        ResultDir::create(&absent).unwrap();
        assert!(ResultDir::check(&absent).is_ok(), "empty");
        fs::write(absent.join("x"), "").unwrap();
        assert!(matches!(ResultDir::create(&absent), Err(ResultsError::InUse(p)) if p == absent));
        assert!(matches!(ResultDir::create(&absent.join("x")), Err(ResultsError::NotAFolder(_))));
    }

    #[test]
    fn two_runs_cannot_share_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = (ResultDir::create(root.path()).unwrap(), ResultDir::create(root.path()).unwrap());
        one.new_file("results.csv").unwrap();
        assert!(matches!(two.new_file("results.csv"), Err(ResultsError::InUse(_))));
    }
}
