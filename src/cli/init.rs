//! `hyperfold init`.
//!
//! Layer: cli.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use anyhow::anyhow;

use hyperfold_config::spec;

use super::args::InitArgs;
use super::exit::{CliError, Exit};
use super::say;

/// Template with the keys that nearly every sweep sets.
const SHORT: &str = include_str!("../../assets/short-sweep.toml");

/// Writes the template. An existing file is kept.
///
/// # Errors
/// The file exists or cannot be written.
pub fn execute(args: &InitArgs) -> Result<Exit, CliError> {
    let path = &args.path;
    let refused = |e: std::io::Error| {
        CliError::bad_input(match e.kind() {
            ErrorKind::AlreadyExists => anyhow!("{}: exists already; name another file", path.display()),
            _ => anyhow!("{}: {e}", path.display()),
        })
    };
    let text = if args.short { SHORT.into() } else { spec::template() };
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(refused)?;
    file.write_all(text.as_bytes()).map_err(|e| CliError::broken(anyhow!("{}: {e}", path.display())))?;
    say(&format!("wrote {}; run it with: hyperfold run {} --out results", path.display(), path.display()));
    Ok(Exit::Ok)
}
