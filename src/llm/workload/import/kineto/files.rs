//! Which file belongs to which rank.
//!
//! Layer: workload. It lists folders and reads no trace.

use std::path::{Path, PathBuf};

use super::events::KinetoTrace;
use super::rank_program::RankProgram;
use crate::workload::import::ImportError;
use hyperfold_base::input;

/// The `.json` files that a path names, in alphabetical order: those of a folder, or the one file.
///
/// # Errors
/// The path cannot be read.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, ImportError> {
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
        return Err(ImportError::path(&packed, "it is compressed; unpack the traces with gunzip"));
    }
    found.sort();
    Ok(found)
}

/// The rank of a trace: what it says itself, else the number after `rank` in its file's name, else the last number there.
pub(super) fn rank_of(path: &str, trace: &KinetoTrace) -> Option<u32> {
    if trace.rank.is_some() {
        return trace.rank;
    }
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

/// Programs in the order of their ranks, which count from 0 without gaps.
pub(super) fn in_order(
    path: &str,
    mut programs: Vec<RankProgram>,
    ranks: Option<u32>,
) -> Result<Vec<RankProgram>, ImportError> {
    let n = programs.len();
    if let Some(ranks) = ranks.filter(|ranks| *ranks as usize != n) {
        let problem = format!("there are traces of {n} ranks; only a single trace can stand for more");
        return Err(ImportError::Ranks { path: path.to_string(), ranks, problem });
    }
    if n > 1
        && let Some(unknown) = programs.iter().find(|p| p.rank.is_none())
    {
        let problem = "it does not say its rank; distributedInfo.rank, or a name that ends in the rank, would be right";
        return Err(ImportError::path(&unknown.path, problem));
    }
    programs.sort_by_key(|p| p.rank);
    if let Some(pair) = programs.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
        let rank = pair[0].rank.unwrap_or(0);
        let problem = format!("it and {} are both of rank {rank}; one trace of each rank would be right", pair[0].path);
        return Err(ImportError::path(&pair[1].path, problem));
    }
    let world = programs.iter().filter_map(|p| p.world_size).max().map_or(n, |w| (w as usize).max(n));
    let missing = (0..world as u32).find(|rank| programs.get(*rank as usize).and_then(|p| p.rank) != Some(*rank));
    match missing {
        Some(rank) if n > 1 || world > 1 => Err(ImportError::path(
            path,
            format!("of {world} ranks there is no trace of rank {rank}; one trace of each rank would be right"),
        )),
        _ => Ok(programs),
    }
}
