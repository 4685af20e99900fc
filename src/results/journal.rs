//! `journal.bin`: every finished experiment with all that the files show of it, and every look of a search, appended as it finishes.
//!
//! Layer: results. The files of a run are made of its journal, so a run can go on from it (`--resume`), and folders can be joined by
//! theirs (`merge`). Format: sixteen bytes that name it and its version, then records. A record is its length (8 bytes, little-endian), a
//! checksum (16 bytes) and its bytes; the first is the [`RunIdentity`] as JSON, each other one experiment or one look ([`super::journal_codec`]). The
//! checksum is the first half of the SHA-256 of the checksum before, the length and the bytes. So a record is sound only if all before it
//! are: whatever is damaged, cut or out of place, reading stops there, and what follows is run again. Decides nothing about that: it says
//! what it holds.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::dir::regular;
use super::journal_codec::{Entry, decode, encode, encode_look};
use super::journal_identity::RunIdentity;
use super::journal_sync::GroupCommit;
use super::record::{Finished, LookRecord};
use super::{ResultDir, ResultsError};

/// What a journal begins with: its name and its format's version.
const MAGIC: &[u8; 16] = b"hyperfold jrnl 1";
/// Bytes before a record's own.
const HEAD: u64 = 24;

/// Half a SHA-256.
type Sum = [u8; 16];

/// Where in a journal the bytes of an experiment lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    at: u64,
    length: u64,
}

/// What a look through a journal finds.
pub(super) struct Scan {
    /// Whether it says whose it is; not where the run was killed before it could.
    pub has_run: bool,
    /// Bytes that are sound; appending goes on there.
    sound: u64,
    sum: Sum,
    /// In words, what is wrong with the bytes that follow.
    pub damage: Option<String>,
}

/// The journal of a run that goes on.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    end: u64,
    sum: Sum,
    commit: GroupCommit,
}

fn sum(before: &Sum, bytes: &[u8]) -> Sum {
    let hash = Sha256::new()
        .chain_update(before)
        .chain_update((bytes.len() as u64).to_le_bytes())
        .chain_update(bytes)
        .finalize();
    let mut sum = Sum::default();
    sum.copy_from_slice(&hash[..16]);
    sum
}

/// What a journal holds, piece by piece.
pub(super) enum Found {
    /// First: whose it is. Nothing else is read until this was accepted.
    Run(RunIdentity),
    /// Then the experiments, in the order they finished.
    Experiment(Span, Box<Finished>),
    /// Among them what a search found.
    Look(LookRecord),
}

/// Reads a journal from its start and hands over what is sound of it.
///
/// # Errors
/// It cannot be read, is no journal or another format's, its first record is damaged, or `take` refuses.
pub(super) fn scan(
    path: &Path,
    file: &File,
    take: &mut dyn FnMut(Found) -> Result<(), ResultsError>,
) -> Result<Scan, ResultsError> {
    let unreadable = || ResultsError::unreadable(path);
    let foreign = || ResultsError::ForeignJournal(path.into());
    let length = file.metadata().map_err(unreadable())?.len();
    let mut reader = BufReader::with_capacity(1 << 18, file);
    reader.seek(SeekFrom::Start(0)).map_err(unreadable())?;
    let mut magic = Vec::new();
    reader.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(unreadable())?;
    if !MAGIC.starts_with(&magic) {
        return Err(foreign());
    }
    let mut scan = Scan { has_run: false, sound: 0, sum: *MAGIC, damage: None };
    if magic.len() < MAGIC.len() {
        return Ok(scan);
    }
    scan.sound = MAGIC.len() as u64;
    while scan.sound < length {
        let left = length - scan.sound;
        let (bytes, sum) = match record(&mut reader, left, &scan.sum).map_err(unreadable())? {
            Next::Sound(bytes, sum) => (bytes, sum),
            Next::Cut => {
                scan.damage = Some(format!(
                    "it ends within a record, as after a kill; its last {left} bytes are dropped, and what they held is run again"
                ));
                break;
            }
            Next::Damaged if !scan.has_run => return Err(foreign()),
            Next::Damaged => {
                scan.damage = Some(format!(
                    "it is damaged at byte {}; its last {left} bytes are dropped, and what they held is run again",
                    scan.sound
                ));
                break;
            }
        };
        if scan.has_run {
            let span = Span { at: scan.sound + HEAD, length: bytes.len() as u64 };
            take(match decode(&bytes).ok_or_else(foreign)? {
                Entry::Experiment(finished) => Found::Experiment(span, finished),
                Entry::Look(look) => Found::Look(look),
            })?;
        } else {
            take(Found::Run(serde_json::from_slice(&bytes).map_err(|_| foreign())?))?;
            scan.has_run = true;
        }
        scan.sum = sum;
        scan.sound += HEAD + bytes.len() as u64;
    }
    Ok(scan)
}

/// What is read where a record should be.
enum Next {
    Sound(Vec<u8>, Sum),
    /// The file ends before the record does.
    Cut,
    Damaged,
}

fn record(reader: &mut impl Read, left: u64, before: &Sum) -> io::Result<Next> {
    if left < HEAD {
        return Ok(Next::Cut);
    }
    let (mut length, mut stored) = ([0; 8], Sum::default());
    reader.read_exact(&mut length)?;
    reader.read_exact(&mut stored)?;
    let length = u64::from_le_bytes(length);
    if length > left - HEAD {
        return Ok(Next::Cut);
    }
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes)?;
    let sum = sum(before, &bytes);
    Ok(if bytes.len() as u64 == length && sum == stored { Next::Sound(bytes, sum) } else { Next::Damaged })
}

/// The experiment at `span`.
///
/// # Errors
/// It cannot be read, or somebody has changed the file since.
pub(super) fn read_at(path: &Path, mut file: &File, span: Span) -> Result<Finished, ResultsError> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(span.at)).map_err(ResultsError::unreadable(path))?;
    file.take(span.length).read_to_end(&mut bytes).map_err(ResultsError::unreadable(path))?;
    match decode(&bytes) {
        Some(Entry::Experiment(finished)) => Ok(*finished),
        _ => Err(ResultsError::Changed(path.into())),
    }
}

/// Writes a journal's beginning anew where nothing but that is damaged. What it was is known, since it says whose the journal is; that this is it, the checksum of the record
/// behind it proves, which covers it. Says so in words if something was done. PRECONDITION: `file` is `path`, and locked.
fn mend_beginning(path: &Path, mut file: &File, identity: &[u8]) -> Result<Option<String>, ResultsError> {
    let unreadable = || ResultsError::unreadable(path);
    let first = sum(MAGIC, identity);
    let beginning = [MAGIC.as_slice(), &entry(&first, identity)].concat();
    let length = file.metadata().map_err(unreadable())?.len();
    let Some(left) = length.checked_sub(beginning.len() as u64) else { return Ok(None) };
    file.seek(SeekFrom::Start(0)).map_err(unreadable())?;
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut found = vec![0; beginning.len()];
    reader.read_exact(&mut found).map_err(unreadable())?;
    if found == beginning || !matches!(record(&mut reader, left, &first).map_err(unreadable())?, Next::Sound(..)) {
        return Ok(None);
    }
    // The journal's own handle can only append.
    let mut writer = OpenOptions::new().write(true).open(path).map_err(ResultsError::io(path))?;
    writer.write_all(&beginning).and_then(|()| writer.sync_data()).map_err(ResultsError::io(path))?;
    Ok(Some("its beginning was damaged and is mended; nothing is lost".into()))
}

/// A record with what stands before it.
fn entry(sum: &Sum, bytes: &[u8]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(bytes.len() + HEAD as usize);
    entry.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    entry.extend_from_slice(sum);
    entry.extend_from_slice(bytes);
    entry
}

impl Journal {
    /// Begins the journal of a new run, or goes on with that of an earlier one: `take` gets what it holds, and what is not sound
    /// is cut off. Also in words, what was.
    ///
    /// # Errors
    /// It belongs to another run, is not readable, or cannot be written.
    pub fn open(
        dir: &ResultDir,
        run: &RunIdentity,
        take: &mut dyn FnMut(Found) -> Result<(), ResultsError>,
    ) -> Result<(Journal, Option<String>), ResultsError> {
        let (path, file) = dir.journal()?;
        let identity = serde_json::to_vec(run).map_err(|source| ResultsError::Json { path: path.clone(), source })?;
        let mended = mend_beginning(&path, &file, &identity)?;
        let scan = scan(&path, &file, &mut |found| match found {
            Found::Run(earlier) => match run.differences(&earlier) {
                differences if differences.is_empty() => Ok(()),
                differences => Err(ResultsError::OtherRun { path: dir.path().into(), differences }),
            },
            other => take(other),
        })?;
        if !scan.has_run && regular(&dir.path().join("results.csv"))?.is_some() {
            // A run says whose its journal is before it makes any other file: this one has lost its beginning, and is not ours to clear.
            return Err(ResultsError::ForeignJournal(path));
        }
        let (sound, sum) = if scan.has_run { (scan.sound, scan.sum) } else { (0, *MAGIC) };
        file.set_len(sound).map_err(ResultsError::io(&path))?;
        let commit = file.try_clone().and_then(GroupCommit::new).map_err(ResultsError::io(&path))?;
        let mut journal = Journal { path, file, end: sound, sum, commit };
        if !scan.has_run {
            journal.write(MAGIC)?;
            journal.push(&identity)?;
        }
        let damage: Vec<String> = mended.into_iter().chain(scan.damage.filter(|_| scan.has_run)).collect();
        Ok((journal, (!damage.is_empty()).then(|| damage.join("; "))))
    }

    /// Appends an experiment. When this returns, a kill of the process loses it no more; soon after, a loss of power does not either.
    ///
    /// # Errors
    /// It cannot be written; the journal then ends where it ended before, or within this record.
    pub fn append(&mut self, finished: &Finished) -> Result<Span, ResultsError> {
        self.push(&encode(finished))
    }

    /// Appends what a search found, as safely.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn append_look(&mut self, look: &LookRecord) -> Result<(), ResultsError> {
        self.push(&encode_look(look)).map(drop)
    }

    /// The experiment at `span`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, span: Span) -> Result<Finished, ResultsError> {
        read_at(&self.path, &self.file, span)
    }

    /// Flushes it.
    ///
    /// # Errors
    /// A flush failed.
    pub fn close(self) -> Result<(), ResultsError> {
        self.commit.close().map_err(ResultsError::io(&self.path))
    }

    fn push(&mut self, bytes: &[u8]) -> Result<Span, ResultsError> {
        let sum = sum(&self.sum, bytes);
        let at = self.end + HEAD;
        self.write(&entry(&sum, bytes))?;
        self.sum = sum;
        Ok(Span { at, length: bytes.len() as u64 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ResultsError> {
        self.file.write_all(bytes).map_err(ResultsError::io(&self.path))?;
        self.end += bytes.len() as u64;
        self.commit.appended().map_err(ResultsError::io(&self.path))
    }
}
