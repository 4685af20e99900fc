//! The layers that `src/lib.rs` documents, enforced: a module imports only from those above it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Edges allowed between modules of one layer.
const PEERS: &[(&str, &str)] =
    &[("sweep", "spec"), ("sweep", "transport"), ("spec", "transport"), ("routing", "topology")];

/// Modules that may import only these, fewer than their layer allows.
const NARROW: &[(&str, &[&str])] = &[("engine", &["isolation", "prefetch", "units", "transport", "columns"])];

/// Crates that belong to a module, because they decide what that module is. The world is `batch`'s; its components are rows of `columns`.
const CRATES: &[(&str, &[&str])] = &[
    ("bevy_ecs", &["batch", "columns"]),
    ("wgpu", &["engine"]),
    ("clap", &["cli"]),
    ("indicatif", &["cli"]),
    ("ctrlc", &["cli"]),
    ("anyhow", &["cli"]),
    ("env_logger", &["cli"]),
    ("parquet", &["results"]),
];

pub fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Layer number of each module, from the arrows in the crate's documentation.
fn layers() -> BTreeMap<String, usize> {
    let lib = fs::read_to_string(source().join("lib.rs")).unwrap();
    let docs: String = lib.lines().filter_map(|l| l.strip_prefix("//!")).collect::<Vec<_>>().join(" ");
    let from = docs.find("`units`, `budget`").expect("lib.rs documents the layers, beginning with `units`");
    let chain = &docs[from..from + docs[from..].find('.').expect("the chain ends with a full stop")];
    let mut layers = BTreeMap::new();
    for (number, layer) in chain.split('→').enumerate() {
        for name in layer.split('`').skip(1).step_by(2) {
            layers.insert(name.to_string(), number);
        }
    }
    layers
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

/// Top-level modules that a file's code names, however it writes the path.
fn imports(code: &str, depth: usize) -> Vec<String> {
    let mut found = heads(code, "crate::");
    found.extend(heads(code, "hyperfold::"));
    // `super` as often as the module is deep is the crate's root.
    found.extend(heads(code, &"super::".repeat(depth)));
    found
}

/// Each file as (module, depth of the module in the crate, path shown, code).
fn files() -> Vec<(String, usize, String, String)> {
    let mut paths = Vec::new();
    rust_files(&source(), &mut paths);
    paths.sort();
    let file = |path: &PathBuf| {
        let shown = path.strip_prefix(source()).unwrap().to_string_lossy().replace('\\', "/");
        let mut segments: Vec<&str> = shown.trim_end_matches(".rs").split('/').collect();
        if segments.last() == Some(&"mod") {
            segments.pop();
        }
        (segments[0].to_string(), segments.len(), shown.clone(), strip(&fs::read_to_string(path).unwrap()))
    };
    paths.iter().map(file).filter(|(module, ..)| module != "lib" && module != "main").collect()
}

#[test]
fn every_module_has_a_layer_and_every_layer_a_module() {
    let modules: std::collections::BTreeSet<String> = files().into_iter().map(|(module, ..)| module).collect();
    let documented: std::collections::BTreeSet<String> = layers().into_keys().collect();
    assert_eq!(modules, documented, "src/ (left) and the layers in src/lib.rs (right)");
}

#[test]
fn modules_import_only_from_layers_above_them() {
    let layers = layers();
    let mut wrong = Vec::new();
    for (module, depth, shown, code) in files() {
        for import in imports(&code, depth) {
            let (Some(&from), Some(&to)) = (layers.get(&module), layers.get(&import)) else { continue };
            let narrow = NARROW.iter().find(|(m, _)| *m == module);
            let allowed = import == module
                || match narrow {
                    Some((_, only)) => only.contains(&import.as_str()),
                    None => to < from || PEERS.contains(&(module.as_str(), import.as_str())),
                };
            if !allowed {
                wrong.push(format!("src/{shown}: `{module}` must not import `{import}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The folders of `engine::fold` in order, from the arrows in its documentation.
fn fold_layers() -> Vec<String> {
    let docs = fs::read_to_string(source().join("fold/mod.rs")).unwrap();
    let chain =
        docs.lines().find(|l| l.starts_with("//!") && l.contains('→')).expect("engine::fold documents its layers");
    chain.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

#[test]
fn folders_of_folding_import_only_from_those_before_them() {
    let layers = fold_layers();
    let mut wrong = Vec::new();
    for (_, _, shown, code) in files() {
        let Some(folder) = shown.strip_prefix("fold/").and_then(|rest| rest.split_once('/')).map(|x| x.0) else {
            continue;
        };
        let layer = |name: &str| layers.iter().position(|l| l == name);
        let from = layer(folder).unwrap_or_else(|| panic!("{folder} is not among the layers of engine::fold"));
        let mut imports = heads(&code, "crate::engine::fold::");
        imports.extend(heads(&code, "super::super::"));
        for import in imports {
            if layer(&import).is_none_or(|to| to > from) {
                wrong.push(format!("src/{shown}: `{folder}` must not import `{import}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_stay_in_their_module() {
    let mut wrong = Vec::new();
    for (module, _, shown, code) in files() {
        for (name, homes) in CRATES {
            if !homes.contains(&module.as_str())
                && code.match_indices(&format!("{name}::")).any(|(at, _)| !code[..at].ends_with([':', '_']))
            {
                wrong.push(format!("src/{shown}: `{name}` belongs to {homes:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files of `src` that open others than `input` does: what belongs to the program, or to the machine.
const OPENERS: &[&str] = &[
    "host/memo_store.rs",
    "budget/available.rs",
    "cli/benchmark_workloads.rs",
    "cli/doctor.rs",
    "cli/machine.rs",
    "input.rs",
    "results/dir.rs",
];

#[test]
fn what_users_name_is_opened_in_one_place() {
    let mut wrong = Vec::new();
    for (_, _, shown, code) in files() {
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
         use super::super::workload::Flow; let c = '\"'; use hyperfold_config::spec; let r = r#\"crate::cli\"#; let e = '\\''; crate::sweep::x();",
    );
    let mut found = imports(&code, 2);
    found.sort();
    assert_eq!(found, ["engine", "spec", "sweep", "topology", "units", "workload"]);
}
