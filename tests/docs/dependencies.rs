//! What the program is built of: licences, sources and bans of `deny.toml`, for the crates that this machine builds. `cargo deny` checks the other
//! platforms' too (`.ci/run`).

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

fn deny() -> toml::Table {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/deny.toml")).unwrap();
    text.parse().unwrap()
}

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo and rustc are here");
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Whether a package is one of this workspace.
fn ours(package: &Value) -> bool {
    package["source"].is_null() && package["name"].as_str().is_some_and(|name| name.starts_with("hyperfold"))
}

/// Every package of the build, those of this workspace left out.
fn packages() -> Vec<Value> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = output(&rustc, &["-vV"]);
    let host = version.lines().find_map(|l| l.strip_prefix("host: ")).expect("rustc says its host");
    let text = output(
        env!("CARGO"),
        &["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host],
    );
    let metadata: Value = serde_json::from_str(&text).unwrap();
    let used: BTreeSet<&str> =
        metadata["resolve"]["nodes"].as_array().unwrap().iter().map(|n| n["id"].as_str().unwrap()).collect();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.filter(|p| used.contains(p["id"].as_str().unwrap()) && !ours(p)).cloned().collect()
}

/// Whether a licence expression can be met with `allowed` ones. `A/B` is how old crates write `A OR B`.
fn met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = either(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "`{expression}` is not understood");
    met
}

fn either(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= both(words, at, allowed);
    }
    met
}

fn both(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed);
    }
    met
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    if word == "(" {
        let met = either(words, at, allowed);
        assert_eq!(words.get(*at), Some(&")"), "a parenthesis is open");
        *at += 1;
        return met;
    }
    // An exception only permits more.
    if words.get(*at) == Some(&"WITH") {
        *at += 2;
    }
    allowed.contains(word)
}

#[test]
fn licences_sources_and_bans_are_kept() {
    let deny = deny();
    let texts = |list: &toml::Value| {
        list.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_string()).collect::<BTreeSet<_>>()
    };
    let allowed = texts(&deny["licenses"]["allow"]);
    // A ban with wrappers is for cargo deny, which knows who depends on whom.
    let bans = deny["bans"]["deny"].as_array().unwrap().iter().filter(|ban| ban.get("wrappers").is_none());
    let banned: BTreeSet<&str> = bans.map(|ban| ban["crate"].as_str().unwrap()).collect();
    let packages = packages();
    assert!(packages.len() > 50 && banned.len() > 3 && allowed.contains("MIT"), "the lists are read");
    let mut wrong = Vec::new();
    for package in &packages {
        let (name, source) = (package["name"].as_str().unwrap(), package["source"].as_str().unwrap_or("a path"));
        let licence = package["license"].as_str().unwrap_or("none");
        if !met(licence, &allowed) {
            wrong.push(format!("{name}: licence {licence}"));
        }
        if !source.starts_with("registry+") || source != packages[0]["source"] {
            wrong.push(format!("{name}: from {source}"));
        }
        if banned.contains(name) {
            wrong.push(format!("{name}: banned"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn licence_expressions_are_read() {
    let allowed: BTreeSet<String> = ["MIT", "Apache-2.0", "Unicode-3.0"].map(String::from).into();
    for good in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(MIT OR GPL-3.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
    ] {
        assert!(met(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", "none"] {
        assert!(!met(bad, &allowed), "{bad}");
    }
}
