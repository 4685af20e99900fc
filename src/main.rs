//! The `hyperfold` program: see [`hyperfold::cli`].

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Counts memory, so that an experiment that would take too much fails alone.
#[global_allocator]
static ALLOCATOR: hyperfold::CountingAllocator = hyperfold::CountingAllocator;

fn main() -> ExitCode {
    hyperfold::cli::main()
}
