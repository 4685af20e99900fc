//! The documents: links resolve, names exist, sentences and paragraphs stay short.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Words that a page may have, counted as `wc -w` does.
const LONGEST_PAGES: &[(&str, usize)] = &[("README.md", 1400), ("ARCHITECTURE.md", 1500)];
/// Words of a sentence at most, and on average over a page.
pub const SENTENCE: usize = 30;
const MEAN_SENTENCE: f64 = 18.0;
/// Words of a paragraph at most.
const PARAGRAPH: usize = 120;
/// Pages that the code prints, whose cells are not prose.
const GENERATED: &[&str] = &["docs/reference/keys.md", "docs/reference/presets.md"];
/// Folders whose files the pages name by their path from the root.
const FOLDERS: &[&str] = &[
    "src",
    "shaders",
    "docs",
    "tests",
    "scripts",
    "assets",
    "experiments",
    "benches",
    "examples",
    "fuzz",
    "python",
    ".ci",
    ".github",
];

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, ends: &[&str], into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ends, into);
        } else if path.extension().is_some_and(|e| ends.contains(&e.to_str().unwrap())) {
            into.push(path);
        }
    }
}

/// Every page, by its path from the root, with its text.
pub fn pages() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
        .map(|name| root().join(name))
        .to_vec();
    for folder in ["docs", "experiments", "benches"] {
        files(&root().join(folder), &["md"], &mut paths);
    }
    paths.sort();
    let page = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
        (name, fs::read_to_string(&path).unwrap())
    };
    paths.into_iter().map(page).collect()
}

/// The lines outside fenced code, with their numbers.
pub fn unfenced(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((number + 1, line));
        }
    }
    lines
}

/// The contents of code spans.
fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The line without the contents of code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Targets of the links in a line.
fn links(line: &str) -> Vec<String> {
    let text = without_code(line);
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_string())).collect()
}

/// A heading's anchor, as GitHub makes it.
pub fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    unfenced(text).into_iter().filter(|(_, line)| line.starts_with('#')).map(|(_, line)| anchor(line)).collect()
}

/// Checks every page and shows all that is wrong at once.
fn check(mut wrong_in: impl FnMut(&str, &str) -> Vec<String>) {
    let wrong: Vec<String> = pages().iter().flat_map(|(name, text)| wrong_in(name, text)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_resolve() {
    check(|name, text| {
        let mut wrong = Vec::new();
        for (number, line) in unfenced(text) {
            for target in links(line).iter().filter(|t| !t.starts_with("http")) {
                let (path, heading) = target.split_once('#').unwrap_or((target, ""));
                let page = root().join(name);
                let linked = if path.is_empty() { page } else { page.parent().unwrap().join(path) };
                if !linked.exists() {
                    wrong.push(format!("{name}:{number}: {target} is not there"));
                } else if !heading.is_empty() && !anchors(&fs::read_to_string(linked).unwrap()).contains(heading) {
                    wrong.push(format!("{name}:{number}: {target}: no such heading"));
                }
            }
        }
        wrong
    });
}

#[test]
fn files_that_pages_name_exist() {
    check(|name, text| {
        let mut wrong = Vec::new();
        for (number, line) in unfenced(text) {
            for span in code_spans(line) {
                let path = span.split([' ', ':', '#']).next().unwrap();
                let folder = path.split('/').next().unwrap();
                let is_path = FOLDERS.contains(&folder) && path.contains('/') && !path.contains(['*', '{']);
                if is_path && !root().join(path).exists() {
                    wrong.push(format!("{name}:{number}: `{path}` is not there"));
                }
            }
        }
        wrong
    });
}

/// Folders and pages for people who run studies.
const FOR_STUDIES: &[&str] =
    &["docs/tutorial.md", "docs/how-to/", "docs/reference/", "docs/explanation/", "docs/studies/", "experiments/"];

#[test]
fn pages_for_studies_name_no_file_of_the_source() {
    check(|name, text| {
        // Who adds a scheduler changes the code; the page stands among the others that begin with a key.
        if !FOR_STUDIES.iter().any(|start| name.starts_with(start)) || name == "docs/how-to/own-scheduler.md" {
            return Vec::new();
        }
        let names_source = |line: &str| code_spans(line).iter().any(|span| span.starts_with("src/"));
        let wrong = unfenced(text).into_iter().filter(|(_, line)| names_source(line));
        wrong
            .map(|(number, _)| format!("{name}:{number}: a file of `src` belongs on a page of docs/internals"))
            .collect()
    });
}

#[test]
fn pages_are_no_longer_than_they_may_be() {
    check(|name, text| {
        let words = text.split_whitespace().count();
        let most = LONGEST_PAGES.iter().find(|(page, _)| *page == name).map(|(_, most)| *most);
        most.filter(|most| words > *most)
            .map(|most| format!("{name}: {words} words, at most {most}"))
            .into_iter()
            .collect()
    });
}

/// Paragraphs and items of lists, each with the number of its first line. Tables, headings and code are no prose.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    let mut previous = 0;
    for (number, line) in unfenced(text) {
        let words = line.trim_start();
        let item = words.strip_prefix("- ").or_else(|| {
            let (digits, rest) = words.split_once(". ")?;
            digits.bytes().all(|b| b.is_ascii_digit()).then_some(rest)
        });
        if words.is_empty() || words.starts_with(['|', '#', '<', '!']) {
            open = false;
        } else if let (Some(last), true, None) = (found.last_mut(), open && number == previous + 1, item) {
            last.1.push(' ');
            last.1.push_str(words);
        } else {
            found.push((number, item.unwrap_or(words).to_string()));
            open = true;
        }
        previous = number;
    }
    found
}

/// The text with each code span as one word and links as their words.
fn plain(paragraph: &str) -> String {
    let mut out = String::new();
    for (k, part) in paragraph.split('`').enumerate() {
        if k % 2 == 1 {
            out.push_str("Code");
            continue;
        }
        let mut rest = part;
        while let Some((before, after)) = rest.split_once("](") {
            out.push_str(before);
            rest = after.split_once(')').map_or("", |(_, after)| after);
        }
        out.push_str(rest);
    }
    out.replace(['*', '[', '"'], "")
}

/// Sentences end at a full stop, question mark or exclamation mark before a space and a capital, digit or code.
pub fn sentences(paragraph: &str) -> Vec<String> {
    let text = plain(paragraph);
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found: Vec<Vec<&str>> = vec![Vec::new()];
    for (k, word) in words.iter().enumerate() {
        found.last_mut().unwrap().push(word);
        let ends = word.trim_end_matches(')').ends_with(['.', '?', '!']);
        let next = words.get(k + 1).and_then(|w| w.chars().find(|c| c.is_alphanumeric()));
        if ends && next.is_some_and(|c| c.is_uppercase() || c.is_ascii_digit()) {
            found.push(Vec::new());
        }
    }
    found.into_iter().filter(|s| !s.is_empty()).map(|s| s.join(" ")).collect()
}

/// Number of words in a text.
pub fn words(text: &str) -> usize {
    text.split_whitespace().filter(|w| w.contains(char::is_alphanumeric)).count()
}

#[test]
fn sentences_and_paragraphs_are_short() {
    check(|name, text| {
        let mut wrong = Vec::new();
        if GENERATED.contains(&name) {
            return wrong;
        }
        let (mut total, mut count) = (0, 0);
        for (number, paragraph) in paragraphs(text) {
            let length = words(&plain(&paragraph));
            if length > PARAGRAPH {
                wrong.push(format!("{name}:{number}: a paragraph of {length} words, at most {PARAGRAPH}"));
            }
            for sentence in sentences(&paragraph) {
                let length = words(&sentence);
                (total, count) = (total + length, count + 1);
                if length > SENTENCE {
                    wrong
                        .push(format!("{name}:{number}: a sentence of {length} words, at most {SENTENCE}: {sentence}"));
                }
            }
        }
        let mean = total as f64 / f64::from(count.max(1));
        if mean > MEAN_SENTENCE {
            wrong.push(format!("{name}: sentences of {mean:.1} words on average, at most {MEAN_SENTENCE}"));
        }
        wrong
    });
}

/// Whether the text has the name by itself, not as a part of a longer one.
fn has_name(text: &str, name: &str) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(name)
        .any(|(at, _)| !inside(text[..at].chars().next_back()) && !inside(text[at + name.len()..].chars().next()))
}

#[test]
fn names_of_the_glossary_exist() {
    let mut paths = Vec::new();
    for folder in ["src", "shaders"] {
        files(&root().join(folder), &["rs", "wgsl"], &mut paths);
    }
    let code: Vec<String> = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let text = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let mut wrong = Vec::new();
    for (number, line) in unfenced(&text).into_iter().filter(|(_, line)| line.starts_with('|')) {
        let Some(cell) = line.trim_end_matches(['|', ' ']).rsplit('|').next() else { continue };
        for name in code_spans(cell) {
            let bare = name.trim_start_matches('-');
            if !root().join(name).exists() && !code.iter().any(|text| has_name(text, bare)) {
                wrong.push(format!("docs/glossary.md:{number}: `{name}` is not in the code"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn prose_is_measured_as_it_reads() {
    let text = "# A\n\nOne `a b c` [two](x.md). Three\nfour: v0.2 five!\n\n- Six. Seven?\n- Eight\n| a | b |\n\n```\nno\n```\n1. Nine\n";
    let found = paragraphs(text);
    assert_eq!(found.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [3, 6, 7, 13]);
    assert_eq!(sentences(&found[0].1), ["One Code two.", "Three four: v0.2 five!"]);
    assert_eq!(sentences(&found[1].1), ["Six.", "Seven?"]);
    assert_eq!(anchor("## The journal (`x.bin`)"), "the-journal-xbin");
    assert!(has_name("fn a_b()", "a_b") && !has_name("fn a_bc()", "a_b"));
    assert_eq!(links("see [a](b.md#c), `[no](d.md)`"), ["b.md#c"]);
}
