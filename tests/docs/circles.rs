//! No circle of imports between files of `src`, computed from the code; and no type whose methods are spread over files.
//!
//! A file is a node; `mod.rs`, `lib.rs` and `main.rs`, which only gather, are none. An edge is any path that leads into another file, in a `use` or in the code.

use std::collections::{BTreeMap, BTreeSet};

use crate::crates::{crates_of_the_workspace, rust_files, source, strip};

type Path = Vec<String>;

/// Crates whose `lib.rs` only lists modules, each of which is a whole of its own.
const MODULES_SIDE_BY_SIDE: &[&str] = &["analysis", "base", "config", "llm", "network", "report"];

struct File {
    is_gathering: bool,
    code: String,
}

/// Files by the path of their module. Test modules are left out.
fn files() -> BTreeMap<Path, File> {
    let mut paths = Vec::new();
    rust_files(&source(), &mut paths);
    let mut files = BTreeMap::new();
    for path in paths {
        let shown = path.strip_prefix(source()).unwrap().to_string_lossy().replace('\\', "/");
        if shown.ends_with("tests.rs") {
            continue;
        }
        let mut module: Path = shown.trim_end_matches(".rs").split('/').map(str::to_string).collect();
        let is_gathering = ["mod", "lib", "main"].contains(&module.last().unwrap().as_str());
        if is_gathering {
            module.pop();
        }
        let text = strip(&std::fs::read_to_string(&path).unwrap());
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap().to_string();
        files.insert(module, File { is_gathering, code });
    }
    files
}

/// Names, `::`, `->` and single signs.
pub fn tokens(code: &str) -> Vec<&str> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(c) = code[at..].chars().next() {
        let rest = &code[at..];
        let len = if c.is_alphanumeric() || c == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") || rest.starts_with("->") {
            2
        } else {
            c.len_utf8()
        };
        if !c.is_whitespace() {
            out.push(&rest[..len]);
        }
        at += len;
    }
    out
}

pub fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The paths of a tree such as `a::{b, c::{d, e as f}}` that begins at `at`; where it ends.
fn tree(tokens: &[&str], mut at: usize, before: &[String], into: &mut Vec<Path>) -> usize {
    let mut path = before.to_vec();
    while at < tokens.len() {
        match tokens[at] {
            "{" => {
                at += 1;
                while at < tokens.len() && tokens[at] != "}" {
                    at = tree(tokens, at, &path, into);
                    if tokens.get(at) == Some(&",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "as" => at += 2,
            "::" | "*" => at += 1,
            name if is_name(name) => {
                // A name that follows another is none of the path.
                if at > 0 && is_name(tokens[at - 1]) && tokens[at - 1] != "use" && path.len() > before.len() {
                    break;
                }
                path.push(name.to_string());
                at += 1;
            }
            _ => break,
        }
    }
    into.push(path);
    at
}

/// Every path in `use` items, and every other one that begins with `crate`, `super` or `self`.
fn paths(code: &str) -> Vec<Path> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let begins = ["crate", "super", "self"].contains(&tokens[at])
            && tokens.get(at + 1) == Some(&"::")
            && (at == 0 || tokens[at - 1] != "::");
        if tokens[at] == "use" {
            at = tree(&tokens, at + 1, &[], &mut found);
        } else if begins {
            let mut path = vec![tokens[at].to_string()];
            while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|t| is_name(t)) {
                path.push(tokens[at + 2].to_string());
                at += 2;
            }
            found.push(path);
            at += 1;
        } else {
            at += 1;
        }
    }
    found
}

/// From each file to those of its crate that its paths lead into. Between crates the compiler allows no circle.
fn edges<'a>(files: &'a BTreeMap<Path, File>, crates: &[String]) -> BTreeMap<&'a Path, BTreeSet<&'a Path>> {
    let mut edges = BTreeMap::new();
    for (module, file) in files.iter().filter(|(_, f)| !f.is_gathering) {
        let to: &mut BTreeSet<&Path> = edges.entry(module).or_default();
        for path in paths(&file.code) {
            let supers = path.iter().take_while(|s| *s == "super").count();
            let full: Path = match path.first().map(String::as_str) {
                // Modules of the root package stand in `src` itself.
                Some("crate") => {
                    module.iter().take(1).filter(|first| crates.contains(first)).chain(&path[1..]).cloned().collect()
                }
                Some("self") => module.iter().chain(&path[1..]).cloned().collect(),
                Some("super") if supers <= module.len() => {
                    module[..module.len() - supers].iter().chain(&path[supers..]).cloned().collect()
                }
                _ => continue,
            };
            let target = (1..=full.len()).rev().find_map(|n| files.get_key_value(&full[..n]));
            if let Some((target, f)) = target
                && target != module
                && !f.is_gathering
            {
                to.insert(target);
            }
        }
    }
    edges
}

/// Groups of files that reach each other.
fn circles(edges: &BTreeMap<&Path, BTreeSet<&Path>>) -> Vec<Vec<String>> {
    let reach = |from: &Path| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(file) = todo.pop() {
            for &to in edges.get(&file).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    todo.push(to.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Path, BTreeSet<Path>> = edges.keys().map(|&f| (f, reach(f))).collect();
    let mut circles = BTreeSet::new();
    for (&from, to) in &reached {
        if to.contains(from) {
            let circle: Vec<String> = to.iter().filter(|t| reached[*t].contains(from)).map(|t| t.join("/")).collect();
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let files = files();
    assert!(files.len() > 100, "{} files", files.len());
    let circles = circles(&edges(&files, &crates_of_the_workspace()));
    let shown: Vec<String> = circles.iter().map(|c| format!("{} files: {}", c.len(), c.join(", "))).collect();
    assert!(shown.is_empty(), "circles of imports:\n{}", shown.join("\n"));
}

#[test]
fn a_circle_is_found_however_the_paths_are_written() {
    let file = |code: &str| File { is_gathering: false, code: code.to_string() };
    let module = |name: &str| name.split("::").map(str::to_string).collect::<Path>();
    let files = BTreeMap::from([
        (module("a"), File { is_gathering: true, code: "pub mod x; use x::X;".into() }),
        (module("a::x"), file("use std::{fmt, io as b}; use super::{y::{Y, Z as x}, X};")),
        (module("a::y"), file("fn f() { let v = crate::b::B::new(); }")),
        (module("b"), file("pub(crate) use crate::{c, a::{self, x::X}};")),
        (module("c"), file("use crate::d::*; fn f(d: bool) {}")),
        (module("d"), file("use std::collections::BTreeMap;")),
    ]);
    assert_eq!(circles(&edges(&files, &[])), [["a/x", "a/y", "b"]]);
}

/// Names of the types that a file has `impl` blocks of their own for (not of a trait).
fn own_impls(code: &str) -> BTreeSet<String> {
    let tokens = tokens(code);
    let mut names = BTreeSet::new();
    for at in
        (0..tokens.len()).filter(|&i| tokens[i] == "impl" && (i == 0 || ["}", ";", "]", "{"].contains(&tokens[i - 1])))
    {
        let (mut depth, mut name, mut of_trait) = (0, None, false);
        for &token in tokens[at + 1..].iter().take_while(|t| **t != "{") {
            match token {
                "<" => depth += 1,
                ">" => depth -= 1,
                "for" if depth == 0 => of_trait = true,
                "where" => break,
                t if depth == 0 && is_name(t) => name = Some(t),
                _ => {}
            }
        }
        if let (Some(name), false) = (name, of_trait) {
            names.insert(name.to_string());
        }
    }
    names
}

#[test]
fn no_type_has_its_methods_in_more_than_two_files() {
    let files = files();
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (module, file) in files.iter().filter(|(module, _)| !module.is_empty()) {
        for name in own_impls(&file.code) {
            // Private types of one name in two crates, or in two modules at the top of one, are two types.
            let top = if MODULES_SIDE_BY_SIDE.contains(&module[0].as_str()) { 2 } else { 1 };
            places.entry((module[..top.min(module.len())].join("/"), name)).or_default().push(module.join("/"));
        }
    }
    let spread: Vec<String> =
        places.iter().filter(|(_, f)| f.len() > 2).map(|((_, name), f)| format!("{name}: {}", f.join(", "))).collect();
    assert!(spread.is_empty(), "types with methods in more than two files:\n{}", spread.join("\n"));
    assert_eq!(
        own_impls(
            "impl<T: Fn(u8) -> u8> A<T> { fn f() -> impl Iterator<Item = B> {} } impl fmt::Debug for C {} impl D {}"
        ),
        BTreeSet::from(["A".to_string(), "D".to_string()])
    );
}
