//! The benchmark set under `cargo bench`: the same as `hyperfold bench`.
//!
//!     cargo bench                          all
//!     cargo bench -- rail128-hpcc          one
//!     cargo bench -- --json                one JSON object a line
//!
//! Started without cargo's `--bench`, as `cargo test --all-targets` does, it only lists what there is.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use hyperfold::cli::args::BenchArgs;
use hyperfold::cli::bench;

fn main() -> ExitCode {
    let mut args = BenchArgs { name: None, list: true, json: false };
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--bench" => args.list = false,
            "--json" => args.json = true,
            name => args.name = Some(name.to_string()),
        }
    }
    match bench::execute(&args) {
        Ok(exit) => exit.into(),
        Err(e) => {
            eprintln!("engine: {:#}", e.error);
            e.exit.into()
        }
    }
}
