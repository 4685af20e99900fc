//! No circle of imports between files of `src`, computed from the code; and no type whose methods are spread over files.
//!
//! Every file is a node, `mod.rs` and `lib.rs` too. An edge is any path that leads into another file, in a `use` or in the code. What a `mod.rs` only passes
//! on (`mod`, `pub use`) is no edge: who imports a name through it depends on the file that defines the name. A path of a macro's body (`$crate`) is none.

use std::collections::{BTreeMap, BTreeSet};

use crate::crates::{crates_of_the_workspace, rust_files, source, strip};

type Path = Vec<String>;

/// Crates whose `lib.rs` only lists modules, each of which is a whole of its own.
const MODULES_SIDE_BY_SIDE: &[&str] = &["analysis", "base", "config", "llm", "network", "report"];

/// Words before the name of what a file defines.
const DEFINE: &[&str] = &["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

struct File {
    /// Whether it is a `mod.rs` or `lib.rs`, whose re-exports are no edges.
    is_gathering: bool,
    code: String,
    /// Names of what it defines itself.
    defined: BTreeSet<String>,
}

impl File {
    fn new(is_gathering: bool, code: &str) -> File {
        let defined = if is_gathering { defined(code) } else { BTreeSet::new() };
        File { is_gathering, code: code.to_string(), defined }
    }
}

/// Files by the path of their module. Test modules are left out.
fn files() -> BTreeMap<Path, File> {
    let mut paths = Vec::new();
    rust_files(&source(), &mut paths);
    let mut files = BTreeMap::new();
    for path in paths {
        let shown = path.strip_prefix(source()).unwrap().to_string_lossy().replace('\\', "/");
        // The program only calls the library, whose root it would take the place of.
        if shown.ends_with("tests.rs") || shown == "main.rs" {
            continue;
        }
        let mut module: Path = shown.trim_end_matches(".rs").split('/').map(str::to_string).collect();
        let is_gathering = ["mod", "lib"].contains(&module.last().unwrap().as_str());
        if is_gathering {
            module.pop();
        }
        let text = strip(&std::fs::read_to_string(&path).unwrap());
        files.insert(module, File::new(is_gathering, without_tests(&text)));
    }
    files
}

/// The code before the tests that stand in the file itself. A test module in a file of its own is one line among the modules.
fn without_tests(code: &str) -> &str {
    let begin = "#[cfg(test)]\nmod ";
    let is_name_part = |c: char| c.is_alphanumeric() || c == '_';
    let stands_here = |i: usize| code[i + begin.len()..].trim_start_matches(is_name_part).starts_with(" {");
    code.match_indices(begin).find(|(i, _)| stands_here(*i)).map_or(code, |(i, _)| &code[..i])
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

/// A path in the code, and the name that it has there.
#[derive(Debug)]
struct Import {
    path: Path,
    name: String,
    /// Whether it is a `pub use`.
    is_passed_on: bool,
}

/// The paths of a tree such as `a::{b, c::{d, e as f}}` that begins at token `i`, each with its name; where the tree ends.
fn tree(tokens: &[&str], mut i: usize, before: &[String], into: &mut Vec<(Path, String)>) -> usize {
    let mut path = before.to_vec();
    let mut name = None;
    while i < tokens.len() {
        match tokens[i] {
            "{" => {
                i += 1;
                while i < tokens.len() && tokens[i] != "}" {
                    i = tree(tokens, i, &path, into);
                    if tokens.get(i) == Some(&",") {
                        i += 1;
                    }
                }
                return i + 1;
            }
            "as" => {
                name = tokens.get(i + 1).map(|t| t.to_string());
                i += 2;
            }
            "*" => {
                name = Some("*".to_string());
                i += 1;
            }
            "::" => i += 1,
            part if is_name(part) => {
                // A name that follows another is none of the path.
                if i > 0 && is_name(tokens[i - 1]) && tokens[i - 1] != "use" && path.len() > before.len() {
                    break;
                }
                // `a::{self}` is `a`.
                if part != "self" || path.is_empty() {
                    path.push(part.to_string());
                }
                i += 1;
            }
            _ => break,
        }
    }
    let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
    into.push((path, name));
    i
}

/// Every path in `use` items, and every other one that begins with `crate`, `super`, `self` or one of `children`.
fn imports(code: &str, children: &BTreeSet<String>) -> Vec<Import> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let begins = (["crate", "super", "self"].contains(&tokens[i]) || children.contains(tokens[i]))
            && tokens.get(i + 1) == Some(&"::")
            && (i == 0 || !["::", "$"].contains(&tokens[i - 1]));
        if tokens[i] == "use" {
            let is_passed_on = i > 0 && ["pub", ")"].contains(&tokens[i - 1]);
            let mut paths = Vec::new();
            i = tree(&tokens, i + 1, &[], &mut paths);
            found.extend(paths.into_iter().map(|(path, name)| Import { path, name, is_passed_on }));
        } else if begins {
            let mut path = vec![tokens[i].to_string()];
            while tokens.get(i + 1) == Some(&"::") && tokens.get(i + 2).is_some_and(|t| is_name(t)) {
                path.push(tokens[i + 2].to_string());
                i += 2;
            }
            let name = path.last().cloned().unwrap_or_default();
            found.push(Import { path, name, is_passed_on: false });
            i += 1;
        } else {
            i += 1;
        }
    }
    found
}

/// Names of what stands in a file outside all braces.
fn defined(code: &str) -> BTreeSet<String> {
    let tokens = tokens(code);
    let mut depth = 0;
    let mut names = BTreeSet::new();
    for pair in tokens.windows(2) {
        match pair[0] {
            "{" => depth += 1,
            "}" => depth -= 1,
            word if depth == 0 && DEFINE.contains(&word) => {
                names.insert(pair[1].to_string());
            }
            _ => {}
        }
    }
    names
}

/// Names of the modules that stand in files of a module's folder.
fn children(files: &BTreeMap<Path, File>, module: &[String]) -> BTreeSet<String> {
    let below = files.keys().filter(|m| m.len() == module.len() + 1 && m.starts_with(module));
    below.map(|m| m[module.len()].clone()).collect()
}

/// A path from the top of `src`, if it begins in this crate.
fn absolute(path: &[String], module: &[String], children: &BTreeSet<String>, crates: &[String]) -> Option<Path> {
    let supers = path.iter().take_while(|s| *s == "super").count();
    match path.first().map(String::as_str)? {
        // Modules of the root package stand in `src` itself.
        "crate" => {
            Some(module.iter().take(1).filter(|first| crates.contains(first)).chain(&path[1..]).cloned().collect())
        }
        "self" => Some(module.iter().chain(&path[1..]).cloned().collect()),
        "super" if supers <= module.len() => {
            Some(module[..module.len() - supers].iter().chain(&path[supers..]).cloned().collect())
        }
        first if children.contains(first) => Some(module.iter().chain(path).cloned().collect()),
        _ => None,
    }
}

/// What each gathering file passes on, by its module: names and where they lead.
type PassedOn = BTreeMap<Path, Vec<(String, Path)>>;

fn passed_on(files: &BTreeMap<Path, File>, crates: &[String]) -> PassedOn {
    let of_file = |(module, file): (&Path, &File)| {
        let children = children(files, module);
        let imports = imports(&file.code, &children).into_iter().filter(|import| import.is_passed_on);
        let leads = imports.filter_map(|i| Some((i.name, absolute(&i.path, module, &children, crates)?))).collect();
        (module.clone(), leads)
    };
    files.iter().filter(|(_, file)| file.is_gathering).map(of_file).collect()
}

/// The file that a path leads into, through whatever passes the name on.
fn file_of<'a>(files: &'a BTreeMap<Path, File>, passed: &PassedOn, path: &[String], depth: usize) -> Option<&'a Path> {
    let (module, file) = (0..=path.len()).rev().find_map(|n| files.get_key_value(&path[..n]))?;
    if !file.is_gathering {
        return Some(module);
    }
    let name = path.get(module.len())?;
    if file.defined.contains(name) {
        return Some(module);
    }
    let rest = &path[module.len()..];
    let follow = |lead: &Path, rest: &[String]| {
        let further: Path = lead.iter().chain(rest).cloned().collect();
        if depth == 0 { None } else { file_of(files, passed, &further, depth - 1) }
    };
    let leads = passed.get(module)?;
    let named = leads.iter().filter(|(given, _)| given == name).find_map(|(_, lead)| follow(lead, &rest[1..]));
    named.or_else(|| leads.iter().filter(|(given, _)| given == "*").find_map(|(_, lead)| follow(lead, rest)))
}

/// From each file to those of its crate that its paths lead into. Between crates the compiler allows no circle.
fn edges<'a>(files: &'a BTreeMap<Path, File>, crates: &[String]) -> BTreeMap<&'a Path, BTreeSet<&'a Path>> {
    let passed = passed_on(files, crates);
    let mut edges = BTreeMap::new();
    for (module, file) in files {
        let children = children(files, module);
        let to: &mut BTreeSet<&Path> = edges.entry(module).or_default();
        for import in imports(&file.code, &children) {
            if file.is_gathering && import.is_passed_on {
                continue;
            }
            let path = absolute(&import.path, module, &children, crates);
            to.extend(path.and_then(|path| file_of(files, &passed, &path, 8)).filter(|target| *target != module));
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
    let file = |code: &str| File::new(false, code);
    let gathering = |code: &str| File::new(true, code);
    let module = |name: &str| name.split("::").map(str::to_string).collect::<Path>();
    let files = BTreeMap::from([
        (module("a"), gathering("mod x; mod y; pub use x::X; pub(crate) use y::{Y, Z as V};")),
        (module("a::x"), file("use std::{fmt, io as b}; use super::{y::{Y, Z as x}, X};")),
        (module("a::y"), file("fn f() { let v = crate::b::B::new(); }")),
        (module("b"), file("pub(crate) use crate::{c, a::{self, X}};")),
        (module("c"), file("use crate::d::*; fn f(d: bool) {}")),
        (module("d"), file("use std::collections::BTreeMap;")),
        // A parent that calls its child, which uses what the parent defines.
        (module("e"), gathering("mod p; struct E; fn f() { p::run() } macro_rules! m { () => { $crate::g::G } }")),
        (module("e::p"), file("use super::E;")),
        // A parent that only passes on.
        (module("g"), gathering("mod p; mod q; pub use p::{P, P2 as G}; pub use q::*;")),
        (module("g::p"), file("use super::Q; struct P;")),
        (module("g::q"), file("struct Q;")),
    ]);
    assert_eq!(circles(&edges(&files, &[])), [vec!["a/x", "a/y", "b"], vec!["e", "e/p"]]);
    let passed = passed_on(&files, &[]);
    let leads = |path: &str| file_of(&files, &passed, &module(path), 8).map(|found| found.join("/"));
    assert_eq!([leads("a::V"), leads("g::G"), leads("g::Q")], ["a/y", "g/p", "g/q"].map(|s| Some(s.to_string())));
    assert_eq!(leads("g::nothing").as_deref(), Some("g/q"), "what a glob may hold counts as held");
    assert_eq!(
        ["a\n#[cfg(test)]\nmod tests;\nb", "a\n#[cfg(test)]\nmod tests {\nb"].map(without_tests),
        ["a\n#[cfg(test)]\nmod tests;\nb", "a\n"]
    );
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
