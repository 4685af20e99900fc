//! `hyperfold schema`.
//!
//! Layer: cli. What it says is [`crate::sweep`]'s.

use crate::sweep::{SchemaOf, json_schema};

use super::args::SchemaArgs;
use super::exit::Exit;
use super::output::write_out;

/// Prints a JSON Schema.
pub fn execute(args: &SchemaArgs) -> Exit {
    let of = if args.included { SchemaOf::Included } else { SchemaOf::Sweep };
    write_out(json_schema(of).as_bytes());
    Exit::Ok
}
