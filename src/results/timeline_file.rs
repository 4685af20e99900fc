//! `trace/EXP_ID.pftrace`: timelines of experiments in a folder of results.
//!
//! Layer: results. Writes bytes that others made, and never through a link that somebody has put in their place.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::ResultsError;

/// Writes the timeline of an experiment into the folder of its run; a reader sees an earlier one or this one, never a part. Where it is.
///
/// # Errors
/// It cannot be written, or `trace` is no folder of this one.
pub fn write_timeline(dir: &Path, exp_id: u64, bytes: &[u8]) -> Result<PathBuf, ResultsError> {
    let folder = dir.join("trace");
    match fs::create_dir(&folder) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && fs::symlink_metadata(&folder).is_ok_and(|m| m.is_dir()) => {}
        made => made.map_err(ResultsError::io(&folder))?,
    }
    let (path, part) = (folder.join(format!("{exp_id}.pftrace")), folder.join(format!("{exp_id}.pftrace.part")));
    // What a killed run left is no use, and a new file follows no link.
    match fs::remove_file(&part) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(ResultsError::io(&part)(e)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(&part).map_err(ResultsError::io(&part))?;
    file.write_all(bytes).map_err(ResultsError::io(&part))?;
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
