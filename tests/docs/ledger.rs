//! The ledger of instructions: its cases and its file fit each other, and `scripts/ledger.py` tells what became slower.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::pages::root;
use crate::support::program::{Folder, Ran, hyperfold, seen};

/// Runs the script; `tools` is a folder whose programs come before the system's.
fn ledger(tools: &Path, args: &[&str]) -> Ran {
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("python3");
    command.arg("scripts/ledger.py").args(args).current_dir(root()).env("PATH", path);
    seen(args, command.output().expect("python3 is here"))
}

fn first_words(text: &str) -> BTreeSet<String> {
    text.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_whitespace().next()).map(String::from).collect()
}

#[test]
fn the_comparison_tells_what_is_slower() {
    let ran = ledger(Path::new("/"), &["--selftest"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn every_case_has_a_line_and_every_sweep_a_case() {
    let cases = ledger(Path::new("/"), &["--list"]).stdout;
    let lines = fs::read_to_string(root().join("benches/instructions.txt")).unwrap();
    assert_eq!(
        first_words(&cases),
        first_words(&lines),
        "cases of scripts/ledger.py, lines of benches/instructions.txt"
    );
    assert!(cases.lines().count() >= 20, "{cases}");
    let script = fs::read_to_string(root().join("scripts/ledger.py")).unwrap();
    for entry in fs::read_dir(root().join("benches/ledger")).unwrap() {
        let sweep = entry.unwrap().file_name().into_string().unwrap();
        // Sweeps that only make what others read are named by no command of the list.
        let used = cases.contains(&sweep) || script.contains(&format!("run(\"{}\")", sweep.trim_end_matches(".toml")));
        assert!(used, "no case of scripts/ledger.py runs benches/ledger/{sweep}");
        let plan = hyperfold(root(), &["plan", &format!("benches/ledger/{sweep}"), "--limit", "1"]);
        assert!(plan.code == 0 && plan.stdout.contains("\ncannot run: 0\n"), "{sweep}: {}{}", plan.stdout, plan.stderr);
    }
}

#[cfg(target_os = "linux")]
/// Stands in for valgrind: says that every command took so many instructions.
fn stand_in(folder: &Folder, instructions: u64) {
    use std::os::unix::fs::PermissionsExt;
    folder.write("valgrind", &format!("#!/bin/sh\necho '==1== Collected : {instructions}' >&2\n"));
    folder.write("hyperfold", "#!/bin/sh\n");
    for name in ["valgrind", "hyperfold"] {
        fs::set_permissions(folder.file(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_slow_down_of_five_percent_fails_and_can_be_recorded() {
    let folder = Folder::new(&[]);
    let [binary, file] = ["hyperfold", "ledger.txt"].map(|name| folder.file(name).display().to_string());
    let count = |instructions: u64, more: &[&str]| {
        stand_in(&folder, instructions);
        ledger(folder.path(), &[&[binary.as_str(), "--file", &file, "--case", "pause-storm"], more].concat())
    };
    let absent = count(1_000_000, &[]);
    assert!(absent.code == 1 && absent.stdout.contains("has no line"), "{absent:?}");
    assert_eq!(count(1_000_000, &["--record", "first count"]).code, 0);
    assert!(folder.text("ledger.txt").contains("1,000,000  first count"), "{}", folder.text("ledger.txt"));
    assert_eq!(count(1_029_000, &[]).code, 0, "3 % is allowed");
    let slower = count(1_050_000, &[]);
    assert!(slower.code == 1 && slower.stdout.contains("MORE than 3% above 1,000,000 (first count)"), "{slower:?}");
    let faster = count(940_000, &[]);
    assert!(faster.code == 0 && faster.stdout.contains("well below"), "{faster:?}");
    assert_eq!(count(1_050_000, &["--record", "because it does more"]).code, 0);
    assert!(folder.text("ledger.txt").contains("1,050,000  because it does more"), "{}", folder.text("ledger.txt"));
    assert_eq!(count(1_050_000, &[]).code, 0);
    folder.write("ledger.txt", "pause-storm many\n");
    let wrong = count(1_050_000, &[]);
    assert!(wrong.code == 2 && wrong.stderr.contains("ledger.txt:1: `pause-storm many`"), "{wrong:?}");
}
