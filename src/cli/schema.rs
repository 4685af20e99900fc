//! `hyperfold schema`.
//!
//! Layer: cli. [`hyperfold_config::sweep`] makes the schema.

use hyperfold_config::sweep::{SchemaOf, json_schema};

use super::args::SchemaArgs;
use super::exit::Exit;
use super::output::write_out;

/// Prints a JSON Schema.
pub fn execute(args: &SchemaArgs) -> Exit {
    let kind = if args.included { SchemaOf::Included } else { SchemaOf::Sweep };
    write_out(json_schema(kind).as_bytes());
    Exit::Ok
}
