//! `include`: files whose `[base]` is overridden by that of the sweep.
//!
//! Layer: sweep. Reads the files that a sweep names. How their keys go together is checked with the sweep's own keys.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key_names::KnownKey;
use super::sweep_text::{SweepText, known, leaves};
use crate::spec::{KeyId, Place, SpecError, Value};
use hyperfold_base::input;

/// The names that may stand at the top of an included file.
pub(in crate::sweep) const INCLUDED_KEYS: [&str; 2] = ["base", "calibration"];
/// Maximum number of files that a sweep may include. The limit is ours.
const MAX_INCLUDED: usize = 64;

/// A file that a sweep includes.
#[derive(Clone, Debug)]
pub struct IncludedFile {
    /// The path, with the sweep's folder in front.
    pub path: PathBuf,
    /// `[calibration]` as TOML, which says where its values come from. It is empty if the file has none.
    pub calibration: String,
}

/// Keys of `[base]`, with the places where they were written.
pub(in crate::sweep) type BaseKeys = Vec<(KeyId, Value, Place)>;

/// Reads the files that `include` names, as a path or a list of paths relative to the sweep file. Keys in later files win over those in earlier ones.
pub(in crate::sweep) fn read(
    source: &SweepText<'_>,
    value: &Spanned<DeValue<'_>>,
    base: &mut BaseKeys,
) -> Result<Vec<IncludedFile>, SpecError> {
    let bad = |why: String| source.bad("include", value, why);
    let one: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
        DeValue::String(_) => vec![value],
        DeValue::Array(list) if list.len() <= MAX_INCLUDED => list.iter().collect(),
        DeValue::Array(_) => return Err(bad(format!("a sweep includes at most {MAX_INCLUDED} files"))),
        _ => return Err(bad("it must be a list of paths: include = [\"overlay.toml\"]".into())),
    };
    let dir = source.path.parent().unwrap_or(Path::new(""));
    let mut files: Vec<IncludedFile> = Vec::new();
    let (mut bytes, max_bytes) = (source.text.len() as u64, input::max_tree_bytes());
    for item in one {
        let name = match item.get_ref() {
            DeValue::String(s) if !s.is_empty() && !s.contains('\0') => s,
            _ => return Err(source.bad("include", item, "it must be the path of a file, as text".into())),
        };
        let path = dir.join(name.as_ref());
        if files.iter().any(|f| f.path == path) {
            return Err(source.bad("include", item, "it is included twice; keep one of them".into()));
        }
        let text = input::read_tree(&path).map_err(|e| {
            let why = format!("cannot read {}: {e}; give a file's path, relative to the sweep file", path.display());
            source.bad("include", item, why)
        })?;
        bytes += text.len() as u64;
        if bytes > max_bytes {
            let why = format!(
                "with {} the sweep and what it includes have {bytes} bytes, and at most {max_bytes} are read",
                path.display()
            );
            return Err(source.bad("include", item, why));
        }
        let calibration = read_file(&SweepText::new(&path, &text, None, source.registry), base)?;
        files.push(IncludedFile { path, calibration });
    }
    Ok(files)
}

/// Reads one included file and returns its `[calibration]`.
fn read_file(source: &SweepText<'_>, base: &mut BaseKeys) -> Result<String, SpecError> {
    let text = source.text;
    let root = DeTable::parse(text).map_err(|e| SpecError::Syntax {
        place: source.place_of(e.span().unwrap_or(0..0)),
        why: e.message().lines().next().unwrap_or("").to_string(),
    })?;
    let mut calibration = String::new();
    for (name, value) in root.get_ref() {
        let Some(table) = value.get_ref().as_table().filter(|_| INCLUDED_KEYS.contains(&name.get_ref().as_ref()))
        else {
            let key = name.get_ref().chars().filter(|c| !c.is_control()).take(80).collect();
            let hint = format!("an included file has the tables {}", INCLUDED_KEYS.join(" and "));
            return Err(SpecError::UnknownKey { place: source.place(name.span().start), key, hint });
        };
        if name.get_ref() == "calibration" {
            // The file was parsed above, so it parses here too.
            let whole: toml::Table = text.parse().unwrap_or_default();
            calibration = whole.get("calibration").and_then(|t| toml::to_string(t).ok()).unwrap_or_default();
            continue;
        }
        let mut out = Vec::new();
        leaves(table, "", &mut out);
        for (name, offset, v) in out {
            let KnownKey { path, key } = known(source, &name, offset)?;
            debug_assert!(path.job.is_none(), "an included file names no jobs");
            let read = source.value(key, &name, v)?;
            base.push((key.id, read, source.place(offset)));
        }
    }
    Ok(calibration)
}
