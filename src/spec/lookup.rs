//! Finds keys by name, and suggests names for those that are unknown.
//!
//! Layer: spec.

use super::error::nearest;
use super::key::{Key, VARIABLES};
use super::key_id::KeyId;
use super::keys::{KEYS, LATER, SECTIONS};

/// The declaration of a dotted name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.name == name)
}

/// The declaration of a key.
pub fn key(id: KeyId) -> &'static Key {
    &KEYS[id as usize]
}

/// What a known name that this version lacks asks for, and what to use instead.
pub fn later(name: &str) -> Option<&'static str> {
    LATER
        .iter()
        .find(|(n, _)| name == *n || name.strip_prefix(n).is_some_and(|rest| rest.starts_with('.')))
        .map(|(_, instead)| *instead)
}

/// A hint for an unknown dotted name.
pub fn hint(name: &str) -> String {
    if name.starts_with(VARIABLES) {
        let known: Vec<&str> = KEYS.iter().filter_map(|k| k.name.strip_prefix(VARIABLES)).collect();
        return format!("the variables that a simulation can follow are {}", known.join(", "));
    }
    if let Some(k) = nearest(name, KEYS.iter().map(|k| k.name)) {
        return format!("did you mean `{k}`?");
    }
    // The last part alone may be right, in another section.
    let last = name.rsplit('.').next().unwrap_or(name);
    let same: Vec<&str> = KEYS.iter().map(|k| k.name).filter(|k| k.rsplit('.').next() == Some(last)).collect();
    if !same.is_empty() {
        return format!("did you mean `{}`?", same.join("` or `"));
    }
    let section = name.split('.').next().unwrap_or(name);
    let table = name.rsplit_once('.').map_or(name, |(table, _)| table);
    let below = |table: &str| -> Vec<&str> {
        KEYS.iter()
            .map(|k| k.name)
            .filter(|k| k.strip_prefix(table).is_some_and(|rest| rest.starts_with('.')))
            .collect()
    };
    let mut known = below(table);
    if known.is_empty() {
        known = below(section);
    }
    if known.is_empty() {
        known = SECTIONS.iter().map(|(s, _)| *s).collect();
        return format!("the sections are {}", known.join(", "));
    }
    known.truncate(40);
    format!("known there: {}", known.join(", "))
}
