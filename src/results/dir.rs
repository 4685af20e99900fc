//! The folder of a run: claimed once, and nothing is written outside it.
//!
//! Layer: results. The claim is a lock on the journal. The operating system releases it when the process ends, however it ends, so a killed run leaves nothing
//! to clean up. Files are created anew, never opened through a link that stands in their place.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::ResultsError;
use hyperfold_base::input;

/// Name of the journal in the folder.
pub const JOURNAL: &str = "journal.bin";
/// Longest wait for a lock.
const PATIENCE: Duration = Duration::from_secs(1);

/// A folder that belongs to this run.
#[derive(Debug)]
pub struct ResultDir {
    path: PathBuf,
    journal: File,
    earlier: bool,
    locked: bool,
    /// File numbers of the folder and its journal; `None` if the system has none.
    claimed: Option<[FileNumber; 2]>,
}

/// A file's device, and its number on the device.
type FileNumber = (u64, u64);

#[cfg(unix)]
fn number(path: &Path) -> Option<FileNumber> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn number(_: &Path) -> Option<FileNumber> {
    None
}

/// Returns the file numbers of a folder and its journal.
fn numbers(path: &Path) -> Option<[FileNumber; 2]> {
    Some([number(path)?, number(&path.join(JOURNAL))?])
}

impl ResultDir {
    /// Checks that `path` can become a run's folder: it is absent or empty, or with `resume` has a journal. Changes nothing, so that bad input found later
    /// leaves no folder behind.
    ///
    /// # Errors
    /// It is a file, a folder with anything else in it, a folder that another process writes to, or one that cannot be read.
    pub fn check(path: &Path, resume: bool) -> Result<(), ResultsError> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(_) if path.is_file() => return Err(ResultsError::NotAFolder(path.into())),
            Err(e) => return Err(ResultsError::unreadable(path)(e)),
        };
        let mut only_a_journal = true;
        for entry in entries {
            only_a_journal &= entry.map_err(ResultsError::unreadable(path))?.file_name() == JOURNAL;
        }
        let bytes = match regular(&path.join(JOURNAL))? {
            // A run that was killed at its very start leaves an empty journal and nothing else.
            Some(bytes) => {
                let file =
                    input::open_anywhere(&path.join(JOURNAL)).map_err(ResultsError::unreadable(path.join(JOURNAL)))?;
                lock(path, || file.try_lock_shared())?;
                bytes
            }
            None if only_a_journal => 0,
            None if resume => return Err(ResultsError::NoJournal(path.into())),
            None => return Err(ResultsError::InUse(path.into())),
        };
        if resume || (only_a_journal && bytes == 0) { Ok(()) } else { Err(ResultsError::InUse(path.into())) }
    }

    /// Creates the folder and claims it.
    ///
    /// # Errors
    /// Fails as [`ResultDir::check`] does, or it cannot be created.
    pub fn create(path: &Path) -> Result<ResultDir, ResultsError> {
        Self::claim(path, false)
    }

    /// Claims the folder of an earlier run, or creates it if there is none.
    ///
    /// # Errors
    /// Fails as [`ResultDir::check`] does, or it cannot be created.
    pub fn reopen(path: &Path) -> Result<ResultDir, ResultsError> {
        Self::claim(path, true)
    }

    fn claim(path: &Path, resume: bool) -> Result<ResultDir, ResultsError> {
        Self::check(path, resume)?;
        let cannot = |e: std::io::Error| ResultsError::Cannot { path: path.into(), why: e.to_string() };
        fs::create_dir_all(path).map_err(cannot)?;
        let journal =
            OpenOptions::new().read(true).append(true).create(true).open(path.join(JOURNAL)).map_err(cannot)?;
        let locked = lock(path, || journal.try_lock())?;
        // The journal's directory entry must survive a loss of power like its contents. If folders cannot be flushed, nothing can be done.
        let _ = File::open(path).and_then(|folder| folder.sync_all());
        let earlier = journal.metadata().map_err(cannot)?.len() > 0;
        if earlier && !resume {
            // Another run has come and gone between the check and the lock.
            return Err(ResultsError::InUse(path.into()));
        }
        Ok(ResultDir { path: path.into(), journal, earlier, locked, claimed: numbers(path) })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the folder and its journal are still those that were claimed. Files are written by path, so otherwise they would go elsewhere, or nowhere.
    ///
    /// # Errors
    /// [`ResultsError::FolderLost`].
    pub fn is_still_there(&self) -> Result<(), ResultsError> {
        if self.claimed.is_some() && numbers(&self.path) != self.claimed {
            return Err(ResultsError::FolderLost(self.path.clone()));
        }
        Ok(())
    }

    /// Whether the file system guarantees that no other run writes here; some network file systems have no locks.
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// Returns the journal, open for reading and appending. All handles share one lock.
    ///
    /// # Errors
    /// The process has too many files open.
    pub(super) fn journal(&self) -> Result<(PathBuf, File), ResultsError> {
        let path = self.path.join(JOURNAL);
        let file = self.journal.try_clone().map_err(ResultsError::io(&path))?;
        Ok((path, file))
    }

    /// Creates a new file in the folder. In the folder of an earlier run an existing file is replaced; in a new folder it belongs to somebody else.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub(super) fn new_file(&self, name: &str) -> Result<(PathBuf, File), ResultsError> {
        if self.earlier {
            self.remove(name)?;
        }
        let path = self.path.join(name);
        match OpenOptions::new().read(true).append(true).create_new(true).open(&path) {
            Ok(file) => Ok((path, file)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(ResultsError::InUse(self.path.clone())),
            Err(e) => Err(ResultsError::io(path)(e)),
        }
    }

    /// Opens a log of an earlier run to append to, or creates a new file.
    ///
    /// # Errors
    /// It is no regular file, or cannot be opened.
    pub(super) fn continued_file(&self, name: &str) -> Result<(PathBuf, File), ResultsError> {
        let path = self.path.join(name);
        if !self.earlier || regular(&path)?.is_none() {
            return self.new_file(name);
        }
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(ResultsError::io(&path))?;
        Ok((path, file))
    }

    /// Removes a file of an earlier run, if there is one.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(super) fn remove(&self, name: &str) -> Result<(), ResultsError> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(ResultsError::io(path)(e)),
            _ => Ok(()),
        }
    }

    /// Writes a whole file so that a reader sees the old one or the new one, never a part.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), ResultsError> {
        let part_name = format!("{name}.part");
        let (path, part) = (self.path.join(name), self.path.join(&part_name));
        // Remove the partial file of a killed run.
        self.remove(&part_name)?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(&part).map_err(ResultsError::io(&part))?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&part, &path));
        if written.is_err() {
            self.remove(&part_name)?;
        }
        written.map_err(ResultsError::io(&path))
    }
}

/// Returns the length of a regular file; `None` if there is none. A link, a device or a folder in its place is refused.
pub(super) fn regular(path: &Path) -> Result<Option<u64>, ResultsError> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(Some(meta.len())),
        Ok(_) => Err(ResultsError::NotRegular(path.into())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(ResultsError::unreadable(path)(e)),
    }
}

/// Takes a lock and returns whether it was taken. `false` means that the file system has no locks, which is no error. Waits a moment for a holder that is just
/// ending: a killed process holds its locks until the system has removed it.
pub(super) fn lock(path: &Path, attempt: impl Fn() -> Result<(), TryLockError>) -> Result<bool, ResultsError> {
    let deadline = Instant::now() + PATIENCE;
    let mut taken = attempt();
    while matches!(taken, Err(TryLockError::WouldBlock)) && Instant::now() < deadline {
        std::thread::sleep(PATIENCE / 50);
        taken = attempt();
    }
    match taken {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Err(ResultsError::Locked(path.into())),
        Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => Ok(false),
        Err(TryLockError::Error(e)) => Err(ResultsError::io(path.join(JOURNAL))(e)),
    }
}

/// Whether a process writes to a folder right now; `None` if its file system cannot tell, or there is no journal.
pub(super) fn writer(folder: &Path) -> Option<bool> {
    let journal = File::open(folder.join(JOURNAL)).ok()?;
    match journal.try_lock_shared() {
        Ok(()) => Some(false),
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}

/// Whether a process writes to a folder right now, as far as its file system can tell.
pub(super) fn in_use(folder: &Path) -> bool {
    writer(folder) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_or_empty_folder_is_free_and_others_are_not() {
        let root = tempfile::tempdir().unwrap();
        let absent = root.path().join("a/b");
        for resume in [false, true] {
            assert!(ResultDir::check(&absent, resume).is_ok());
            assert!(!absent.exists(), "checking creates nothing");
        }
        drop(ResultDir::create(&absent).unwrap());
        assert!(ResultDir::check(&absent, false).is_ok(), "an empty journal is nothing yet");
        fs::write(absent.join("x"), "").unwrap();
        assert!(matches!(ResultDir::create(&absent), Err(ResultsError::InUse(p)) if p == absent));
        assert!(ResultDir::reopen(&absent).is_ok(), "there is a journal");
        fs::remove_file(absent.join(JOURNAL)).unwrap();
        assert!(matches!(ResultDir::reopen(&absent), Err(ResultsError::NoJournal(_))));
        assert!(matches!(ResultDir::create(&absent.join("x")), Err(ResultsError::NotAFolder(_))));
    }

    #[test]
    fn two_runs_cannot_share_a_folder_and_the_second_may_follow_the_first() {
        let root = tempfile::tempdir().unwrap();
        let one = ResultDir::create(root.path()).unwrap();
        assert!(one.is_locked());
        for again in [ResultDir::create(root.path()), ResultDir::reopen(root.path())] {
            assert!(matches!(again, Err(ResultsError::Locked(_))), "{again:?}");
        }
        one.new_file("results.csv").unwrap();
        drop(one);
        assert!(ResultDir::reopen(root.path()).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_was_removed_or_replaced_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("d");
        let dir = ResultDir::create(&folder).unwrap();
        assert!(dir.is_still_there().is_ok());
        fs::rename(&folder, root.path().join("moved")).unwrap();
        assert!(matches!(dir.is_still_there(), Err(ResultsError::FolderLost(_))));
        fs::create_dir(&folder).unwrap();
        assert!(matches!(dir.is_still_there(), Err(ResultsError::FolderLost(_))));
        fs::copy(root.path().join("moved").join(JOURNAL), folder.join(JOURNAL)).unwrap();
        assert!(matches!(dir.is_still_there(), Err(ResultsError::FolderLost(_))), "another folder with the same files");
        fs::remove_dir_all(&folder).unwrap();
        fs::rename(root.path().join("moved"), &folder).unwrap();
        assert!(dir.is_still_there().is_ok());
        fs::remove_file(folder.join(JOURNAL)).unwrap();
        assert!(matches!(dir.is_still_there(), Err(ResultsError::FolderLost(_))));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_replaced_or_refused_and_never_followed() {
        let root = tempfile::tempdir().unwrap();
        let (dir, outside) = (root.path().join("d"), root.path().join("outside"));
        fs::write(&outside, "mine").unwrap();
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(JOURNAL), "x").unwrap();
        for name in ["results.csv", "manifest.json.part", "events.jsonl"] {
            std::os::unix::fs::symlink(&outside, dir.join(name)).unwrap();
        }
        let claimed = ResultDir::reopen(&dir).unwrap();
        claimed.new_file("results.csv").unwrap().1.write_all(b"rows").unwrap();
        claimed.replace("manifest.json", b"{}").unwrap();
        assert!(matches!(claimed.continued_file("events.jsonl"), Err(ResultsError::NotRegular(_))));
        drop(claimed);
        fs::remove_file(dir.join(JOURNAL)).unwrap();
        std::os::unix::fs::symlink(&outside, dir.join(JOURNAL)).unwrap();
        assert!(matches!(ResultDir::reopen(&dir), Err(ResultsError::NotRegular(_))));
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
    }
}
