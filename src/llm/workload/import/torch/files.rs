//! Which file belongs to which rank.
//!
//! Layer: workload. It lists folders and reads no file.

use std::path::{Path, PathBuf};

use crate::workload::import::ImportError;
use hyperfold_base::input;

/// What a file says of one rank.
pub(in crate::workload::import) trait OfRank {
    /// What such a file is called in messages.
    const WHAT: &'static str;
    /// What names the rank of such a file.
    const NAMES_RANK: &'static str;

    /// Path of the file, for messages.
    fn path(&self) -> &str;
    /// The rank; `None`: nothing says it.
    fn rank(&self) -> Option<u32>;
    /// Number of ranks of the job; `None`: the file does not say it.
    fn world_size(&self) -> Option<u32>;
}

/// The `.json` files that a path names, in alphabetical order: those of a folder, or the one file.
///
/// # Errors
/// The path cannot be read.
pub(in crate::workload::import) fn json_files(path: &Path) -> Result<Vec<PathBuf>, ImportError> {
    if !input::is_folder(path) {
        return Ok(vec![path.to_path_buf()]);
    }
    let shown = path.display().to_string();
    let entries = input::entries(path).map_err(|e| ImportError::path(&shown, format!("cannot be read: {e}")))?;
    let is_trace = |p: &PathBuf| p.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) && p.is_file();
    let mut found: Vec<PathBuf> = entries.iter().filter(|p| is_trace(p)).cloned().collect();
    if found.is_empty()
        && let Some(packed) = entries.iter().find(|p| p.to_string_lossy().ends_with(".json.gz"))
    {
        let packed = packed.display().to_string();
        return Err(ImportError::path(&packed, "it is compressed; unpack the files with gunzip"));
    }
    found.sort();
    Ok(found)
}

/// The rank in a file's name: the number after `rank`, else the last number.
pub(in crate::workload::import) fn rank_in_name(path: &str) -> Option<u32> {
    let name = Path::new(path).file_stem()?.to_str()?.to_ascii_lowercase();
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    };
    if let Some((_, after)) = name.rsplit_once("rank")
        && let Some(rank) = number(after.trim_start_matches(['-', '_', '.']))
    {
        return Some(rank);
    }
    let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
    let begin = name[..end].trim_end_matches(|c: char| c.is_ascii_digit()).len();
    name[begin..end].parse().ok()
}

/// Items in the order of their ranks, which count from 0 without gaps.
pub(in crate::workload::import) fn in_order<T: OfRank>(
    path: &str,
    mut items: Vec<T>,
    ranks: Option<u32>,
) -> Result<Vec<T>, ImportError> {
    let (n, what) = (items.len(), T::WHAT);
    if let Some(ranks) = ranks.filter(|ranks| *ranks as usize != n) {
        let problem = format!("there are {what}s of {n} ranks; only a single {what} can stand for more");
        return Err(ImportError::Ranks { path: path.to_string(), ranks, problem });
    }
    if n > 1
        && let Some(unknown) = items.iter().find(|i| i.rank().is_none())
    {
        let problem = format!("it does not say its rank; {} would be right", T::NAMES_RANK);
        return Err(ImportError::path(unknown.path(), problem));
    }
    items.sort_by_key(T::rank);
    if let Some(pair) = items.windows(2).find(|pair| pair[0].rank() == pair[1].rank()) {
        let (rank, other) = (pair[0].rank().unwrap_or(0), pair[0].path());
        let problem = format!("it and {other} are both of rank {rank}; one {what} of each rank would be right");
        return Err(ImportError::path(pair[1].path(), problem));
    }
    let world = items.iter().filter_map(T::world_size).max().map_or(n, |w| (w as usize).max(n));
    let missing = (0..world as u32).find(|rank| items.get(*rank as usize).and_then(T::rank) != Some(*rank));
    match missing {
        Some(rank) if n > 1 || world > 1 => Err(ImportError::path(
            path,
            format!("of {world} ranks there is no {what} of rank {rank}; one {what} of each rank would be right"),
        )),
        _ => Ok(items),
    }
}
