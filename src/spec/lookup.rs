//! Finds keys by name, and suggests names for those that are unknown.
//!
//! Layer: spec.

use super::aliases::meant;
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

/// Keys that an unknown name, with dots or without, may mean: an alias of theirs, or their last part without its section. May be empty.
pub fn alternatives(name: &str) -> Vec<&'static str> {
    let aliased = meant(name);
    if !aliased.is_empty() {
        return aliased;
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    KEYS.iter().map(|k| k.name).filter(|k| k.rsplit('.').next() == Some(last)).collect()
}

/// A hint for an unknown dotted name.
pub fn hint(name: &str) -> String {
    if name.starts_with(VARIABLES) {
        let known: Vec<&str> = KEYS.iter().filter_map(|k| k.name.strip_prefix(VARIABLES)).collect();
        return format!("the variables that a simulation can follow are {}", known.join(", "));
    }
    // What somebody wrote on purpose is a better guess than a slip of the keyboard.
    let aliased = meant(name);
    if aliased.is_empty()
        && let Some(k) = nearest(name, KEYS.iter().map(|k| k.name))
    {
        return format!("did you mean `{k}`?");
    }
    let other = alternatives(name);
    if !other.is_empty() {
        return format!("did you mean `{}`?", other.join("` or `"));
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
