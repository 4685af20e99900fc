//! `hyperfold completions` and `hyperfold man`: shell completions and man pages, made from the declaration of the commands.
//!
//! Layer: cli. It writes to standard output, and pages also into a folder. Packagers decide where they are installed.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::anyhow;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::args::{CompletionsArgs, ManArgs};
use super::command::Cli;
use super::exit::{CliError, Exit};
use super::output::write_out;
use super::say;

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hyperfold", &mut script);
    write_out(&script);
    Exit::Ok
}

/// Prints a man page, or writes all of them.
///
/// # Errors
/// There is no such command, or the folder cannot be written.
pub fn man(args: &ManArgs) -> Result<Exit, CliError> {
    let pages = pages();
    if let Some(dir) = &args.out {
        write(dir, &pages)?;
        say(&format!("man pages: {} in {}", pages.len(), dir.display()));
        return Ok(Exit::Ok);
    }
    let name = args.command.as_ref().map_or("hyperfold".to_string(), |c| format!("hyperfold-{c}"));
    match pages.iter().find(|(page, _)| *page == format!("{name}.1")) {
        Some((_, page)) => {
            write_out(page);
            Ok(Exit::Ok)
        }
        None => {
            let commands = Cli::command();
            let known: Vec<&str> = commands.get_subcommands().map(Command::get_name).collect();
            let asked = args.command.as_deref().unwrap_or_default();
            Err(CliError::bad_input(anyhow!("no command `{asked}`; there are: {}", known.join(", "))))
        }
    }
}

/// All pages with their file names: one for the program, and one for each command.
fn pages() -> Vec<(String, Vec<u8>)> {
    // Pages have no date, so that pages of one version always have the same bytes.
    let page = |name: String, command: Command| {
        let source = format!("hyperfold {}", env!("CARGO_PKG_VERSION"));
        let man = Man::new(command).title(name.as_str()).section("1").date("").source(source).manual("Hyperfold");
        let mut bytes = Vec::new();
        man.render(&mut bytes).expect("memory takes every page");
        (format!("{name}.1"), bytes)
    };
    let mut program = Cli::command();
    program.build();
    let mut pages = vec![page("hyperfold".into(), program.clone())];
    add_pages(&program, "hyperfold", &mut |name, command| pages.push(page(name, command)));
    pages
}

fn add_pages(parent: &Command, prefix: &str, add: &mut dyn FnMut(String, Command)) {
    for command in parent.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let name = format!("{prefix}-{}", command.get_name());
        add(name.clone(), command.clone());
        add_pages(command, &name, add);
    }
}

fn write(dir: &Path, pages: &[(String, Vec<u8>)]) -> Result<(), CliError> {
    let failed = |path: &Path, error: std::io::Error| {
        let message = anyhow!("--out {}: {error}", path.display());
        match error.kind() {
            ErrorKind::StorageFull => CliError::broken(message),
            _ => CliError::bad_input(message),
        }
    };
    fs::create_dir_all(dir).map_err(|e| failed(dir, e))?;
    for (name, page) in pages {
        let path = dir.join(name);
        fs::write(&path, page).map_err(|e| failed(&path, e))?;
    }
    Ok(())
}
