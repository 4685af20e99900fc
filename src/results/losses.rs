//! Describes what the journal of a folder has lost, for every reader of the folder.
//!
//! Layer: results. Only reads: a damaged journal stays as it is until a run continues there, or `hyperfold recover` saves its valid part in another folder.

use std::path::Path;

use super::dir::{JOURNAL, in_use, regular};
use super::journal::{CUT_OFF, scan};
use hyperfold_base::input;

/// Length of a journal, in bytes, from which it is not scanned only to look for losses.
const MAX_BYTES: u64 = 1 << 30;

/// Describes what the journal in `folder` has lost; empty if it is valid, or there is none.
pub fn losses(folder: &Path) -> Vec<String> {
    let mut messages: Vec<String> = cut_off(folder).into_iter().collect();
    let path = folder.join(JOURNAL);
    let Ok(Some(1..=MAX_BYTES)) = regular(&path) else { return messages };
    let looked = input::open_anywhere(&path).ok().map(|file| scan(&path, &file, &mut |_| Ok(())));
    match looked {
        // A journal in use may end within a record.
        Some(Ok(scan)) if scan.is_only_cut && in_use(folder) => {}
        Some(Ok(scan)) => messages.extend(scan.damage.map(|damage| {
            let folder = folder.display();
            format!(
                "{}: {damage} by `hyperfold run --resume`; `hyperfold recover {folder}` saves the rest",
                path.display()
            )
        })),
        Some(Err(error)) => messages.push(error.to_string()),
        None => {}
    }
    messages
}

/// Describes what a run has cut off the journal in `folder`.
pub fn cut_off(folder: &Path) -> Option<String> {
    let path = folder.join(CUT_OFF);
    let bytes = regular(&path).ok().flatten()?;
    Some(format!(
        "{}: it keeps {bytes} bytes that a run has cut off a damaged journal, and run again; remove it when nobody needs it",
        path.display()
    ))
}
