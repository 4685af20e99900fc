//! The identity of experiments: hashes of everything that decides their results.
//!
//! Layer: sweep. Values that nothing reads are left out. Files are identified by their content, and each is hashed once.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::spec::{KEYS, Key, KeyId, KeyKind, KeyPath, Values, built_in_cdf};
use hyperfold_base::input;

/// Version of the model's semantics. It is raised whenever the same configuration may give other results than before.
pub const SEMANTIC_VERSION: u32 = 1;

/// The first 128 bits of a SHA-256 hash, printed in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash128(pub [u8; 16]);

impl fmt::Display for Hash128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

fn first_half(hash: &[u8]) -> Hash128 {
    let mut h = [0; 16];
    h.copy_from_slice(&hash[..16]);
    Hash128(h)
}

fn hex(hash: &[u8]) -> String {
    hash.iter().fold(String::with_capacity(64), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

/// Input files by path, with the SHA-256 of their content in hexadecimal. Threads share it.
#[derive(Debug, Default)]
pub(super) struct Files(Mutex<BTreeMap<PathBuf, Arc<str>>>);

impl Files {
    /// Returns the hash of a file's content. The file is read the first time.
    pub(super) fn hash(&self, path: &Path) -> std::io::Result<Arc<str>> {
        let mut hashes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hash) = hashes.get(path) {
            return Ok(Arc::clone(hash));
        }
        let mut hasher = Sha256::new();
        std::io::copy(&mut input::open(path)?, &mut Writer(&mut hasher))?;
        let hash: Arc<str> = hex(&hasher.finalize()).into();
        hashes.insert(path.to_path_buf(), Arc::clone(&hash));
        Ok(hash)
    }

    /// Returns the hash of a file, or of the names and contents of the files that a folder or a prefix stands for.
    pub(super) fn hash_all(&self, path: &Path) -> std::io::Result<Arc<str>> {
        if path.exists() && !input::is_folder(path) {
            return self.hash(path);
        }
        let mut hasher = Sha256::new();
        for file in members(path)? {
            // Only the part of a name after the prefix is hashed. What a set of traces is called decides nothing, but which rank a trace belongs to does.
            let name = file.file_name().map(|n| n.as_encoded_bytes().to_vec()).unwrap_or_default();
            let prefix_len = if path.is_dir() { 0 } else { path.file_name().map_or(0, |n| n.len()) };
            hasher.update(&name[prefix_len..]);
            hasher.update([0]);
            hasher.update(self.hash(&file)?.as_bytes());
        }
        Ok(hex(&hasher.finalize()).into())
    }

    /// Returns the files and their hashes, in order of their paths.
    pub(super) fn into_hashes(self) -> impl Iterator<Item = (PathBuf, String)> {
        let hashes = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        hashes.into_iter().map(|(path, hash)| (path, hash.to_string()))
    }
}

/// Maximum number of levels of subfolders in which traces are looked for.
const MAX_SUBFOLDERS: usize = 4;

/// Returns the files that a path stands for, in order of their names. For a folder these are its regular files or, if it has none, the traces (`.et`) in its
/// subfolders. For a prefix these are the files whose names begin with it.
fn members(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(path, 0, &mut found)?;
    if found.is_empty() {
        let why = match input::is_folder(path) {
            true => "it is a folder that holds no files, and no traces (.et) below it",
            false => "no file there, and none whose name begins so",
        };
        return Err(std::io::Error::new(std::io::ErrorKind::NotFound, why));
    }
    Ok(found)
}

fn collect(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let (folder, prefix) = if input::is_folder(path) {
        (path, None)
    } else {
        (path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")), path.file_name())
    };
    let (found_before, entries) = (found.len(), input::entries(folder)?);
    for entry in &entries {
        let name = entry.file_name().unwrap_or_default();
        let begins = prefix.is_none_or(|p| name.as_encoded_bytes().starts_with(p.as_encoded_bytes()));
        let is_trace = || entry.extension().is_some_and(|e| e == "et");
        if begins && (depth == 0 || is_trace()) && std::fs::metadata(entry)?.is_file() {
            found.push(entry.clone());
        }
    }
    if found.len() == found_before && prefix.is_none() && depth < MAX_SUBFOLDERS {
        // Links are not followed, because they could form a cycle.
        for sub in entries.iter().filter(|p| p.is_dir() && !p.is_symlink()) {
            collect(sub, depth + 1, found)?;
        }
    }
    Ok(())
}

/// Feeds what is written to it into a hasher, so that a file can be hashed without being held in memory.
struct Writer<'a>(&'a mut Sha256);

impl std::io::Write for Writer<'_> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0.update(buf);
        Ok(buf.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes the text that identifies a configuration into `out`: a line `name=value` for every key that decides its results, and then those of each job. The
/// error names the key of a file that cannot be read.
pub(super) fn canonical(
    v: &Values,
    dir: &Path,
    files: &Files,
    out: &mut String,
) -> Result<(), (KeyPath, std::io::Error)> {
    out.clear();
    let _ = writeln!(out, "semantics={SEMANTIC_VERSION}");
    keys(v, dir, files, out).map_err(|(key, e)| (key.into(), e))?;
    for (job, number) in v.jobs().iter().zip(0..) {
        // A job's name cannot be mistaken for a key, so this line clearly begins a section.
        let _ = writeln!(out, "[{}]", job.name);
        keys(job.values(), dir, files, out).map_err(|(key, e)| (KeyPath { job: Some(number), key }, e))?;
    }
    Ok(())
}

/// Writes a line for every key that is read.
fn keys(v: &Values, dir: &Path, files: &Files, out: &mut String) -> Result<(), (KeyId, std::io::Error)> {
    for key in KEYS.iter().filter(|k| k.in_identity && k.applies(v)) {
        match key.id {
            // The values of this file have already become the values of other keys.
            KeyId::TransportConfig | KeyId::TransportFormat => continue,
            // With jobs, each job has its own workload, which includes the values of `[base]`.
            _ if !v.jobs().is_empty() && key.name.starts_with("workload.") => continue,
            _ => {}
        }
        out.push_str(key.name);
        out.push('=');
        let text = v.text(key.id);
        let unreadable = |e| (key.id, e);
        if matches!(key.kind, KeyKind::Files) {
            out.push_str("sha256:");
            out.push_str(&files.hash_all(&dir.join(text)).map_err(unreadable)?);
        } else if is_file(key, text) {
            out.push_str("sha256:");
            out.push_str(&files.hash(&dir.join(text)).map_err(unreadable)?);
        } else if let Some(name) = built_in_cdf(text).filter(|_| key.id == KeyId::Cdf) {
            out.push_str(name);
        } else {
            let _ = write!(out, "{}", v.get(key.id));
            if let Some(policy) = v.registered(key.id) {
                // No name has a space, so this is no name.
                let _ = write!(out, " registered version {}", policy.version());
            }
        }
        out.push('\n');
    }
    Ok(())
}

/// Whether the text of a key names a file rather than something built in.
fn is_file(key: &Key, text: &str) -> bool {
    match key.kind {
        KeyKind::Path => true,
        KeyKind::Named => !text.starts_with('{') && text.ends_with(".toml"),
        _ if key.id == KeyId::Cdf => built_in_cdf(text).is_none(),
        _ if key.id == KeyId::Slowdown => text.ends_with(".json") || text.ends_with(".csv"),
        _ => false,
    }
}

/// Returns the `config_key` of a canonical text.
pub(super) fn config_key(canonical: &str) -> Hash128 {
    first_half(&Sha256::digest(canonical.as_bytes()))
}

/// Returns the `exp_key`: the hash of the configuration and the replica's seed.
pub(super) fn exp_key(config: Hash128, seed: u64) -> Hash128 {
    let mut hasher = Sha256::new();
    hasher.update(config.0);
    hasher.update(seed.to_le_bytes());
    first_half(&hasher.finalize())
}
