//! `hyperfold schema`.
//!
//! Layer: cli. What it says is [`crate::sweep`]'s.

use crate::sweep::json_schema;

use super::exit::Exit;
use super::output::write_out;

/// Prints the JSON Schema of sweep files.
pub fn execute() -> Exit {
    write_out(json_schema().as_bytes());
    Exit::Ok
}
