//! What the page on schedulers, placements, failure models and routing policies promises: one is a file and a line of the registry, and its name stands nowhere else.

use std::fs;
use std::path::{Path, PathBuf};

use crate::crates::{rust_files, source};

/// Names in lines of the registry, with the module that makes each, by the macro that has the line.
fn lines() -> Vec<(String, String, String)> {
    let text = fs::read_to_string(source().join("base/registries.rs")).unwrap();
    let (mut found, mut folder) = (Vec::new(), None);
    for line in text.lines() {
        let line = line.trim();
        if let Some(kind) = line.strip_prefix("macro_rules! for_each_") {
            folder = Some(kind.split(' ').next().unwrap().to_string());
        } else if let (Some(folder), true) = (&folder, line.starts_with('"')) {
            let name = line.split('"').nth(1).unwrap().to_string();
            let before = line.split("::").find(|part| !part.ends_with("Box")).unwrap();
            let module = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_string();
            found.push((folder.clone(), name, module));
        }
    }
    found
}

fn folder(kind: &str) -> PathBuf {
    match kind {
        "scheduler" => source().join("cluster/queue_order"),
        "placement" => source().join("cluster/placement"),
        "failure_model" => source().join("cluster/failure"),
        "routing_policy" => source().join("network/routing/policy"),
        other => panic!("for_each_{other} is not on docs/how-to/own-scheduler.md"),
    }
}

#[test]
fn registries_lead_to_a_file_for_each_line() {
    let lines = lines();
    assert!(lines.len() >= 14, "{lines:?}");
    for (kind, name, module) in &lines {
        let file = folder(kind).join(format!("{module}.rs"));
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {}: {e}", file.display()));
        assert!(text.contains(&format!("= \"{name}\"")), "{} says which value it is", file.display());
        // Nobody else's file: the folder has one for each line, and mod.rs.
        let files = fs::read_dir(folder(kind)).unwrap().count();
        assert_eq!(files, 1 + lines.iter().filter(|(of, ..)| of == kind).count(), "{kind}");
    }
}

#[test]
fn registries_names_stand_in_their_line_and_their_file_alone() {
    let mut files = Vec::new();
    rust_files(&source(), &mut files);
    // Keys say under which of them they have an effect, and which is the default.
    let may = ["base/registries.rs", "config/spec/key_table.rs"];
    let shared = ["topology", "random", "rail", "spread", "packed", "priority", "destination", "reps", "mixed"];
    for (kind, name, module) in lines() {
        // Words that other keys or messages have, too.
        if shared.contains(&name.as_str()) {
            continue;
        }
        let own = folder(&kind).join(format!("{module}.rs"));
        for file in &files {
            let shown = file.strip_prefix(source()).unwrap().to_string_lossy().replace('\\', "/");
            if *file == own || may.contains(&shown.as_str()) || shown.ends_with("tests.rs") {
                continue;
            }
            let text = fs::read_to_string(file).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let literal = format!("\"{name}\"");
            let at = code.lines().find(|l| l.contains(&literal) && !l.trim_start().starts_with("//"));
            assert!(at.is_none(), "{shown}: {}", at.unwrap_or_default());
        }
    }
}

#[test]
fn registries_are_on_the_page_with_their_keys() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to/own-scheduler.md");
    let text = fs::read_to_string(page).unwrap();
    for (key, folder) in [
        ("scheduler.policy", "src/cluster/queue_order"),
        ("scheduler.placement", "src/cluster/placement"),
        ("failures.model", "src/cluster/failure"),
        ("routing.policy", "src/network/routing/policy"),
    ] {
        assert!(text.contains(&format!("`{key}` | `{folder}`")), "{key}");
    }
}
