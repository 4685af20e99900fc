//! Every public type has a name of its own: a reader who finds a name knows which type is meant.
//!
//! Computed from the code of `src`. What is `pub`, to whomever, counts, and so do the rows that `rows!` declares.

use std::collections::BTreeMap;

use crate::circles::{is_name, tokens};
use crate::crates::{rust_files, source, strip};

/// Words that begin the definition of a type.
const DEFINES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Names of the public types that the code defines, with their lines.
fn public_types(code: &str) -> Vec<(String, usize)> {
    let tokens = tokens(code);
    let line = |name: &str| 1 + code[..name.as_ptr() as usize - code.as_ptr() as usize].matches('\n').count();
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let rest = &tokens[at..];
        if rest[0] == "pub" {
            let visible = if rest.get(1) == Some(&"(") { rest.iter().position(|t| *t == ")").unwrap_or(0) } else { 0 };
            if let [_, define, name, ..] = rest[visible..]
                && DEFINES.contains(&define)
                && is_name(name)
            {
                found.push((name.to_string(), line(name)));
            }
        }
        if rest.len() > 3 && rest[..3] == ["rows", "!", "{"] {
            found.extend(declared_rows(&rest[3..]).into_iter().map(|name| (name.to_string(), line(name))));
        }
    }
    found
}

/// Names of the rows in `rows! { ... }`: what stands before a brace at the outermost level.
fn declared_rows<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let (mut depth, mut names) = (0, Vec::new());
    for pair in tokens.windows(2) {
        match pair[0] {
            "}" if depth == 0 => break,
            "{" => depth += 1,
            "}" => depth -= 1,
            name if depth == 0 && pair[1] == "{" && is_name(name) => names.push(name),
            _ => {}
        }
    }
    names
}

#[test]
fn names_of_public_types_are_unique() {
    let mut paths = Vec::new();
    rust_files(&source(), &mut paths);
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in paths {
        let shown = path.strip_prefix(source()).unwrap().display().to_string();
        for (name, line) in public_types(&strip(&std::fs::read_to_string(&path).unwrap())) {
            places.entry(name).or_default().push(format!("src/{shown}:{line}"));
        }
    }
    assert!(places.len() > 400, "{} types", places.len());
    let twice: Vec<String> = places
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert!(twice.is_empty(), "public types of one name; qualify one by what it is:\n{}", twice.join("\n"));
}

#[test]
fn definitions_are_found_however_they_are_written() {
    let code = "pub struct A;\npub(crate) enum B { C }\nstruct D;\npub(in crate::x) trait E {}\npub fn f() {}\nimpl E for D { type G = u8; }\n\
                rows! {\n    \"prefix\";\n    H { a: u32, b: [u64; 2] }\n    I { c: u32 }\n}\npub type J<T> = T;\nmacro_rules! rows { ($k:ident) => { pub struct $k; } }";
    let expected = [("A", 1), ("B", 2), ("E", 4), ("H", 9), ("I", 10), ("J", 12)].map(|(n, l)| (n.to_string(), l));
    assert_eq!(public_types(code), expected);
}
