//! `unsafe` stands only in the files listed here, each time with its reason; everything else forbids it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::crates::{crates_of_the_workspace, rust_files, source, strip};

/// Files of `src` with `unsafe` in them.
const WITH_UNSAFE: &[&str] = &[
    "base/budget/allocator.rs",
    "base/prefetch.rs",
    "columns/column.rs",
    "columns/tables.rs",
    "engine/cpu/key.rs",
    "engine/cpu/parallel/cores.rs",
    "fold/run/simulation/span_threads.rs",
];
/// Lines above an `unsafe` in which its reason stands.
const NEAR: usize = 5;

/// Whether the word stands in the code.
fn has_unsafe(code: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices("unsafe").any(|(at, _)| !code[..at].ends_with(word) && !code[at + 6..].starts_with(word))
}

#[test]
fn unsafe_stands_only_where_it_is_listed_and_with_its_reason() {
    let mut paths = Vec::new();
    rust_files(&source(), &mut paths);
    let mut found: Vec<String> = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        if !has_unsafe(&strip(&text)) {
            continue;
        }
        let shown = path.strip_prefix(source()).unwrap().to_string_lossy().replace('\\', "/");
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            // A function of a trait that is unsafe to call has the trait's contract.
            if has_unsafe(&strip(line)) && !line.trim_start().starts_with("unsafe fn") {
                let near = &lines[at.saturating_sub(NEAR)..at];
                assert!(
                    near.iter().any(|l| l.contains("// SAFETY: ")),
                    "src/{shown}:{}: no SAFETY comment above",
                    at + 1
                );
            }
        }
        found.push(shown);
    }
    found.sort();
    assert_eq!(found, WITH_UNSAFE, "files of src with `unsafe` (left) and those that are listed (right)");
}

#[test]
fn everything_else_forbids_it() {
    let with: Vec<&str> = WITH_UNSAFE.iter().map(|f| f.split('/').next().unwrap()).collect();
    let crates = crates_of_the_workspace();
    assert!(crates.len() > 10, "{crates:?}");
    for name in crates {
        let lib = fs::read_to_string(source().join(&name).join("lib.rs")).unwrap();
        let level = if with.contains(&name.as_str()) { "deny" } else { "forbid" };
        assert!(lib.contains(&format!("\n#![{level}(unsafe_code)]\n")), "src/{name}/lib.rs: #![{level}(unsafe_code)]");
    }
    assert!(fs::read_to_string(source().join("lib.rs")).unwrap().contains("\n#![forbid(unsafe_code)]\n"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut crates: Vec<PathBuf> =
        vec![root.join("src/main.rs"), root.join("benches/engine.rs"), root.join("tests/examples.rs")];
    for folder in ["examples", "tests"] {
        for entry in fs::read_dir(root.join(folder)).unwrap().map(|e| e.unwrap().path()) {
            match entry.is_dir() {
                true => crates.extend(Some(entry.join("main.rs")).filter(|main| main.is_file())),
                false => crates.extend(Some(entry).filter(|file| file.extension().is_some_and(|e| e == "rs"))),
            }
        }
    }
    assert!(crates.len() > 12, "{crates:?}");
    for path in crates {
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("\n#![forbid(unsafe_code)]\n") || text.starts_with("#![forbid(unsafe_code)]\n"),
            "{}",
            path.display()
        );
    }
}
