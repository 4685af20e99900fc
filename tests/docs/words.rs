//! No private words: what code calls a thing is what the glossary, the field or plain English calls it.
//!
//! Checked over the parts of all identifiers of the source, the tests and the shaders. Comments and strings are not read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::circles::tokens;
use crate::layers::strip;

/// A word that nobody outside this project knows in its sense, and what to say instead.
const PRIVATE: &[(&str, &str)] = &[
    ("alike", "equal, or what is equal of them"),
    ("asleep", "steady, or skipped"),
    ("calm", "buffer_guard"),
    ("canon", "canonical_key"),
    ("desk", "dispatch"),
    ("doze", "skip"),
    ("drowsy", "steady"),
    ("faith", "confirmed_skip"),
    ("firsts", "originals, or dedup"),
    ("gone", "advanced_rows, or what became of it"),
    ("hr", "headroom"),
    ("kindred", "overlapping"),
    ("likes", "duplicates"),
    ("lull", "idle"),
    ("nap", "skip"),
    ("naps", "skips"),
    ("orphan", "record to return"),
    ("orphans", "records to return"),
    ("rise", "ingress_peak"),
    ("rouse", "resume"),
    ("shelf", "backing_store"),
    ("slept", "skipped"),
    ("stirs", "resumes"),
    ("supply", "source"),
    ("tidings", "MessageEvent"),
];

/// The words of an identifier, in lower case: `nic_rowsOf` has `nic`, `rows` and `of`.
fn words(identifier: &str) -> Vec<String> {
    let chars: Vec<char> = identifier.chars().collect();
    let mut words = vec![String::new()];
    for (i, &c) in chars.iter().enumerate() {
        let lower = |k: usize| chars.get(k).is_some_and(|c| c.is_lowercase());
        let begins = c.is_uppercase() && i > 0 && (lower(i - 1) || lower(i + 1));
        if begins || !c.is_alphabetic() {
            words.push(String::new());
        }
        if c.is_alphabetic() {
            words.last_mut().expect("one is there from the start").extend(c.to_lowercase());
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

fn code_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            code_files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "wgsl") {
            into.push(path);
        }
    }
}

#[test]
fn no_identifier_has_a_private_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    ["src", "tests", "shaders", "examples"].iter().for_each(|folder| code_files(&root.join(folder), &mut files));
    assert!(files.len() > 400, "{} files", files.len());
    let mut found = BTreeSet::new();
    for path in files {
        let code = strip(&std::fs::read_to_string(&path).unwrap());
        for identifier in tokens(&code) {
            for word in words(identifier) {
                if let Ok(at) = PRIVATE.binary_search_by(|p| p.0.cmp(&word)) {
                    let shown = path.strip_prefix(root).unwrap().display();
                    found.insert(format!("{shown}: `{identifier}` has `{word}`; plain: {}", PRIVATE[at].1));
                }
            }
        }
    }
    assert!(found.is_empty(), "private words:\n{}", found.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn identifiers_are_taken_apart_and_the_list_is_sorted() {
    assert_eq!(words("nic_rowsOf"), ["nic", "rows", "of"]);
    assert_eq!(words("PFCPauses2x"), ["pfc", "pauses", "x"]);
    assert_eq!(words("MODE_FRESH"), ["mode", "fresh"]);
    assert!(PRIVATE.is_sorted_by(|a, b| a.0 < b.0));
}
