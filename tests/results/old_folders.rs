//! Folders that an earlier build wrote are still read, and come out with the same bytes.
//!
//! `tests/corpus/old-folders/NAME` is what `hyperfold run NAME.toml --out NAME --engine cpu` wrote there, without the log and the report. Where the layout of
//! the journal has changed on purpose, they are written anew, and the changelog says that journals from before are not read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::program::Folder;

const NAMES: [&str; 4] = ["cluster", "folding", "inference", "packets"];

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/old-folders").join(name)
}

#[test]
fn all_files_come_out_of_the_journal_of_an_earlier_build() {
    let folder = Folder::new(&[]);
    for name in NAMES {
        let ran = folder.run(&["recover", stored(name).to_str().unwrap(), "--out", name]);
        assert!(ran.code < 2, "{name}: {}", ran.stderr);
        for file in fs::read_dir(stored(name)).unwrap() {
            let file = file.unwrap();
            let file_name = file.file_name().into_string().unwrap();
            // The manifest has the command and its times.
            if file_name != "manifest.json" {
                let recovered = folder.bytes(&format!("{name}/{file_name}"));
                assert!(fs::read(file.path()).unwrap() == recovered, "{name}/{file_name}");
            }
        }
    }
}
