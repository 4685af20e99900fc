//! `trace/EXP_ID.pftrace`: timelines of experiments in a folder of results.
//!
//! Layer: results. Writes bytes that others made, and copies files of other folders, but never through a link that stands in their place.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::ResultsError;
use super::dir::regular;
use hyperfold_base::input;

/// Writes the timeline of an experiment into the folder of its run, and returns its path. A reader sees an earlier one or this one, never a part.
///
/// # Errors
/// It cannot be written, or `trace` is not a folder in this one.
pub fn write_timeline(dir: &Path, exp_id: u64, bytes: &[u8]) -> Result<PathBuf, ResultsError> {
    place(dir, exp_id, |file, path| file.write_all(bytes).map_err(ResultsError::io(path)))
}

/// Copies the timeline of an experiment from another folder, unless it exists already. Returns whether it exists now.
///
/// # Errors
/// It cannot be read or written, or something else has its name.
pub fn copy_timeline(source_dir: &Path, dir: &Path, exp_id: u64) -> Result<bool, ResultsError> {
    let name = Path::new("trace").join(format!("{exp_id}.pftrace"));
    let (source, target) = (source_dir.join(&name), dir.join(&name));
    if regular(&target)?.is_some() {
        return Ok(true);
    }
    if regular(&source)?.is_none() {
        return Ok(false);
    }
    let unreadable = || ResultsError::unreadable(&source);
    if regular(&source)?.is_some_and(|bytes| bytes > input::MAX_BYTES) {
        let max_gib = input::MAX_BYTES >> 30;
        return Err(unreadable()(std::io::Error::other(format!(
            "it is longer than {max_gib} GiB; no timeline is, so remove it"
        ))));
    }
    let mut bytes = BufReader::with_capacity(1 << 18, input::open_anywhere(&source).map_err(unreadable())?);
    place(dir, exp_id, |file, path| {
        loop {
            let read = bytes.fill_buf().map_err(unreadable())?;
            if read.is_empty() {
                return Ok(());
            }
            file.write_all(read).map_err(ResultsError::io(path))?;
            let n = read.len();
            bytes.consume(n);
        }
    })?;
    Ok(true)
}

/// Replaces the timeline of an experiment by what `write` writes.
fn place(
    dir: &Path,
    exp_id: u64,
    write: impl FnOnce(&mut File, &Path) -> Result<(), ResultsError>,
) -> Result<PathBuf, ResultsError> {
    let folder = dir.join("trace");
    match fs::create_dir(&folder) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && fs::symlink_metadata(&folder).is_ok_and(|m| m.is_dir()) => {}
        made => made.map_err(ResultsError::io(&folder))?,
    }
    let (path, part) = (folder.join(format!("{exp_id}.pftrace")), folder.join(format!("{exp_id}.pftrace.part")));
    // The leftover of a killed run is useless, and a new file follows no link.
    match fs::remove_file(&part) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(ResultsError::io(&part)(e)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(&part).map_err(ResultsError::io(&part))?;
    write(&mut file, &part)?;
    fs::rename(&part, &path).map_err(ResultsError::io(&path))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_replaces_an_earlier_one() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("trace")).unwrap();
        fs::write(root.path().join("trace/7.pftrace.part"), "left over").unwrap();
        for bytes in [&b"one"[..], b"two"] {
            assert_eq!(fs::read(write_timeline(root.path(), 7, bytes).unwrap()).unwrap(), bytes);
        }
        assert_eq!(fs::read_dir(root.path().join("trace")).unwrap().count(), 1);
    }

    #[test]
    #[cfg(unix)]
    fn a_timeline_is_copied_once_and_only_if_it_is_one() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert!(!copy_timeline(a.path(), b.path(), 7).unwrap());
        assert!(!b.path().join("trace").exists(), "where there is nothing to copy, nothing is made");
        let long = vec![5; 700_000];
        write_timeline(a.path(), 7, &long).unwrap();
        assert!(copy_timeline(a.path(), b.path(), 7).unwrap());
        assert!(fs::read(b.path().join("trace/7.pftrace")).unwrap() == long);
        write_timeline(a.path(), 7, b"another").unwrap();
        assert!(copy_timeline(a.path(), b.path(), 7).unwrap());
        assert!(fs::read(b.path().join("trace/7.pftrace")).unwrap() == long, "what is there stays");
        std::os::unix::fs::symlink(a.path().join("trace/7.pftrace"), a.path().join("trace/8.pftrace")).unwrap();
        assert!(copy_timeline(a.path(), b.path(), 8).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn nothing_is_written_through_links() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(other.path(), root.path().join("trace")).unwrap();
        assert!(write_timeline(root.path(), 7, b"x").is_err());
        fs::remove_file(root.path().join("trace")).unwrap();
        write_timeline(root.path(), 7, b"x").unwrap();
        let outside = other.path().join("mine");
        fs::write(&outside, "mine").unwrap();
        fs::remove_file(root.path().join("trace/7.pftrace")).unwrap();
        std::os::unix::fs::symlink(&outside, root.path().join("trace/7.pftrace")).unwrap();
        write_timeline(root.path(), 7, b"y").unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
    }
}
