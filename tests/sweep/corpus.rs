//! One broken file for each diagnostic of sweep files and of the reference's configuration files, and fuzzing of the parsers.

use std::path::{Path, PathBuf};

use hyperfold_config::spec::{read_ns3_config, template};
use hyperfold_config::sweep::{self, SetOverrides};
use proptest::prelude::*;

/// The corpus files of a folder, in order of their names.
fn corpus(folder: &str) -> Vec<PathBuf> {
    let dir = Path::new("tests/corpus").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 20, "{} has only {} files", dir.display(), files.len());
    files
}

#[test]
fn every_broken_sweep_file_is_explained() {
    let mut all = String::new();
    for file in corpus("sweep") {
        let message = match sweep::load(&file, &SetOverrides::default()) {
            Ok(s) => panic!("{} was accepted: {} experiments", file.display(), s.experiments.len()),
            Err(e) => e.to_string(),
        };
        assert!(message.starts_with("tests/corpus/"), "{message}");
        assert!(message.len() < 1500, "{} characters", message.len());
        all.push_str(message.trim_start_matches("tests/corpus/"));
        all.push('\n');
    }
    insta::assert_snapshot!(all);
}

#[test]
fn every_broken_configuration_file_is_explained_with_its_line() {
    let mut all = String::new();
    for file in corpus("config") {
        let text = std::fs::read_to_string(&file).unwrap();
        let message = read_ns3_config(&text, &file).expect_err("broken on purpose").to_string();
        assert!(message.starts_with(&format!("{}:", file.display())), "{message}");
        all.push_str(message.trim_start_matches("tests/corpus/"));
        all.push('\n');
    }
    insta::assert_snapshot!(all);
}

#[test]
fn files_that_are_not_there_or_not_text_are_named() {
    let missing = sweep::load(Path::new("tests/corpus/none.toml"), &SetOverrides::default()).err().unwrap().to_string();
    assert!(missing.starts_with("tests/corpus/none.toml: cannot read it: "), "{missing}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("latin1.toml");
    std::fs::write(&path, b"name = \"caf\xe9\"\n").unwrap();
    let bytes = sweep::load(&path, &SetOverrides::default()).err().unwrap().to_string();
    assert!(bytes.contains("save it as UTF-8"), "{bytes}");
}

/// Reads a text as a sweep file; the outcome does not matter, only that there is one.
fn read_sweep(text: &str) {
    if let Ok(s) = sweep::parse(text, Path::new("fuzz.toml"), &SetOverrides::default()) {
        assert!(!s.experiments.is_empty());
        for e in s.experiments.iter().take(3) {
            let config = s.config(e).expect("expansion checked it");
            let _ = config.transport(100_000_000_000);
        }
    }
}

const CONFIG: &str = "# a\nCC_MODE 3\nKMAX_MAP 2 100000000000 1600 400000000000 6400\nKMIN_MAP 2 100000000000 400 400000000000 1600\n\
    PMAX_MAP 2 100000000000 0.2 400000000000 0.2\nRATE_AI 40Mb/s\nLINK_DOWN 0 0 0\nRNG_SEED 1\nQLEN_MON_FILE q.txt\nBUFFER_SIZE 32\n";

/// Overwrites, cuts and doubles parts of a text.
fn mutate(text: &str, edits: &[(usize, u8, u8)]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (at, kind, byte) in edits {
        if bytes.is_empty() {
            break;
        }
        let at = at % bytes.len();
        match kind % 4 {
            0 => bytes[at] = *byte,
            1 => drop(bytes.drain(at..(at + usize::from(byte % 16)).min(bytes.len()))),
            2 => bytes.insert(at, *byte),
            _ => {
                let piece: Vec<u8> = bytes[at..(at + usize::from(byte % 64)).min(bytes.len())].to_vec();
                let _ = bytes.splice(at..at, piece);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The template with every default uncommented at random places gives the fuzzer more to break.
fn uncommented(text: &str, every: usize) -> String {
    let line = |(i, l): (usize, &str)| {
        if i % every == 0 { l.strip_prefix("# ").unwrap_or(l).to_string() } else { l.to_string() }
    };
    text.lines().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// 400 cases each, or as many as `PROPTEST_CASES` says for a longer run.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arbitrary_text_is_no_panic(text in "\\PC{0,200}") {
        read_sweep(&text);
        let _ = read_ns3_config(&text, Path::new("fuzz.txt"));
    }

    #[test]
    fn mutated_templates_are_no_panic(edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..12), every in 1usize..40) {
        read_sweep(&mutate(&template(), &edits));
        read_sweep(&mutate(&uncommented(&template(), every), &edits));
    }

    #[test]
    fn mutated_configurations_are_no_panic(edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 0..12)) {
        let _ = read_ns3_config(&mutate(CONFIG, &edits), Path::new("fuzz.txt"));
    }

    #[test]
    fn token_soup_conditions_are_no_panic(words in prop::collection::vec(
        prop::sample::select(vec!["cluster.gpus", "topology.kind", "transport.pfc", "topology.path", "\\\"clos\\\"", "1", "2.5", "1e400", "9223372036854775807", "true",
            "==", "!=", "<", ">=", "&&", "||", "!", "-", "+", "*", "/", "%", "(", ")", "{", "}", ",", ".", "0", "é", "max"]), 0..14)) {
        let text = format!("name = \"t\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n[[constraints]]\nwhere = \"{}\"\n", words.join(" "));
        read_sweep(&text);
        read_sweep(&text.replace(" ", ""));
    }

    #[test]
    fn arbitrary_set_options_are_no_panic(set in "[a-z._]{0,12}=?\\PC{0,20}") {
        let text = "name = \"t\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n";
        let _ = sweep::parse(text, Path::new("fuzz.toml"), &SetOverrides(vec![set]));
    }
}
