//! Plain words. Identifiers have no private words: what code calls a thing is what the glossary, the field or plain English calls it. Doc comments are
//! sentences of their own, and variables are not called by a preposition or a pronoun.
//!
//! Identifiers are read in the source, the tests and the shaders; comments and names of variables in the source and the shaders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::circles::tokens;
use crate::crates::strip;

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

/// Words with which the rest of a sentence begins, but hardly a sentence that says something by itself.
const RESTS: &[&str] =
    &["Also", "And", "Else", "Likewise", "Nor", "Of", "Or", "So", "Such", "Than", "That", "The same", "Those"];

/// Prepositions and pronouns that say nothing of a variable. `by` is the name of an option, `until` and `since` are instants.
const NO_NAMES: &[&str] =
    &["at", "beside", "into", "least", "most", "of", "on", "onto", "than", "that", "those", "till", "who", "with"];

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

/// The first lines of the doc comments of a file, with their numbers.
fn doc_comments(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let is_doc = |line: &str| line.starts_with("///");
    let first = |i: usize| is_doc(lines[i]) && (i == 0 || !is_doc(lines[i - 1]));
    (0..lines.len()).filter(|&i| first(i)).map(|i| (i + 1, lines[i].trim_start_matches('/').trim_start())).collect()
}

/// Whether a doc comment is the rest of a sentence that a name began, or a word alone.
fn says_little(comment: &str) -> bool {
    let begins =
        |rest: &&str| comment.strip_prefix(*rest).is_some_and(|after| !after.starts_with(char::is_alphanumeric));
    let is_word_alone = !comment.contains(' ') && comment.chars().any(char::is_lowercase);
    RESTS.iter().any(begins) || is_word_alone
}

/// The words that a line of code gives to variables and parameters, where they are among [`NO_NAMES`].
fn unnamed(line: &str) -> Vec<&str> {
    let tokens: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|t| !t.is_empty()).collect();
    let is_let =
        |i: usize| i > 0 && (["let", "var"].contains(&tokens[i - 1]) || (i > 1 && tokens[i - 2..i] == ["let", "mut"]));
    let is_function = line.contains("fn ");
    let is_parameter = |word: &str| {
        let follows = |before: &str| line.contains(&format!("{before}{word}: "));
        follows("|") || (is_function && (follows("(") || follows(", ")))
    };
    let mut found: Vec<&str> = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        if NO_NAMES.contains(token) && (is_let(i) || is_parameter(token)) {
            found.push(token);
        }
    }
    found
}

#[test]
fn doc_comments_and_names_say_something_by_themselves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    ["src", "shaders"].iter().for_each(|folder| code_files(&root.join(folder), &mut files));
    let (mut wrong, mut n_comments) = (Vec::new(), 0);
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(root).unwrap().display().to_string();
        // Help texts are printed below the name of their option, and read there.
        let is_help = ["Parser", "Args", "Subcommand", "ValueEnum"]
            .iter()
            .any(|d| text.contains(&format!("derive({d}")) || text.contains(&format!(", {d})")));
        for (number, comment) in doc_comments(&text) {
            n_comments += 1;
            if !is_help && says_little(comment) && !comment.starts_with(['`', '[', '#', '|']) {
                wrong.push(format!("{shown}:{number}: {comment}"));
            }
        }
        for (number, line) in strip(&text).lines().enumerate() {
            let called = |name: &&str| format!("{shown}:{}: a variable is called `{name}`", number + 1);
            wrong.extend(unnamed(line).iter().map(called));
            if ["const MOST_", "const LEAST_"].iter().any(|begin| line.contains(begin)) {
                wrong.push(format!("{shown}:{}: limits are called MAX_ and MIN_", number + 1));
            }
        }
    }
    assert!(n_comments > 5000, "{n_comments} comments");
    assert!(wrong.is_empty(), "{} of {n_comments}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn rests_of_sentences_and_prepositions_are_found() {
    for rest in ["Of more.", "Those jobs.", "That of both.", "The same for links.", "Mean."] {
        assert!(says_little(rest), "{rest}");
    }
    for sentence in ["Lower bound.", "Often asked.", "By link: the fastest rate.", "Whether it ended."] {
        assert!(!says_little(sentence), "{sentence}");
    }
    assert_eq!(unnamed("let of = jobs.len();"), ["of"]);
    assert_eq!(unnamed("    var least = NEVER;"), ["least"]);
    assert_eq!(unnamed("fn first(of: &[u32], at: u64)"), ["of", "at"]);
    assert_eq!(unnamed("let offset = place.at;"), [] as [&str; 0]);
    assert!(NO_NAMES.is_sorted());
}
