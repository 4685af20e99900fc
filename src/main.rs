//! The `hyperfold` program: see [`hyperfold::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    hyperfold::cli::main()
}
