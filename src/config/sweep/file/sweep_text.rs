//! The text of a sweep file: where each key stands, and which keys it names.
//!
//! Layer: sweep. Knows names and places. `document` and `axis` read the values.

use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key_names::{KnownKey, UnknownName, declared};
use hyperfold_base::printable::shortened;

use crate::spec::{KEYS, Key, Place, PolicyRegistry, SpecError, Value, find_declared};

/// The text that is being read, and its name for messages.
pub(in crate::sweep) struct SweepText<'a> {
    pub path: &'a Path,
    pub text: &'a str,
    /// The text of `--set`, if this is one. Then it is the place of everything.
    set: Option<&'a str>,
    /// Names of the jobs, in file order.
    pub jobs: Vec<Arc<str>>,
    /// Policies whose names are values, too.
    pub registry: &'a PolicyRegistry,
    /// Byte offsets of the line ends. They are kept because a list of experiments needs a place for each.
    line_ends: Vec<usize>,
}

impl<'a> SweepText<'a> {
    pub(in crate::sweep) fn new(
        path: &'a Path,
        text: &'a str,
        set: Option<&'a str>,
        registry: &'a PolicyRegistry,
    ) -> Self {
        let line_ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i).collect();
        SweepText { path, text, set, jobs: Vec::new(), registry, line_ends }
    }

    /// Returns the place of the word at `offset`: a key and everything up to its end.
    pub(in crate::sweep) fn place(&self, offset: usize) -> Place {
        let word = |c: &u8| c.is_ascii_alphanumeric() || b"_-.\"'[]".contains(c);
        let rest = self.text.as_bytes().get(offset..).unwrap_or_default();
        self.place_of(offset..offset + rest.iter().take_while(|c| word(c)).count())
    }

    /// Returns the place of a value. If the value spans several lines, this is the first of them.
    pub(in crate::sweep) fn place_of(&self, span: std::ops::Range<usize>) -> Place {
        if let Some(s) = self.set {
            return Place::Set(s.to_string());
        }
        let lines_before = self.line_ends.partition_point(|end| *end < span.start);
        let start = if lines_before == 0 { 0 } else { self.line_ends[lines_before - 1] + 1 };
        let end = self.line_ends.get(lines_before).map_or(self.text.len(), |end| *end);
        Place::columns(
            self.path,
            lines_before + 1,
            span.start - start..span.end.clamp(span.start, end.max(span.start)) - start,
        )
    }

    /// Returns a value as it was written, shortened for a message.
    pub(in crate::sweep) fn shown(&self, span: std::ops::Range<usize>) -> String {
        let text = self.text.get(span).unwrap_or("").trim();
        shortened(text, 60).replace(char::is_control, " ")
    }

    /// Reads the value of a key. `name` is the key as it was written.
    pub(in crate::sweep) fn value(
        &self,
        key: &Key,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Value, SpecError> {
        key.read_with(value.get_ref(), self.registry).map_err(|why| self.bad(name, value, why))
    }

    pub(in crate::sweep) fn bad(&self, key: &str, value: &Spanned<DeValue<'_>>, why: String) -> SpecError {
        SpecError::BadValue {
            place: self.place_of(value.span()),
            key: key.to_string(),
            value: self.shown(value.span()),
            why,
        }
    }
}

/// A dotted name, the offset at which it is written, and its value.
pub(in crate::sweep) type WrittenKey<'t> = (String, usize, &'t Spanned<DeValue<'t>>);

/// Collects all leaves of a table with their dotted names, in file order. A known key is a leaf even if a table was written for it.
pub(in crate::sweep) fn leaves<'t>(table: &'t DeTable<'t>, prefix: &str, out: &mut Vec<WrittenKey<'t>>) {
    for (k, v) in table {
        let name = if prefix.is_empty() { k.get_ref().to_string() } else { format!("{prefix}.{}", k.get_ref()) };
        match v.get_ref() {
            DeValue::Table(t) if find_declared(&name).is_none() && (!t.is_empty() || is_section(&name)) => {
                leaves(t, &name, out)
            }
            _ => out.push((name, k.span().start, v)),
        }
    }
    if prefix.is_empty() {
        out.sort_by_key(|(_, offset, _)| *offset);
    }
}

/// Whether there are keys below this name.
pub(in crate::sweep) fn is_section(name: &str) -> bool {
    KEYS.iter().any(|k| k.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// Returns what a dotted name stands for, or why it stands for nothing.
pub(in crate::sweep) fn known(source: &SweepText<'_>, name: &str, offset: usize) -> Result<KnownKey, SpecError> {
    declared(name, &source.jobs).map_err(|unknown| {
        let place = source.place(offset);
        let key: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
        match unknown {
            UnknownName::Later(instead) => SpecError::KeyNotAvailable { place, key, instead: instead.to_string() },
            UnknownName::Hint(hint) => SpecError::UnknownKey { place, hint, key },
        }
    })
}
