//! Files that users and their sweeps name. They are opened and read here, and nowhere else.
//!
//! Layer: the lowest; knows no format. It makes three promises:
//! - Only regular files are read. Reading from a device or a pipe might never end, or never begin.
//! - Every file has a limit of size. A file that is longer is refused before any of it is read.
//! - [`confine`] names a folder (`--root`). Files that a sweep names must lie in it, after links are resolved. A file that users name themselves on the command
//!   line, such as the sweep, may lie anywhere; such files are read by the functions whose names end with `_anywhere`.

mod rows;

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Error, Read};
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use crate::budget;

pub use rows::Rows;

/// Maximum number of bytes in a file that is read as a whole. The limit is half of the memory budget if that is less.
pub const MAX_BYTES: u64 = 4 << 30;
/// Maximum number of bytes of TOML or JSON that becomes a tree: a sweep with its includes, a graph, a GPU, a model, or the manifest of a run.
pub const MAX_TREE_BYTES: u64 = 8 << 20;
/// Most bytes of memory that a byte of TOML or JSON takes as a tree. A tree of empty tables takes from 78 (measured) to 96 (by the sizes of its nodes).
const TREE_TIMES: u64 = 100;
/// Maximum number of bytes of TOML that describes a single thing, such as a GPU or a model. Such files are read on many threads at once.
const MAX_SMALL_TREE_BYTES: u64 = 1 << 20;
/// Bytes of TOML or JSON that are read however little memory there is.
const MIN_TREE_BYTES: u64 = 64 << 10;
/// Most bytes of memory that a byte of a table or a log takes once it is read. Cells of one byte become texts of their own.
const TABLE_TIMES: u64 = 16;
/// Maximum number of bytes of a table that is kept as rows: kernels, slowdowns, or measured values.
const MAX_TABLE_BYTES: u64 = 256 << 20;

/// The folder that inputs must lie in, as the user wrote it and as the system knows it.
#[derive(Clone, Debug)]
struct InputRoot {
    shown: PathBuf,
    real: PathBuf,
}

/// The root of this process. With `None`, inputs may lie anywhere.
static ROOT: RwLock<Option<InputRoot>> = RwLock::new(None);

/// From now on, every file that a sweep names must lie in `folder`.
///
/// # Errors
/// It is no folder, or cannot be found.
pub fn confine(folder: &Path) -> io::Result<()> {
    let root = InputRoot::new(folder)?;
    *ROOT.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(root);
    Ok(())
}

/// Returns the folder that inputs must lie in, without links.
pub fn root() -> Option<PathBuf> {
    ROOT.read().unwrap_or_else(std::sync::PoisonError::into_inner).as_ref().map(|root| root.real.clone())
}

impl InputRoot {
    fn new(folder: &Path) -> io::Result<InputRoot> {
        let real = folder.canonicalize()?;
        if !real.is_dir() {
            return Err(Error::other("it is not a folder"));
        }
        Ok(InputRoot { shown: folder.to_path_buf(), real })
    }

    /// Returns the path without links if it lies in the root.
    fn within(&self, path: &Path) -> io::Result<PathBuf> {
        let real = path.canonicalize()?;
        if real.starts_with(&self.real) {
            return Ok(real);
        }
        Err(Error::other(format!(
            "it lies outside of --root {} (links are followed); what a sweep names must lie in that folder",
            self.shown.display()
        )))
    }
}

/// Returns the path that may be opened. It is without links if there is a root.
fn allowed(path: &Path) -> io::Result<PathBuf> {
    match &*ROOT.read().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(root) => root.within(path),
        None => Ok(path.to_path_buf()),
    }
}

/// Whether the path is a folder that may be read.
pub fn is_folder(path: &Path) -> bool {
    allowed(path).is_ok_and(|path| path.is_dir())
}

/// Whether the path is a regular file that may be read.
pub fn is_file(path: &Path) -> bool {
    allowed(path).is_ok_and(|path| path.is_file())
}

/// Opens a file that a sweep names.
///
/// # Errors
/// The file lies outside the root, is no regular file, is too long, or cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    Ok(open_regular(&allowed(path)?, whole_file_limit())?.0)
}

/// Returns the bytes of a file that a sweep names.
///
/// # Errors
/// It fails as [`open`] does, or the file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_regular(&allowed(path)?, whole_file_limit())
}

/// Returns the text of a file that a sweep names.
///
/// # Errors
/// It fails as [`read`] does, or the file is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    text(read(path)?)
}

/// Returns the most bytes of TOML or JSON that may be read as a tree: [`MAX_TREE_BYTES`], or less if the tree would take more than half of the memory budget.
pub fn max_tree_bytes() -> u64 {
    MAX_TREE_BYTES.min((budget::total() / 2 / TREE_TIMES).max(MIN_TREE_BYTES))
}

/// Whether a tree of TOML or JSON with this many bytes fits into memory. The text has already been read.
pub fn tree_fits(bytes: usize) -> bool {
    bytes as u64 <= (budget::total() / 2 / TREE_TIMES).max(MIN_TREE_BYTES)
}

/// Returns the text of TOML or JSON that a sweep names.
///
/// # Errors
/// It fails as [`read_text`] does, or the file is longer than [`max_tree_bytes`].
pub fn read_tree(path: &Path) -> io::Result<String> {
    text(read_regular(&allowed(path)?, max_tree_bytes())?)
}

/// Returns the text of TOML for one GPU or model that a sweep names.
///
/// # Errors
/// It fails as [`read_tree`] does, with a lower limit.
pub fn read_small_tree(path: &Path) -> io::Result<String> {
    text(read_regular(&allowed(path)?, max_tree_bytes().min(MAX_SMALL_TREE_BYTES))?)
}

/// Does the same as [`read_tree`] for a file that the user names, wherever it lies.
///
/// # Errors
/// It fails as [`read_tree`] does, but the file may lie outside the root.
pub fn read_tree_anywhere(path: &Path) -> io::Result<String> {
    text(read_regular(path, max_tree_bytes())?)
}

/// Returns the most bytes of a table or a log that is kept as rows.
pub fn max_table_bytes() -> u64 {
    MAX_TABLE_BYTES.min((budget::total() / 2 / TABLE_TIMES).max(MIN_TREE_BYTES))
}

/// Returns the text of a table that a sweep names and whose rows are kept.
///
/// # Errors
/// It fails as [`read_text`] does, or the file is longer than [`max_table_bytes`].
pub fn read_table(path: &Path) -> io::Result<String> {
    text(read_regular(&allowed(path)?, max_table_bytes())?)
}

/// Opens a table that the user names. Its rows are read one after another, and each has a limit of length.
///
/// # Errors
/// It fails as [`open_anywhere`] does.
pub fn open_table_anywhere(path: &Path) -> io::Result<Rows<File>> {
    Ok(Rows::new(open_anywhere(path)?))
}

/// Does the same for a table that a sweep names.
///
/// # Errors
/// It fails as [`open`] does.
pub fn open_table(path: &Path) -> io::Result<Rows<File>> {
    Ok(Rows::new(open(path)?))
}

/// Returns the paths in a folder that a sweep names, in order of their names.
///
/// # Errors
/// The folder lies outside the root, or cannot be read.
pub fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    allowed(folder)?;
    let mut found = fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>()?;
    found.sort();
    Ok(found)
}

/// Opens a file that the user names, wherever it lies and however long it is. Such a file is read piece by piece.
///
/// # Errors
/// It is no regular file, or cannot be opened.
pub fn open_anywhere(path: &Path) -> io::Result<File> {
    Ok(open_regular(path, u64::MAX)?.0)
}

/// Returns the bytes of a file that the user names, wherever it lies. It may have at most `max_bytes` bytes.
///
/// # Errors
/// It is no regular file, is too long, or cannot be read.
pub fn read_anywhere(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_regular(path, max_bytes)
}

/// Returns the text of such a file.
///
/// # Errors
/// It fails as [`read_anywhere`] does, or the file is not UTF-8.
pub fn read_text_anywhere(path: &Path, max_bytes: u64) -> io::Result<String> {
    text(read_anywhere(path, max_bytes)?)
}

/// Describes an error in a table's text and how to correct it. The caller adds the line.
pub fn csv_problem(error: &csv::Error) -> String {
    let fields = |n: u64| format!("{n} field{}", if n == 1 { "" } else { "s" });
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => format!(
            "the line has {}, the header has {}; give each column a field, empty ones too",
            fields(*len),
            fields(*expected_len)
        ),
        csv::ErrorKind::Utf8 { .. } => "it is not UTF-8 text".to_string(),
        csv::ErrorKind::Deserialize { err, .. } => match err.field() {
            Some(index) => format!("field {}: {}", index + 1, err.kind()),
            None => err.kind().to_string(),
        },
        csv::ErrorKind::Io(source) => source.to_string(),
        _ => error.to_string(),
    }
}

/// Describes an error in TOML on one line: where it is in `text`, and what would be right there.
pub fn toml_problem(error: &toml::de::Error, text: &str) -> String {
    let why = error.message();
    match error.span() {
        Some(span) => {
            let line = text.bytes().take(span.start).filter(|b| *b == b'\n').count() + 1;
            format!("line {line}: {why}")
        }
        None => why.to_string(),
    }
}

/// Returns a message if a column stands more than once in a header.
pub fn column_twice(header: &csv::StringRecord) -> Option<String> {
    let mut seen = HashSet::new();
    let twice = header.iter().find(|name| !seen.insert(*name))?;
    let shown: String = twice.chars().filter(|c| !c.is_control()).take(40).collect();
    Some(format!("column `{shown}` is there twice; leave one of the two out"))
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

fn whole_file_limit() -> u64 {
    MAX_BYTES.min(budget::total() / 2)
}

fn open_regular(path: &Path, max_bytes: u64) -> io::Result<(File, u64)> {
    // This is checked before the file is opened, because opening a pipe waits for a writer.
    check(&fs::metadata(path)?, max_bytes)?;
    let file = File::open(path)?;
    let meta = file.metadata()?;
    check(&meta, max_bytes)?;
    Ok((file, meta.len()))
}

fn read_regular(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let (file, length) = open_regular(path, max_bytes)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    // The file may grow while it is read, and files in /proc claim to be empty.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_long(bytes.len() as u64, max_bytes));
    }
    Ok(bytes)
}

fn check(meta: &Metadata, max_bytes: u64) -> io::Result<()> {
    if meta.is_dir() {
        return Err(Error::other("it is a folder, and a file is needed"));
    }
    if !meta.is_file() {
        return Err(Error::other("it is a device, a pipe or a socket; a regular file is needed, so save it as one"));
    }
    if meta.len() > max_bytes {
        return Err(too_long(meta.len(), max_bytes));
    }
    Ok(())
}

fn too_long(length: u64, max_bytes: u64) -> Error {
    let size_text = |bytes: u64| match bytes {
        _ if bytes < 10 << 20 && !bytes.is_multiple_of(1 << 20) => format!("{bytes} bytes"),
        _ => format!("{} MiB", bytes >> 20),
    };
    let hint = match () {
        () if max_bytes == budget::total() / 2 => " (half of the memory that may be used, see --memory)".to_string(),
        () if max_bytes == max_tree_bytes() && max_bytes < MAX_TREE_BYTES => {
            format!(" of TOML, JSON or XML (each takes up to {TREE_TIMES} in memory; see --memory)")
        }
        () if max_bytes == max_tree_bytes() || max_bytes == MAX_SMALL_TREE_BYTES => " of TOML, JSON or XML".to_string(),
        () if max_bytes == max_table_bytes() && max_bytes < MAX_TABLE_BYTES => {
            format!(" of a table (each takes up to {TABLE_TIMES} in memory; see --memory)")
        }
        () => String::new(),
    };
    Error::other(format!("it has {}, and at most {} are read{hint}", size_text(length), size_text(max_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_limited_length_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        fs::write(&file, "abc").unwrap();
        assert_eq!(read_anywhere(&file, 3).unwrap(), b"abc");
        let long = read_anywhere(&file, 2).unwrap_err().to_string();
        assert_eq!(long, "it has 3 bytes, and at most 2 bytes are read");
        assert!(read_anywhere(folder.path(), 9).unwrap_err().to_string().contains("it is a folder"));
        fs::write(&file, [0xff]).unwrap();
        assert!(read_text_anywhere(&file, 9).unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn a_file_without_contents_on_the_disk_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        File::create(&path).unwrap().set_len(10 << 30).unwrap();
        let why = read(&path).unwrap_err().to_string();
        assert!(why.starts_with("it has 10240 MiB, and at most "), "{why}");
        assert!(open(&path).is_err());
        assert!(open_anywhere(&path).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_refused() {
        let why = read_anywhere(Path::new("/dev/zero"), 9).unwrap_err().to_string();
        assert!(why.contains("it is a device, a pipe or a socket"), "{why}");
        assert!(open_anywhere(Path::new("/dev/zero")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_out_of_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("in-not"));
        for dir in [&inside, &outside] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("f"), "x").unwrap();
        }
        std::os::unix::fs::symlink(outside.join("f"), inside.join("link")).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("folder")).unwrap();
        std::os::unix::fs::symlink(inside.join("f"), outside.join("back")).unwrap();
        let root = InputRoot::new(&inside).unwrap();
        for fine in ["in/f", "in/../in/f", "in-not/back", "in"] {
            assert!(root.within(&folder.path().join(fine)).is_ok(), "{fine}");
        }
        for wrong in ["in-not/f", "in/link", "in/folder/f", "in/../in-not/f", "."] {
            let why = root.within(&folder.path().join(wrong)).unwrap_err().to_string();
            assert!(why.contains(&format!("outside of --root {}", inside.display())), "{wrong}: {why}");
        }
        assert!(InputRoot::new(&inside.join("f")).is_err());
        assert!(InputRoot::new(&inside.join("none")).is_err());
    }
}
