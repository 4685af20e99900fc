//! What the crates of the workspace may depend on. The compiler keeps their order; these tests keep the few rules that it does not know.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates of the workspace that the engines may depend on. They know columns and numbers: no sweep file, no topology, no workload.
const NARROW: &[(&str, &[&str])] = &[
    ("columns", &["base"]),
    ("engine", &["base", "columns"]),
    ("fold", &["base", "columns", "engine"]),
    ("flow", &["base", "columns", "engine"]),
];

/// Dependencies that belong to one crate, because they decide what that crate is. `.` is the root package. The world is `host`'s; its components are rows of `columns`.
const OWNED: &[(&str, &[&str])] = &[
    ("bevy_ecs", &["columns", "host"]),
    ("wgpu", &["engine"]),
    ("clap", &["."]),
    ("indicatif", &["."]),
    ("ctrlc", &["."]),
    ("anyhow", &["."]),
    ("env_logger", &["."]),
    ("parquet", &["results"]),
];

pub fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

pub fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// Folders of `src` that are crates, in alphabetical order.
pub fn crates_of_the_workspace() -> Vec<String> {
    let folders = fs::read_dir(source()).unwrap().map(|entry| entry.unwrap().path());
    let crates = folders.filter(|folder| folder.join("Cargo.toml").is_file());
    let mut names: Vec<String> = crates.map(|c| c.file_name().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Names under `[dependencies]` of a crate, which is a folder of `src`, or `.` for the root package.
fn dependencies(name: &str) -> Vec<String> {
    let folder = if name == "." { source().join("..") } else { source().join(name) };
    let manifest: toml::Table = fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
    manifest["dependencies"].as_table().unwrap().keys().cloned().collect()
}

/// The code without comments and the insides of string literals, line breaks kept.
pub fn strip(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut i) = (String::new(), 0);
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    while i < chars.len() {
        match (at(i), at(i + 1)) {
            ('/', '/') => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1
                }
            }
            ('/', '*') => {
                while i < chars.len() && (at(i), at(i + 1)) != ('*', '/') {
                    i += 1;
                }
                i += 2;
            }
            ('r', '"' | '#') if !out.ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                let hashes = (i + 1..).take_while(|&k| at(k) == '#').count();
                if at(i + 1 + hashes) != '"' {
                    out.push('r');
                    i += 1;
                    continue;
                }
                let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                i += 2 + hashes;
                while i < chars.len() && !chars[i..].starts_with(&end.chars().collect::<Vec<_>>()) {
                    i += 1;
                }
                i += end.len();
            }
            // A quote as a character literal opens no string.
            ('\'', '"') if at(i + 2) == '\'' => i += 3,
            ('\'', '\\') => i += 3 + usize::from(at(i + 3) == '\''),
            ('"', _) => {
                i += 1;
                while i < chars.len() && at(i) != '"' {
                    i += 1 + usize::from(at(i) == '\\');
                }
                i += 1;
            }
            (c, _) => {
                out.push(c);
                i += 1;
            }
        }
    }
    out
}

fn ident_at(code: &str) -> &str {
    &code[..code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len())]
}

/// First segments of the paths that follow `prefix`, groups in braces included.
fn heads(code: &str, prefix: &str) -> Vec<String> {
    let mut heads = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let (mut depth, mut start) = (0, true);
            for (k, c) in group.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => start = true,
                    c if depth == 0 && start && !c.is_whitespace() => {
                        heads.push(ident_at(&group[k..]).to_string());
                        start = false;
                    }
                    _ => {}
                }
            }
        } else {
            heads.push(ident_at(rest).to_string());
        }
    }
    heads
}

/// Each file of `src` as (path shown, code).
fn files() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    rust_files(&source(), &mut paths);
    paths.sort();
    let shown = |path: &PathBuf| path.strip_prefix(source()).unwrap().to_string_lossy().replace('\\', "/");
    paths.iter().map(|path| (shown(path), strip(&fs::read_to_string(path).unwrap()))).collect()
}

#[test]
fn every_crate_is_a_member_and_has_a_page() {
    let root: toml::Table = fs::read_to_string(source().join("../Cargo.toml")).unwrap().parse().unwrap();
    let mut members: Vec<&str> =
        root["workspace"]["members"].as_array().unwrap().iter().map(|m| m.as_str().unwrap()).collect();
    members.sort_unstable();
    let crates = crates_of_the_workspace();
    assert_eq!(members, crates.iter().map(|name| format!("src/{name}")).collect::<Vec<_>>());
    for name in crates {
        let lib = fs::read_to_string(source().join(&name).join("lib.rs")).unwrap();
        let page: String = lib.lines().filter_map(|l| l.strip_prefix("//!")).collect();
        let words = page.split_whitespace().count();
        assert!((25..=400).contains(&words), "src/{name}/lib.rs: a page of {words} words");
        assert!(page.contains("Start with"), "src/{name}/lib.rs: the page does not say where to start reading");
    }
}

#[test]
fn engines_know_columns_and_numbers_only() {
    for (name, allowed) in NARROW {
        for dependency in dependencies(name) {
            if let Some(other) = dependency.strip_prefix("hyperfold-") {
                assert!(allowed.contains(&other), "{name} must not depend on {other}");
            }
        }
    }
}

#[test]
fn dependencies_stay_in_their_crate() {
    for (dependency, homes) in OWNED {
        let names = crates_of_the_workspace().into_iter().chain([".".to_string()]);
        let found: Vec<String> = names.filter(|name| dependencies(name).iter().any(|d| d == dependency)).collect();
        let mut expected: Vec<&str> = homes.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{dependency}");
    }
}

/// The folders of `fold` in order, from the arrows in its documentation.
fn fold_layers() -> Vec<String> {
    let docs = fs::read_to_string(source().join("fold/lib.rs")).unwrap();
    let chain = docs.lines().find(|l| l.starts_with("//!") && l.contains('→')).expect("fold documents its layers");
    chain.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

#[test]
fn folders_of_folding_import_only_from_those_before_them() {
    let layers = fold_layers();
    let mut wrong = Vec::new();
    for (shown, code) in files() {
        let Some(folder) = shown.strip_prefix("fold/").and_then(|rest| rest.split_once('/')).map(|x| x.0) else {
            continue;
        };
        let layer = |name: &str| layers.iter().position(|l| l == name);
        let from = layer(folder).unwrap_or_else(|| panic!("{folder} is not among the layers of fold"));
        let mut imports = heads(&code, "crate::");
        imports.extend(heads(&code, "super::super::"));
        for import in imports {
            if layer(&import).is_some_and(|to| to > from) {
                wrong.push(format!("src/{shown}: `{folder}` must not import `{import}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files of `src` that open others than `input` does: what belongs to the program, or to the machine.
const OPENERS: &[&str] = &[
    "base/budget/available.rs",
    "base/input.rs",
    "cli/benchmark_workloads.rs",
    "cli/doctor.rs",
    "cli/machine.rs",
    "host/memo_file/memo_store.rs",
    "results/dir.rs",
];

#[test]
fn what_users_name_is_opened_in_one_place() {
    let mut wrong = Vec::new();
    for (shown, code) in files() {
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        let opens = ["fs::read(", "read_to_string(", "File::open("].into_iter().find(|call| code.contains(call));
        // A reader that is open already has a method of that name.
        let opens = opens.filter(|call| *call != "read_to_string(" || code.contains("fs::read_to_string("));
        if let Some(call) = opens.filter(|_| !OPENERS.contains(&&*shown) && !shown.ends_with("tests.rs")) {
            wrong.push(format!("src/{shown}: `{call}`; what a user or a sweep names is opened by `input`"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found_however_they_are_written() {
    let code = strip(
        "use crate::{topology::{Network, Link}, units};\n// crate::cli\nfn f() { crate::engine::run(\"crate::batch\") }\n\
         let c = '\"'; let r = r#\"crate::cli\"#; let e = '\\''; crate::sweep::x();",
    );
    let mut found = heads(&code, "crate::");
    found.sort();
    assert_eq!(found, ["engine", "sweep", "topology", "units"]);
}
