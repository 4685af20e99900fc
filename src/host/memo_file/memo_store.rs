//! The memo on disk: what runs learnt, for later runs. It is one file. Reads take no lock. Writes only append, briefly and under a lock, so runs that share the
//! file neither wait long for each other nor undo each other's work. A memo that was cut off or changed is set aside, and what is left of it goes into a new
//! one. A file that never was a memo is left alone.
//!
//! Layer: host. Nothing here changes a result: records that cannot be read are simulated again, records that cannot be written are lost. Failures are
//! warnings, never errors.
//!
//! Why no database: the embedded ones in Rust open a file for one process at a time, but shards of a sweep share it, on cluster file systems too. The record of
//! an episode never changes, so appending checked records is enough.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};

use crate::memo_file::memo_store_file::{self as format, FileNumber, HEADER, MemoFileEntry, MemoFileScan};
use hyperfold_fold::{BackingStore, Memo, MemoNodeId, Unsaved, Version, version};

/// Warning about a damaged record. It is dropped once the file is mended, as that warning says more.
const UNREADABLE: &str = "some of it cannot be read any more and is simulated again";
/// The file's name in a folder.
const FILE_NAME: &str = "episodes.memo";
/// Bytes of records that one write adds.
const SEGMENT_BYTES: usize = 16 << 20;
/// Time between attempts to take a lock that another process holds.
const LOOK: Duration = Duration::from_millis(10);
/// How long opening waits for a process that is writing.
const WAIT_TO_OPEN: Duration = Duration::from_secs(2);

/// A reason why an operation on the file failed.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("another process is writing it")]
    Busy,
    #[error("it is no memo")]
    Foreign,
    #[error("{what}: {error}")]
    Io { what: &'static str, error: io::Error },
}

fn cannot(what: &'static str) -> impl Fn(io::Error) -> Trouble {
    move |error| Trouble::Io { what, error }
}

/// The memo in one file.
pub struct MemoStore {
    path: PathBuf,
    /// Most bytes that the file may have; the least recently used records go first.
    limit: u64,
    version: Version,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The file that `index` describes. Another process may have put a new one in its place.
    file: Option<File>,
    number: FileNumber,
    scanned: u64,
    index: HashMap<MemoNodeId, Vec<MemoFileEntry>>,
    /// The records in `index` that other processes added after this one began.
    foreign: HashMap<MemoNodeId, Vec<MemoFileEntry>>,
    /// Roots that were asked for and found.
    used: BTreeSet<MemoNodeId>,
    /// The latest generation in the file.
    latest: u64,
    own: Option<u64>,
    /// Whether a record was found damaged.
    damaged: bool,
    /// Bytes of the memo when it was last published.
    published: u64,
    warnings: Vec<String>,
}

/// Returns the memo's file for the `path` that the user gives: that file, or one in that folder.
fn file_of(path: &Path) -> PathBuf {
    let is_folder = path.is_dir() || path.as_os_str().to_string_lossy().ends_with(std::path::is_separator);
    let file = if is_folder { path.join(FILE_NAME) } else { path.to_path_buf() };
    // Processes that use a link and those that use the file must meet, and the file itself is what is set aside.
    if file.is_symlink() { file.canonicalize().unwrap_or(file) } else { file }
}

/// Returns the path of a file that stands where the memo at `path` would be and never was a memo; it must not be touched. `None`: there is a memo, or nothing,
/// or it cannot be read.
pub fn somebody_elses(path: &Path) -> Option<PathBuf> {
    let file = file_of(path);
    // A device or a pipe is not a memo of ours, and opening one may block for ever.
    let is_file = std::fs::metadata(&file).map_or(true, |what| what.is_file());
    let is_ours = is_file && File::open(&file).and_then(|mut open| format::begins_as_one(&mut open)).unwrap_or(true);
    (!is_ours).then_some(file)
}

impl MemoStore {
    /// Opens the memo at `path`, a file or a folder, which need not exist. `limit`: most bytes that it may have.
    pub fn open(path: &Path, limit: u64) -> MemoStore {
        MemoStore::open_as(path, limit, version())
    }

    /// Opens the memo for a version of the program. Records of other versions stay in the file, unused, as long as there is room.
    pub fn open_as(path: &Path, limit: u64, version: Version) -> MemoStore {
        let store = MemoStore { path: file_of(path), limit, version, inner: Mutex::default() };
        {
            let mut inner = store.inner();
            let open = |inner: &mut Inner| match store.lock(WAIT_TO_OPEN) {
                Ok(_lock) => store.look(inner).and_then(|()| store.mend(inner, None)),
                // If the file cannot be written, it may still be readable.
                Err(_) => store.look(inner),
            };
            let opened = if somebody_elses(&store.path).is_some() { Err(Trouble::Foreign) } else { open(&mut inner) };
            inner.foreign.clear();
            if let Err(trouble) = opened {
                store.warn(&mut inner, &format!("nothing of it is used: {trouble}"));
            }
        }
        store
    }

    /// Adds what `memo` has learnt since the last call, waiting at most `wait` for other processes. `last`: this run adds nothing more. Returns whether
    /// everything is on disk now. PRECONDITION: one thread at a time.
    pub fn publish(&self, memo: &Memo, wait: Duration, last: bool) -> bool {
        let bytes = memo.bytes();
        {
            let inner = self.inner();
            let is_crowded = inner.scanned > self.limit / 2;
            if bytes == inner.published && !inner.damaged && !(last && is_crowded && !inner.used.is_empty()) {
                return true;
            }
        }
        match self.add(memo, wait, last) {
            Ok(()) => {
                self.inner().published = bytes;
                true
            }
            Err(trouble) => {
                if last {
                    self.warn(&mut self.inner(), &format!("what this run has learnt is not kept: {trouble}"));
                }
                false
            }
        }
    }

    /// Takes the warnings for the user; each is returned once.
    pub fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().warnings)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn add(&self, memo: &Memo, wait: Duration, last: bool) -> Result<(), Trouble> {
        if somebody_elses(&self.path).is_some() {
            return Err(Trouble::Foreign);
        }
        let _lock = self.lock(wait)?;
        let (foreign, generation) = {
            let mut inner = self.inner();
            self.look(&mut inner)?;
            self.mend(&mut inner, None)?;
            if inner.file.is_none() {
                self.replace(&mut inner, None, |_| Ok(()))?;
            }
            let next = inner.latest + 1;
            (std::mem::take(&mut inner.foreign), *inner.own.get_or_insert(next))
        };
        // CORRECTNESS: threads that simulate may wait for `inner` while they hold a node, so do not call the memo while holding `inner`.
        memo.is_known(|root| {
            foreign.get(root).map_or_else(Vec::new, |entries| records(self.inner().file.as_mut(), entries).0)
        });
        let mut batch: Vec<Unsaved> = Vec::new();
        let mut written = Ok(());
        memo.each_unsaved(|unsaved| {
            batch.push(unsaved);
            if written.is_ok() && batch.iter().map(|u| u.record.len()).sum::<usize>() >= SEGMENT_BYTES {
                written = self.append(generation, std::mem::take(&mut batch), &[]);
            }
        });
        written?;
        // What was used only matters if something may have to go.
        let is_crowded = self.inner().scanned > self.limit / 2;
        let used: Vec<MemoNodeId> =
            if last && is_crowded { self.inner().used.iter().copied().collect() } else { Vec::new() };
        if !batch.is_empty() || !used.is_empty() {
            self.append(generation, batch, &used)?;
        }
        let mut inner = self.inner();
        if inner.scanned > self.limit {
            let kept = self.worth_keeping()?;
            self.mend(&mut inner, Some(&kept))?;
        }
        Ok(())
    }

    /// Appends a segment. PRECONDITION: the lock is held, and `inner` has read everything in the file.
    fn append(&self, generation: u64, batch: Vec<Unsaved>, used: &[MemoNodeId]) -> Result<(), Trouble> {
        let mut records = Vec::with_capacity(batch.len());
        let mut done = Vec::with_capacity(batch.len());
        for mut unsaved in batch {
            records.push((unsaved.root, std::mem::take(&mut unsaved.record)));
            done.push(unsaved);
        }
        let bytes = format::segment(&self.version, generation, &records, used);
        let end = self.inner().scanned;
        let mut file = OpenOptions::new().write(true).open(&self.path).map_err(cannot("cannot write it"))?;
        file.seek(SeekFrom::Start(end)).map_err(cannot("cannot write it"))?;
        if let Err(error) = file.write_all(&bytes).and_then(|()| file.sync_data()) {
            // A partial segment would be taken for damage; if truncating fails, it will be.
            let _ = file.set_len(end);
            return Err(cannot("cannot write it")(error));
        }
        {
            let mut inner = self.inner();
            inner.scanned = end + bytes.len() as u64;
            inner.latest = inner.latest.max(generation);
        }
        done.into_iter().for_each(Unsaved::is_saved);
        Ok(())
    }

    /// Reads the index of the file: all of it if it is not the file that was read last, else only what was appended.
    fn look(&self, inner: &mut Inner) -> Result<(), Trouble> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                *inner = Inner {
                    used: std::mem::take(&mut inner.used),
                    own: inner.own,
                    published: inner.published,
                    warnings: std::mem::take(&mut inner.warnings),
                    ..Inner::default()
                };
                return Ok(());
            }
            Err(e) => return Err(cannot("cannot open it")(e)),
        };
        let number = format::read_header(&mut file).map_err(cannot("cannot read it"))?;
        let is_same = inner.file.is_some() && number == Some(inner.number);
        let scan = match number {
            Some(_) => format::scan(&mut file, if is_same { inner.scanned } else { HEADER })
                .map_err(cannot("cannot read it"))?,
            None => MemoFileScan::default(),
        };
        if !is_same {
            inner.index.clear();
            inner.foreign.clear();
            inner.damaged = false;
        }
        let len = file.seek(SeekFrom::End(0)).map_err(cannot("cannot read it"))?;
        inner.damaged |= scan.damaged || (number.is_some() && len < scan.end);
        for segment in scan.segments {
            inner.latest = inner.latest.max(segment.generation);
            for entry in segment.entries.into_iter().filter(|_| segment.version == self.version) {
                inner.index.entry(entry.root).or_default().push(entry);
                inner.foreign.entry(entry.root).or_default().push(entry);
            }
        }
        (inner.number, inner.scanned) = (number.unwrap_or_default(), scan.end);
        inner.file = number.is_some().then_some(file);
        Ok(())
    }

    /// Rewrites the file if it is damaged, or in order to keep only the roots in `keep`. PRECONDITION: the lock is held.
    fn mend(&self, inner: &mut Inner, keep: Option<&BTreeSet<(Version, MemoNodeId)>>) -> Result<(), Trouble> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(cannot("cannot open it")(e)),
        };
        let len = file.seek(SeekFrom::End(0)).map_err(cannot("cannot read it"))?;
        let is_ours = format::read_header(&mut file).map_err(cannot("cannot read it"))?.is_some();
        // A process was stopped before the first byte, or created an empty file to be filled.
        let is_empty = len == 0;
        let is_torn = is_ours && len > inner.scanned;
        if keep.is_none() && is_ours && !is_torn && !inner.damaged {
            return Ok(());
        }
        let scan = if is_empty {
            MemoFileScan::default()
        } else {
            format::scan(&mut file, HEADER).map_err(cannot("cannot read it"))?
        };
        let (mut kept, mut lost) = (0usize, 0usize);
        let write = |new: &mut File| {
            for segment in scan.segments.iter().chain(&scan.torn) {
                let wanted: Vec<MemoFileEntry> = segment
                    .entries
                    .iter()
                    .filter(|e| keep.is_none_or(|keep| keep.contains(&(segment.version, e.root))))
                    .copied()
                    .collect();
                let (records, missing) = named_records(&mut file, &wanted);
                kept += records.len();
                lost += missing;
                if !records.is_empty() {
                    new.write_all(&format::segment(&segment.version, segment.generation, &records, &segment.used))?;
                }
            }
            Ok(())
        };
        let aside = (keep.is_none() && !is_empty).then(|| free_name(&self.path));
        self.replace(inner, aside.as_deref(), write)?;
        if let Some(aside) = aside {
            let what = if is_ours { "it was cut off or changed" } else { "its beginning is damaged" };
            let lost_note = if lost > 0 {
                format!(", {lost} {} lost", if lost == 1 { "is" } else { "are" })
            } else {
                String::new()
            };
            let kept = if kept == 1 { "1 record is kept".into() } else { format!("{kept} records are kept") };
            inner.warnings.retain(|warning| !warning.ends_with(UNREADABLE));
            self.warn(
                inner,
                &format!("{what}; {kept}{lost_note}; it is set aside as {} and made anew", aside.display()),
            );
        }
        Ok(())
    }

    /// Replaces the file by a new one, filled by `write`. The old one is renamed to `aside`, or deleted. PRECONDITION: the lock is held.
    fn replace(
        &self,
        inner: &mut Inner,
        aside: Option<&Path>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), Trouble> {
        // Writers hold the lock, so one temporary name is enough, and the leftovers of a killed process are overwritten.
        let new = with_suffix(&self.path, ".new");
        let mut file = File::create(&new).map_err(cannot("cannot write beside it"))?;
        let written = format::write_header(&mut file, new_number()).and_then(|()| write(&mut file));
        written.and_then(|()| file.sync_all()).map_err(cannot("cannot write beside it"))?;
        if let Some(aside) = aside {
            fs::rename(&self.path, aside).map_err(cannot("cannot set it aside"))?;
        }
        // Close the file before it is replaced: some systems do not replace open files.
        inner.file = None;
        fs::rename(&new, &self.path).map_err(cannot("cannot put it in place"))?;
        self.look(inner)
    }

    /// Returns the roots to keep of a file that is too large: first those of this version, the most recently used first, up to three quarters of the limit.
    fn worth_keeping(&self) -> Result<BTreeSet<(Version, MemoNodeId)>, Trouble> {
        let mut file = File::open(&self.path).map_err(cannot("cannot open it"))?;
        let scan = format::scan(&mut file, HEADER).map_err(cannot("cannot read it"))?;
        let mut uses: BTreeMap<(Version, MemoNodeId), (u64, u64)> = BTreeMap::new();
        for segment in &scan.segments {
            for entry in &segment.entries {
                let (last, bytes) = uses.entry((segment.version, entry.root)).or_default();
                *last = segment.generation.max(*last);
                *bytes += entry.len;
            }
        }
        for segment in &scan.segments {
            for root in &segment.used {
                if let Some((last, _)) = uses.get_mut(&(segment.version, *root)) {
                    *last = segment.generation.max(*last);
                }
            }
        }
        let mut order: Vec<(bool, u64, u64, (Version, MemoNodeId))> =
            uses.into_iter().map(|(key, (last, bytes))| (key.0 == self.version, last, bytes, key)).collect();
        order.sort_unstable_by_key(|root| std::cmp::Reverse((root.0, root.1, root.3)));
        let max_bytes = self.limit / 4 * 3;
        let mut used = HEADER;
        let kept: BTreeSet<(Version, MemoNodeId)> = order
            .into_iter()
            .take_while(|&(_, _, bytes, _)| {
                used += bytes + 56;
                used <= max_bytes
            })
            .map(|o| o.3)
            .collect();
        Ok(kept)
    }

    /// Takes the lock for writers, or gives up after `wait`.
    fn lock(&self, wait: Duration) -> Result<File, Trouble> {
        if let Some(folder) = self.path.parent().filter(|f| !f.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(cannot("cannot create its folder"))?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(with_suffix(&self.path, ".lock"))
            .map_err(cannot("cannot create its lock"))?;
        let end = Instant::now() + wait;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(LOOK),
                Err(fs::TryLockError::WouldBlock) => return Err(Trouble::Busy),
                Err(fs::TryLockError::Error(error)) => return Err(cannot("cannot lock it")(error)),
            }
        }
    }

    fn warn(&self, inner: &mut Inner, what: &str) {
        inner.warnings.push(format!("memo {}: {what}", self.path.display()));
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // After a panic the index is at worst incomplete.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BackingStore for MemoStore {
    fn fetch(&self, root: &MemoNodeId) -> Vec<Vec<u8>> {
        let mut inner = self.inner();
        let Some(entries) = inner.index.get(root).cloned() else { return Vec::new() };
        let (records, missing) = records(inner.file.as_mut(), &entries);
        if missing > 0 && !inner.damaged {
            inner.damaged = true;
            self.warn(&mut inner, UNREADABLE);
        }
        if !records.is_empty() {
            inner.used.insert(*root);
        }
        records
    }
}

/// Reads records of a file. Returns them and the number of damaged or missing ones.
fn records(file: Option<&mut File>, entries: &[MemoFileEntry]) -> (Vec<Vec<u8>>, usize) {
    let Some(file) = file else { return (Vec::new(), entries.len()) };
    let (named, missing) = named_records(file, entries);
    (named.into_iter().map(|(_, record)| record).collect(), missing)
}

fn named_records(file: &mut File, entries: &[MemoFileEntry]) -> (Vec<(MemoNodeId, Vec<u8>)>, usize) {
    let found: Vec<(MemoNodeId, Vec<u8>)> =
        entries.iter().filter_map(|e| Some((e.root, format::record(file, e).ok().flatten()?))).collect();
    let missing = entries.len() - found.len();
    (found, missing)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the first free name of the form `NAME.corrupt-N`.
fn free_name(path: &Path) -> PathBuf {
    (1u32..)
        .map(|n| with_suffix(path, &format!(".corrupt-{n}")))
        .find(|p| !p.exists())
        .unwrap_or_else(|| with_suffix(path, ".corrupt"))
}

/// Returns a number that no other file has.
fn new_number() -> FileNumber {
    static MADE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let made = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let digest = Sha256::digest(format!("{now} {} {made}", std::process::id()));
    let mut number = FileNumber::default();
    number.copy_from_slice(&digest[..16]);
    number
}
