//! The benchmark set under `cargo bench`: runs `hyperfold bench` with the arguments after `--`.
//!
//!     cargo bench                          all
//!     cargo bench -- rail128-hpcc          one
//!     cargo bench -- --json                one JSON object a line
//!
//! Started without cargo's `--bench`, as `cargo test --all-targets` does, it only lists what there is.

#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (cargos, users): (Vec<String>, Vec<String>) = arguments.into_iter().partition(|argument| argument == "--bench");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_hyperfold"));
    bench.arg("bench").args(users);
    if cargos.is_empty() {
        bench.arg("--list");
    }
    match bench.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("engine: {}: {e}", env!("CARGO_BIN_EXE_hyperfold"));
            ExitCode::FAILURE
        }
    }
}
