//! The `hyperfold` program: [`cli`] has its commands, [`submit`] the scripts that run a sweep on a cluster.
//!
//! Layer: above all others. The library of this package does not contain it.

#![forbid(unsafe_code)]

mod cli;
mod submit;

use std::process::ExitCode;

/// Counts memory, so that an experiment that would take too much fails alone.
#[global_allocator]
static ALLOCATOR: hyperfold::CountingAllocator = hyperfold::CountingAllocator;

fn main() -> ExitCode {
    cli::main()
}
