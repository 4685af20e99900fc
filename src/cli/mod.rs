//! The command line: what was typed becomes what is meant, and results become what a person reads.
//!
//! Layer: the last. [`args`] declares commands and options, one module a command does the rest. [`simulator`] is the boundary to the
//! layers below: sweeps and engines are behind it, so that everything here is tested without them.

pub mod args;
pub mod bench;
pub mod doctor;
pub mod effect;
pub mod engine_choice;
pub mod exit;
mod benchmark_memo;
mod benchmark_workloads;
pub mod benchmarks;
pub mod convert;
pub mod glue;
pub mod init;
pub mod interrupt;
pub mod memo;
pub mod plan;
pub mod progress;
pub mod run;
pub mod simulator;
pub mod suites;
pub mod summary;
pub mod table;
pub mod workload;
pub mod validate;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use exit::{CliError, Exit};
use interrupt::Interrupt;

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too, and then on standard output. A closed pipe is no reason to complain.
            let _ = error.print();
            return if error.use_stderr() { Exit::BadInput } else { Exit::Ok }.into();
        }
    };
    let exit = match dispatch(&cli.command) {
        Ok(exit) => exit,
        Err(CliError { exit, error }) => {
            eprintln!("hyperfold: {error:#}");
            exit
        }
    };
    exit.into()
}

fn dispatch(command: &Command) -> Result<Exit, CliError> {
    let simulator = glue::Connected;
    match command {
        Command::Run(args) => run::execute(args, &simulator, &Interrupt::on_ctrl_c()),
        Command::Plan(args) => plan::execute(args, &simulator),
        Command::Init(args) => init::execute(args, &simulator),
        Command::Doctor(args) => doctor::execute(args),
        Command::Bench(args) => bench::execute(args, &simulator),
        Command::Workload(args) => workload::execute(args),
        Command::Validate(args) => validate::execute(args),
    }
}

/// Prints a line of output. A reader that has gone away (`| head`) ends the program quietly, as other tools do.
pub(crate) fn say(line: &str) {
    if writeln!(std::io::stdout(), "{line}").is_err() {
        std::process::exit(i32::from(Exit::Ok.code()));
    }
}
