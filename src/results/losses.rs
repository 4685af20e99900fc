//! What the journal of a folder has lost, for everyone who reads the folder.
//!
//! Layer: results. Only looks: what is damaged stays as it is until a run goes on there, or `hyperfold recover` makes a folder of what is sound.

use std::path::Path;

use super::dir::{JOURNAL, in_use, regular};
use super::journal::{CUT_OFF, scan};
use crate::input;

/// A journal that is longer is read by those who need all of it, and not only to be looked through.
const MOST_BYTES: u64 = 1 << 30;

/// What the journal in `folder` has lost, in words; nothing where it is sound, or there is none.
pub fn losses(folder: &Path) -> Vec<String> {
    let mut told: Vec<String> = cut_off(folder).into_iter().collect();
    let path = folder.join(JOURNAL);
    let Ok(Some(1..=MOST_BYTES)) = regular(&path) else { return told };
    let looked = input::open_anywhere(&path).ok().map(|file| scan(&path, &file, &mut |_| Ok(())));
    match looked {
        // What is being written has no end yet.
        Some(Ok(scan)) if scan.is_only_cut && in_use(folder) => {}
        Some(Ok(scan)) => told.extend(scan.damage.map(|damage| {
            let folder = folder.display();
            format!(
                "{}: {damage} by `hyperfold run --resume`; `hyperfold recover {folder}` saves the rest",
                path.display()
            )
        })),
        Some(Err(error)) => told.push(error.to_string()),
        None => {}
    }
    told
}

/// What a run has cut off the journal in `folder`, in words.
pub fn cut_off(folder: &Path) -> Option<String> {
    let path = folder.join(CUT_OFF);
    let bytes = regular(&path).ok().flatten()?;
    Some(format!(
        "{}: it keeps {bytes} bytes that a run has cut off a damaged journal, and run again; remove it when nobody needs it",
        path.display()
    ))
}
