//! Habits: how subjects of commits are worded, what workflows may do, what forms ask for.

use std::fs;
use std::process::Command;

use crate::pages::root;
use crate::support::program::Folder;

/// Publishers of the actions that workflows use.
const PUBLISHERS: &[&str] = &["EmbarkStudios", "PyO3", "Swatinem", "actions"];

/// The YAML files of a folder of `.github`, by name.
fn yaml_files(folder: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join(".github").join(folder)).unwrap().map(|e| e.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|e| e == "yml"));
    files.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

/// Whether a subject passes, and what is said of it.
fn checked(subject: &str) -> (bool, String) {
    let folder = Folder::new(&[("message", &format!("{subject}\n\nA body: With. Capitals.\n"))]);
    let script = root().join("scripts/check-subjects.sh");
    let ran =
        Command::new("bash").arg(script).arg("--message").arg(folder.file("message")).output().expect("bash is here");
    (ran.status.success(), String::from_utf8(ran.stderr).unwrap())
}

/// The commands of a workflow: what follows `run:`, on its line or indented below it.
fn commands(workflow: &str) -> Vec<String> {
    let (mut found, mut inside): (Vec<String>, Option<usize>) = (Vec::new(), None);
    for line in workflow.lines() {
        let text = line.trim_start().trim_start_matches("- ");
        let indent = line.len() - text.len();
        if let Some(command) = text.strip_prefix("run: ") {
            found.push(command.into());
            inside = Some(indent);
        } else if inside.is_some_and(|run| indent > run) {
            found.last_mut().expect("a command is open").push_str(line);
        } else {
            inside = None;
        }
    }
    found
}

#[test]
fn commands_of_a_workflow_are_found() {
    let text = "steps:\n  - run: a ${{ x }}\n  - name: n\n    run: |\n      b\n      c\n    env:\n      D: ${{ y }}\n";
    assert_eq!(commands(text), ["a ${{ x }}", "|      b      c"]);
}

#[test]
fn subjects_of_commits_name_an_area_and_what_changes() {
    for subject in [
        "engine: a pause ends in the same step",
        "cli, report: tables show units",
        "build: version 0.2.0",
        "ci: macOS and Windows",
        "llm: SimAI's files with comments",
        "Merge branch 'main' of elsewhere",
        "Revert \"engine: a pause ends in the same step\"",
    ] {
        let (passes, said) = checked(subject);
        assert!(passes, "{said}");
    }
    let long = format!("docs: {}", "a".repeat(95));
    for (subject, reason) in [
        ("a pause ends in the same step", "no `area: `"),
        ("wip: x", "no area wip"),
        ("cli, plots: x", "no area plots"),
        ("engine: Add a pause", "`Add` begins with a capital"),
        ("engine: a pause ends.", "a full stop"),
        (&long, "101 characters, at most 100"),
    ] {
        let (passes, said) = checked(subject);
        assert!(!passes && said.contains(reason), "{subject}: {said}");
    }
}

#[test]
fn workflows_have_few_rights_and_actions_of_known_publishers() {
    let workflows = yaml_files("workflows");
    assert_eq!(workflows.len(), 2);
    let mut actions = 0;
    for (name, text) in &workflows {
        assert!(text.contains("\npermissions:\n  contents: read\n"), "{name}: rights of all jobs");
        for line in text.lines() {
            if let Some(action) = line.split_once("uses: ").map(|(_, action)| action) {
                let (publisher, rest) = action.split_once('/').unwrap();
                let version = rest.split_once("@v").map(|(_, version)| version).unwrap_or_default();
                let is_major = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
                assert!(PUBLISHERS.contains(&publisher) && is_major, "{name}: {action}");
                actions += 1;
            }
            for word in line.split([' ', '"', ',', '[', ']', '(']) {
                let is_script = word.starts_with("scripts/") || word == ".ci/run";
                assert!(!is_script || root().join(word).is_file(), "{name}: {word} is not there");
            }
        }
        for command in commands(text) {
            // What others wrote, such as a branch's name, reaches a command by its environment only.
            assert!(!command.contains("${{"), "{name}: {command}");
        }
        let checkouts = text.matches("actions/checkout@").count();
        assert_eq!(
            text.matches("persist-credentials: false").count(),
            checkouts,
            "{name}: a token stays in a checkout"
        );
    }
    assert!(actions > 10, "{actions}");
}

#[test]
fn the_container_of_the_workflow_has_the_rust_of_the_manifest() {
    let workflow = fs::read_to_string(root().join(".github/workflows/ci.yml")).unwrap();
    let cargo: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let version = cargo["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(workflow.contains(&format!("container: rust:{version}-")), "container: rust:{version}-");
}

#[test]
fn forms_ask_for_what_is_needed() {
    let forms = yaml_files("ISSUE_TEMPLATE");
    assert_eq!(forms.len(), 3);
    for (form, fields) in [
        ("bug.yml", &["version", "sweep", "command", "came", "expected"][..]),
        ("wrong-number.yml", &["version", "sweep", "number", "truth", "source"]),
        ("feature.yml", &["question", "today"]),
    ] {
        let (_, text) = forms.iter().find(|(name, _)| name.ends_with(form)).unwrap();
        for field in fields {
            let asked = text.split("- type: ").find(|part| part.contains(&format!("id: {field}\n")));
            assert!(asked.is_some_and(|part| part.contains("required: true")), "{form}: {field}");
        }
    }
}
