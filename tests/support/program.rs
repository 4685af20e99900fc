//! Running the program in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a run of the program came to.
#[derive(Debug)]
pub struct Ran {
    /// The exit code. A program that was killed by a signal fails the test.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The program, to be started in `dir`.
pub fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperfold"));
    command.current_dir(dir).args(args).env_remove("CLICOLOR_FORCE");
    command
}

/// Runs the program in `dir` to its end. A panic of it fails the test.
pub fn hyperfold(dir: &Path, args: &[&str]) -> Ran {
    seen(args, command(dir, args).output().expect("the program starts"))
}

/// What came of it. PRECONDITION: the program has ended.
pub fn seen(args: &[&str], output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    let ran = Ran {
        code: output.status.code().unwrap_or_else(|| panic!("{args:?} was killed: {}", output.status)),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(!ran.stderr.contains("panicked"), "{args:?}: {}", ran.stderr);
    ran
}

/// The Python that `scripts/setup-python.sh` made, beside the profiles' folders.
pub fn python() -> PathBuf {
    let target =
        Path::new(env!("CARGO_BIN_EXE_hyperfold")).ancestors().nth(2).expect("the program is in a profile's folder");
    let python = target.join("python/bin/python");
    assert!(python.exists(), "{} is missing: run scripts/setup-python.sh first", python.display());
    python
}

/// A folder for one test, with files in it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder can be made"));
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).expect("a file can be written there");
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.file(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Runs the program here.
    pub fn run(&self, args: &[&str]) -> Ran {
        hyperfold(self.path(), args)
    }

    /// A folder in which the sweep has run into `out` on the CPU engine, with what the run said and its exit code.
    pub fn with_run(sweep: &str) -> (Folder, String, i32) {
        let folder = Folder::new(&[("s.toml", sweep)]);
        let ran = folder.run(&["run", "s.toml", "--out", "out", "--engine", "cpu"]);
        (folder, ran.stderr + &ran.stdout, ran.code)
    }

    /// The values of one column of `out/FILE.csv` as numbers, row by row.
    pub fn numbers(&self, file: &str, column: &str) -> Vec<f64> {
        let number = |cell: &String| cell.parse().unwrap_or_else(|e| panic!("{column} {cell:?}: {e}"));
        self.column(&format!("out/{file}.csv"), column).iter().map(number).collect()
    }

    /// The values of one column of a CSV file, row by row.
    pub fn column(&self, name: &str, column: &str) -> Vec<String> {
        let mut reader = csv::Reader::from_path(self.file(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let headers = reader.headers().unwrap_or_else(|e| panic!("{name}: {e}")).clone();
        let at = headers
            .iter()
            .position(|h| h == column)
            .unwrap_or_else(|| panic!("{name} has no column {column}: {headers:?}"));
        reader.records().map(|r| r.unwrap_or_else(|e| panic!("{name}: {e}"))[at].to_string()).collect()
    }
}
