//! `journal.bin`: every finished experiment with all that the files show of it, and every evaluation of a search, appended as it finishes.
//!
//! Layer: results. The files of a run are made from its journal, so a run can continue from it (`--resume`), and folders can be joined by their journals
//! (`merge`). Format: sixteen bytes with its name and version, then records. A record is a mark (8 bytes), its length and its number (8 bytes each,
//! little-endian), a checksum (16 bytes) and its bytes. Numbers 0 and 1 are the [`RunIdentity`] as JSON, twice; each other one is an experiment or an
//! evaluation ([`super::journal_codec`]). The checksum is the first half of the SHA-256 of the run's key, the number, the length and the bytes; the key is half
//! the SHA-256 of the identity. So each record can be verified by itself, and belongs to this run at this place. Behind damage, reading continues at the next
//! valid record. Decides nothing: it reports its content.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::bytes::FieldNames;
use super::dir::regular;
use super::journal_codec::{JournalEntry, decode, encode, encode_look, lacking};
use super::journal_identity::RunIdentity;
use super::journal_sync::GroupCommit;
use super::record::{Finished, LookRecord};
use super::{ResultDir, ResultsError};
use hyperfold_base::{budget, input};

/// The first bytes of a journal: its name and its format's version.
const MAGIC: &[u8; 16] = b"hyperfold jrnl 2";
/// The first bytes of a record. The reader searches for them behind damage.
const MARK: &[u8; 8] = b"\xffrecord\n";
/// Size of a record's header, bytes: mark, length, number, checksum.
const HEAD: u64 = 40;
/// Maximum number of bytes that are searched without finding a valid record. A bad disk or a kill damages far less.
const MAX_SEARCHED: u64 = 512 << 20;
/// Length of records, in bytes, from which the checksum is verified before they are loaded.
const CHECKED_FIRST: u64 = 1 << 20;
/// Maximum number of bytes behind the last valid record that a run cuts off and keeps.
const MAX_CUT_OFF: u64 = 1 << 30;
/// Number of records that hold the identity of the journal's run.
const IDENTITIES: u64 = 2;
/// File that keeps what a run cuts off its journal.
pub(super) const CUT_OFF: &str = "journal-damaged.bin";

/// Half a SHA-256.
type Sum = [u8; 16];

/// Position of an experiment's bytes in a journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct JournalSpan {
    offset: u64,
    length: u64,
}

/// The result of scanning a journal.
pub(super) struct JournalScan {
    /// Whether it has the identity of its run. It has none if the run was killed before it was written.
    pub has_run: bool,
    /// Whether both records of the identity, and the bytes before them, are valid.
    beginning_is_whole: bool,
    /// Offset where the last valid record ends; appending continues there.
    sound: u64,
    /// Number of bytes behind that.
    tail: u64,
    key: Sum,
    identity: Vec<u8>,
    /// Fields that its records lack, because an earlier build wrote them.
    pub lacking: FieldNames,
    /// Number of the next record.
    next: u64,
    /// Description of what is damaged.
    pub damage: Option<String>,
    /// Whether the only damage is that the journal ends within a record.
    pub is_only_cut: bool,
}

/// The journal of a run in progress.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    end: u64,
    key: Sum,
    next: u64,
    commit: GroupCommit,
}

fn half(hash: Sha256) -> Sum {
    let mut sum = Sum::default();
    sum.copy_from_slice(&hash.finalize()[..16]);
    sum
}

/// Returns the key that makes the records of a run its own.
fn key_of(identity: &[u8]) -> Sum {
    half(Sha256::new().chain_update(identity))
}

fn checksum(key: &Sum, number: u64, bytes: &[u8]) -> Sum {
    let hash = Sha256::new().chain_update(key).chain_update(number.to_le_bytes());
    half(hash.chain_update((bytes.len() as u64).to_le_bytes()).chain_update(bytes))
}

/// A piece of a journal's content.
pub(super) enum JournalPiece {
    /// First: the identity of the run. Nothing else is read until this is accepted.
    Run(RunIdentity),
    /// Then the experiments, in the order in which they finished.
    Experiment(JournalSpan, Box<Finished>),
    /// Between them, evaluations of a search.
    Look(LookRecord),
}

/// A valid record.
struct Record {
    number: u64,
    bytes: Vec<u8>,
}

/// The result of reading a record.
enum Found {
    Sound(Record),
    /// A valid record of so many bytes, which does not fit into memory.
    TooLong(u64),
    /// The file ends before the record does, or seems to.
    Cut,
    Damaged,
}

fn too_long(bytes: u64, max_bytes: u64) -> String {
    format!(
        "a record has {} MiB, and at most {} MiB may be read (half of the memory that may be used)",
        bytes >> 20,
        max_bytes >> 20
    )
}

/// A reader of a journal.
struct Scanner<'a> {
    reader: BufReader<&'a File>,
    length: u64,
    /// Key of the run; known once the identity is.
    key: Option<Sum>,
    /// Lowest number that the next record may have.
    min_number: u64,
    /// Bytes that were searched without finding a valid record.
    in_vain: u64,
    /// Longest record that fits into memory, bytes.
    max_record_bytes: u64,
}

/// Returns how many bytes of memory a journal's record may take, one at a time.
fn max_record_bytes() -> u64 {
    budget::total() / 2
}

impl Scanner<'_> {
    /// Reads the record at `offset`.
    fn record(&mut self, offset: u64) -> io::Result<Found> {
        let left = self.length - offset;
        self.reader.seek(SeekFrom::Start(offset))?;
        let mut head = Vec::new();
        self.reader.by_ref().take(HEAD).read_to_end(&mut head)?;
        let is_mark = head.starts_with(MARK) || MARK.starts_with(&head);
        if !is_mark {
            return Ok(Found::Damaged);
        }
        if (head.len() as u64) < HEAD {
            return Ok(Found::Cut);
        }
        let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|k| head[i + k]));
        let (length, number) = (word(8), word(16));
        if length > left - HEAD {
            return Ok(Found::Cut);
        }
        if number < self.min_number {
            return Ok(Found::Damaged);
        }
        if number < IDENTITIES && length > input::max_table_bytes() {
            return Ok(Found::Damaged);
        }
        if number >= IDENTITIES && length > CHECKED_FIRST {
            if !self.is_sound(&head, number, length)? {
                return Ok(Found::Damaged);
            }
            if length > self.max_record_bytes {
                return Ok(Found::TooLong(length));
            }
            self.reader.seek(SeekFrom::Start(offset + HEAD))?;
        }
        let mut bytes = Vec::new();
        self.reader.by_ref().take(length).read_to_end(&mut bytes)?;
        let key = if number < IDENTITIES { Some(key_of(&bytes)) } else { self.key };
        let sound =
            bytes.len() as u64 == length && key.is_some_and(|key| checksum(&key, number, &bytes)[..] == head[24..]);
        self.in_vain += if sound { 0 } else { length };
        Ok(if sound { Found::Sound(Record { number, bytes }) } else { Found::Damaged })
    }

    /// Whether the checksum in `head` is that of the next `length` bytes. Keeps none of them.
    fn is_sound(&mut self, head: &[u8], number: u64, length: u64) -> io::Result<bool> {
        let Some(key) = self.key.filter(|_| self.in_vain <= MAX_SEARCHED) else { return Ok(false) };
        let mut hash = Sha256::new().chain_update(key).chain_update(number.to_le_bytes());
        hash.update(length.to_le_bytes());
        let mut left = length;
        while left > 0 {
            let piece = self.reader.fill_buf()?;
            let n = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if n == 0 {
                break;
            }
            hash.update(&piece[..n]);
            self.reader.consume(n);
            left -= n as u64;
        }
        let is_sound = left == 0 && half(hash)[..] == head[24..];
        self.in_vain += if is_sound { 0 } else { length - left };
        Ok(is_sound)
    }

    /// Returns the first valid record that begins at `from` or later, and its offset. Gives up after [`MAX_SEARCHED`].
    fn next_sound(&mut self, mut search_start: u64) -> io::Result<Option<(u64, Record)>> {
        const CHUNK: u64 = 1 << 16;
        while search_start + HEAD <= self.length && self.in_vain <= MAX_SEARCHED {
            self.in_vain += CHUNK;
            self.reader.seek(SeekFrom::Start(search_start))?;
            let mut chunk = Vec::new();
            self.reader.by_ref().take(CHUNK + MARK.len() as u64 - 1).read_to_end(&mut chunk)?;
            let mut next = 0;
            // Most damaged bytes are not the first byte of a mark.
            while let Some(i) = chunk[next..].iter().position(|byte| *byte == MARK[0]).map(|i| next + i) {
                next = i + 1;
                if !chunk[i..].starts_with(MARK) {
                    continue;
                }
                let offset = search_start + i as u64;
                match self.record(offset)? {
                    Found::Sound(record) => return Ok(Some((offset, record))),
                    Found::TooLong(bytes) => return Err(io::Error::other(too_long(bytes, self.max_record_bytes))),
                    Found::Cut | Found::Damaged => {}
                }
            }
            search_start += CHUNK;
        }
        Ok(None)
    }
}

/// Reads a journal from its start and passes its valid pieces to `take`.
///
/// # Errors
/// It cannot be read, is no journal or has another format, has no valid identity, or `take` refuses a piece.
pub(super) fn scan(
    path: &Path,
    file: &File,
    take: &mut dyn FnMut(JournalPiece) -> Result<(), ResultsError>,
) -> Result<JournalScan, ResultsError> {
    let unreadable = || ResultsError::unreadable(path);
    let foreign = || ResultsError::ForeignJournal(path.into());
    let length = file.metadata().map_err(unreadable())?.len();
    let mut scanner = Scanner {
        reader: BufReader::with_capacity(1 << 18, file),
        length,
        key: None,
        min_number: 0,
        in_vain: 0,
        max_record_bytes: max_record_bytes(),
    };
    scanner.reader.seek(SeekFrom::Start(0)).map_err(unreadable())?;
    let mut magic = Vec::new();
    scanner.reader.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(unreadable())?;
    let mut scan = JournalScan {
        has_run: false,
        beginning_is_whole: false,
        sound: 0,
        tail: length,
        key: Sum::default(),
        identity: Vec::new(),
        lacking: FieldNames::new(),
        next: IDENTITIES,
        damage: None,
        is_only_cut: false,
    };
    if magic.len() < MAGIC.len() {
        return if MAGIC.starts_with(&magic) { Ok(scan) } else { Err(foreign()) };
    }
    let (mut offset, mut damage, mut identities) = (MAGIC.len() as u64, Vec::new(), 0);
    if magic != MAGIC {
        damage.push("its first 16 bytes".to_string());
    }
    let mut cut = offset == length;
    while offset < length {
        let (start, record) = match scanner.record(offset).map_err(unreadable())? {
            Found::Sound(record) => (offset, record),
            Found::TooLong(bytes) => {
                return Err(unreadable()(io::Error::other(too_long(bytes, scanner.max_record_bytes))));
            }
            found => match scanner.next_sound(offset + 1).map_err(unreadable())? {
                Some((start, record)) => {
                    damage.push(format!("bytes {offset} to {}", start - 1));
                    (start, record)
                }
                None => {
                    cut = matches!(found, Found::Cut);
                    break;
                }
            },
        };
        let Record { number, bytes } = record;
        scanner.min_number = number + 1;
        if number < IDENTITIES {
            identities += 1;
            if !scan.has_run {
                scan.key = key_of(&bytes);
                scanner.key = Some(scan.key);
                scan.has_run = true;
                let run: RunIdentity = serde_json::from_slice(&bytes).map_err(|_| foreign())?;
                let lacking = lacking(&run.layout);
                take(JournalPiece::Run(run))?;
                scan.lacking = lacking.ok_or_else(foreign)?;
                scan.identity = bytes.clone();
            } else if key_of(&bytes) != scan.key {
                return Err(foreign());
            }
        } else {
            let span = JournalSpan { offset: start + HEAD, length: bytes.len() as u64 };
            take(match decode(&bytes, &scan.lacking).ok_or_else(foreign)? {
                JournalEntry::Experiment(finished) => JournalPiece::Experiment(span, finished),
                JournalEntry::Look(look) => JournalPiece::Look(look),
            })?;
        }
        scan.next = scanner.min_number.max(IDENTITIES);
        offset = start + HEAD + bytes.len() as u64;
        scan.sound = offset;
    }
    if !scan.has_run {
        // A run that was killed while it wrote its identity leaves the beginning of that, and nothing else.
        return if cut && magic == MAGIC { Ok(scan) } else { Err(foreign()) };
    }
    scan.beginning_is_whole = magic == MAGIC && identities == IDENTITIES;
    scan.tail = length - scan.sound;
    if scan.tail > 0 && !cut {
        let given_up = if scanner.in_vain > MAX_SEARCHED {
            format!(" (of which the first {} MiB were looked through)", MAX_SEARCHED >> 20)
        } else {
            String::new()
        };
        damage.push(format!("its last {} bytes{given_up}", scan.tail));
    }
    scan.is_only_cut = cut && damage.is_empty();
    let mut messages = Vec::new();
    if !damage.is_empty() {
        messages.push(format!("it is damaged: {}; what was there is run again", damage.join(", ")));
    }
    if cut {
        messages.push(format!(
            "it ends within a record, as after a kill; what its last {} bytes held is run again",
            scan.tail
        ));
    }
    scan.damage = (!messages.is_empty()).then(|| messages.join("; "));
    Ok(scan)
}

/// Reads the experiment at `span` of a journal whose records lack some fields.
///
/// # Errors
/// It cannot be read, or the file has been changed since.
pub(super) fn read_at(
    path: &Path,
    mut file: &File,
    span: JournalSpan,
    lacking: &FieldNames,
) -> Result<Finished, ResultsError> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(span.offset)).map_err(ResultsError::unreadable(path))?;
    file.take(span.length).read_to_end(&mut bytes).map_err(ResultsError::unreadable(path))?;
    match decode(&bytes, lacking) {
        Some(JournalEntry::Experiment(finished)) => Ok(*finished),
        _ => Err(ResultsError::Changed(path.into())),
    }
}

/// Returns a record as bytes, with its header.
fn entry(key: &Sum, number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(bytes.len() + HEAD as usize);
    entry.extend_from_slice(MARK);
    entry.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    entry.extend_from_slice(&number.to_le_bytes());
    entry.extend_from_slice(&checksum(key, number, bytes));
    entry.extend_from_slice(bytes);
    entry
}

/// Returns the first bytes of a run's journal, up to and including its identity.
fn beginning(identity: &[u8]) -> Vec<u8> {
    let key = key_of(identity);
    [MAGIC.as_slice(), &entry(&key, 0, identity), &entry(&key, 1, identity)].concat()
}

/// Appends the bytes of `file` from offset `start` on to the file [`CUT_OFF`].
fn keep_tail(dir: &ResultDir, path: &Path, mut file: &File, start: u64) -> Result<(), ResultsError> {
    let (kept, mut kept_file) = dir.continued_file(CUT_OFF)?;
    file.seek(SeekFrom::Start(start)).map_err(ResultsError::unreadable(path))?;
    io::copy(&mut file, &mut kept_file).and_then(|_| kept_file.sync_data()).map_err(ResultsError::io(kept))
}

impl Journal {
    /// Begins the journal of a new run, or continues that of an earlier one. Passes valid pieces to `take`, and cuts off a damaged end. Also returns a
    /// description of the damage.
    ///
    /// # Errors
    /// It belongs to another run, is not readable, or cannot be written.
    pub(super) fn open(
        dir: &ResultDir,
        run: &RunIdentity,
        take: &mut dyn FnMut(JournalPiece) -> Result<(), ResultsError>,
    ) -> Result<(Journal, Option<String>), ResultsError> {
        let (path, file) = dir.journal()?;
        let identity = serde_json::to_vec(run).map_err(|source| ResultsError::Json { path: path.clone(), source })?;
        let scan = scan(&path, &file, &mut |found| match found {
            JournalPiece::Run(earlier) => match run.differences(&earlier) {
                differences if differences.is_empty() => Ok(()),
                differences => Err(ResultsError::OtherRun { path: dir.path().into(), differences }),
            },
            other => take(other),
        })?;
        if !scan.has_run && regular(&dir.path().join("results.csv"))?.is_some() {
            // A run writes its identity before it creates any other file. So this journal has lost its beginning, and must not be cleared.
            return Err(ResultsError::ForeignJournal(path));
        }
        let sound = if scan.has_run { scan.sound } else { 0 };
        let mut damage = scan.damage.filter(|_| scan.has_run);
        if scan.has_run && scan.tail > MAX_CUT_OFF && !scan.is_only_cut {
            return Err(ResultsError::DamagedFar { path, bytes: scan.tail });
        }
        if scan.has_run && scan.tail > 0 {
            keep_tail(dir, &path, &file, sound)?;
            damage = damage.map(|text| format!("{text} (its end is kept in {CUT_OFF})"));
        }
        file.set_len(sound).map_err(ResultsError::io(&path))?;
        let identity = if scan.has_run { scan.identity } else { identity };
        let beginning = beginning(&identity);
        let mut end = sound;
        if scan.has_run && !scan.beginning_is_whole {
            // The valid copy of the identity gives all bytes of the beginning.
            let mut writer = OpenOptions::new().write(true).open(&path).map_err(ResultsError::io(&path))?;
            writer.write_all(&beginning).and_then(|()| writer.sync_data()).map_err(ResultsError::io(&path))?;
            end = end.max(beginning.len() as u64);
            damage = damage.map(|text| format!("{text}; its beginning is mended"));
        }
        let commit = file.try_clone().and_then(GroupCommit::new).map_err(ResultsError::io(&path))?;
        let mut journal = Journal { path, file, end, key: key_of(&identity), next: scan.next, commit };
        if !scan.has_run {
            journal.write(&beginning)?;
        }
        Ok((journal, damage))
    }

    /// Appends an experiment. When this returns, the experiment survives a kill of the process; soon after, it survives a loss of power too.
    ///
    /// # Errors
    /// It cannot be written. The journal then ends where it ended before, or within this record.
    pub(super) fn append(&mut self, finished: &Finished) -> Result<JournalSpan, ResultsError> {
        self.push(&encode(finished))
    }

    /// Appends an evaluation of a search, as safely.
    ///
    /// # Errors
    /// Fails as [`Journal::append`] does.
    pub(super) fn append_look(&mut self, look: &LookRecord) -> Result<(), ResultsError> {
        self.push(&encode_look(look)).map(drop)
    }

    /// Reads the experiment at `span`.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(&self, span: JournalSpan) -> Result<Finished, ResultsError> {
        // A run only goes on in a journal of its own layout.
        read_at(&self.path, &self.file, span, &FieldNames::new())
    }

    /// Flushes and closes the journal.
    ///
    /// # Errors
    /// A flush failed.
    pub(super) fn close(self) -> Result<(), ResultsError> {
        self.commit.close().map_err(ResultsError::io(&self.path))
    }

    fn push(&mut self, bytes: &[u8]) -> Result<JournalSpan, ResultsError> {
        let offset = self.end + HEAD;
        self.write(&entry(&self.key, self.next, bytes))?;
        self.next += 1;
        Ok(JournalSpan { offset, length: bytes.len() as u64 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ResultsError> {
        self.file.write_all(bytes).map_err(ResultsError::io(&self.path))?;
        self.end += bytes.len() as u64;
        self.commit.appended().map_err(ResultsError::io(&self.path))
    }
}
