//! Identity of experiments: hashes of what decides their results.
//!
//! Layer: sweep. Values that nothing reads are left out, files count by content, each hashed once.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::spec::{K, KEYS, Kind, Values, built_in_cdf};

/// Version of the model's semantics. Raised whenever the same configuration may give other results than before.
pub const SEMANTIC_VERSION: u32 = 1;

/// The first 128 bits of a SHA-256, printed as hexadecimal.
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

/// Input files by path, with the SHA-256 of their content in hexadecimal.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(pub BTreeMap<PathBuf, String>);

impl Files {
    /// The hash of a file's content, read on first use.
    pub fn hash(&mut self, path: &Path) -> std::io::Result<&str> {
        if !self.0.contains_key(path) {
            // A device or a pipe could go on for ever, and would be used up when the file is read for real.
            if !std::fs::metadata(path)?.is_file() {
                return Err(std::io::Error::other("it is not a regular file"));
            }
            let mut hasher = Sha256::new();
            std::io::copy(&mut std::fs::File::open(path)?, &mut Writer(&mut hasher))?;
            let hex = hasher.finalize().iter().fold(String::with_capacity(64), |mut s, b| {
                let _ = write!(s, "{b:02x}");
                s
            });
            self.0.insert(path.to_path_buf(), hex);
        }
        Ok(&self.0[path])
    }
}

/// Lets a file be copied into a hasher without being held in memory.
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

/// The text a configuration is known by: `name=value` of every key that decides its results, a line each.
/// The error is the key of a file that cannot be read.
pub(super) fn canonical(v: &Values, dir: &Path, files: &mut Files, out: &mut String) -> Result<(), (K, std::io::Error)> {
    out.clear();
    let _ = writeln!(out, "semantics={SEMANTIC_VERSION}");
    for key in KEYS.iter().filter(|k| k.decides && (k.reads)(v)) {
        match key.id {
            // Its values have become those of other keys.
            K::TransportConfig | K::TransportFormat => continue,
            _ => {}
        }
        out.push_str(key.name);
        out.push('=');
        let built_in = if key.id == K::Cdf { built_in_cdf(v.text(K::Cdf)) } else { None };
        if let Some(name) = built_in {
            out.push_str(name);
        } else if matches!(key.kind, Kind::Path) || key.id == K::Cdf {
            let hash = files.hash(&dir.join(v.text(key.id))).map_err(|e| (key.id, e))?;
            out.push_str("sha256:");
            out.push_str(hash);
        } else {
            let _ = write!(out, "{}", v.get(key.id));
        }
        out.push('\n');
    }
    Ok(())
}

/// `config_key` of a canonical text.
pub(super) fn config_key(canonical: &str) -> Hash128 {
    first_half(&Sha256::digest(canonical.as_bytes()))
}

/// `exp_key`: the configuration and the replica's seed.
pub(super) fn exp_key(config: Hash128, seed: u64) -> Hash128 {
    let mut hasher = Sha256::new();
    hasher.update(config.0);
    hasher.update(seed.to_le_bytes());
    first_half(&hasher.finalize())
}
