//! The Python package and the notebooks, against this build of the program.
//!
//! Needs a Python with pandas, pyarrow and tomli-w (`scripts/setup-python.sh`); without it, it fails and says so.

use std::path::Path;
use std::process::Command;

use crate::support::program::python;

#[test]
fn the_package_runs_sweeps_and_reads_results_and_every_notebook_runs() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let output = Command::new(python())
        .args(["-B", "-m", "unittest", "discover"])
        .arg(package.join("tests"))
        .env("PYTHONPATH", &package)
        .env("HYPERFOLD_BIN", env!("CARGO_BIN_EXE_hyperfold"))
        .output()
        .expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
