//! The command line: parses arguments and shows results.
//!
//! Layer: the last. [`command`] and [`args`] declare commands and options, and one module per command does the rest. The work is done by [`hyperfold_session`]
//! and the layers below; this layer asks for it and shows it.

pub mod args;
pub mod bench;
mod benchmark_gpu;
mod benchmark_memo;
mod benchmark_workloads;
pub mod benchmarks;
mod best;
pub mod calibrate;
pub mod command;
pub mod compare;
pub mod compare_render;
mod compare_summary;
pub mod completions;
pub mod doctor;
mod doctor_engine;
pub mod excerpt;
pub mod exit;
pub mod fold;
mod fold_device;
pub mod init;
pub mod interrupt;
pub mod jobs_table;
pub mod knee;
pub mod logging;
pub mod machine;
pub mod measured;
pub mod measurement;
pub mod merge;
mod output;
mod patience;
pub mod plan;
pub mod plot;
pub mod progress;
pub mod recover;
pub mod report;
pub mod resume;
pub mod run;
mod run_json;
pub mod sbatch;
pub mod schema;
mod serve;
pub mod submit;
pub mod submit_args;
pub mod summary;
pub mod table;
pub mod topo;
pub mod trace;
pub mod validate;
mod warnings;
pub mod watch;
mod work_left;
pub mod workload;

use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Parser;

use hyperfold_base::printable::printable;
use hyperfold_base::{input, isolation};
use hyperfold_session::BuiltIn;

use command::{Cli, Command};
use exit::{CliError, Exit};
use interrupt::on_ctrl_c;
pub(crate) use output::{say, say_json, tell};
use output::{tell_error, write_err};
pub(crate) use warnings::{tell_approximate, tell_losses};

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let is_wrong = error.use_stderr();
            // Help and version are errors of the parser, too, but are printed on standard output. A closed pipe is ignored.
            if is_wrong {
                tell_usage(error);
            } else {
                let _ = error.print();
            }
            return if is_wrong { Exit::BadInput } else { Exit::Ok }.into();
        }
    };
    logging::start();
    isolation::install_hook();
    let exit = match confined(cli.root.as_deref()).and_then(|()| dispatch(&cli.command)) {
        Ok(exit) => exit,
        Err(CliError { exit, error, then }) => {
            tell_error(&exit::with_causes(&error));
            if let Some(then) = then {
                tell(&then);
            }
            if let Some(excerpt) = excerpt::of(&error) {
                excerpt.tell();
            }
            exit
        }
    };
    output::exit(exit).into()
}

/// Prints what is wrong with the arguments. Arguments with terminal control characters are replaced by their codes and parsed again, so that message, colours
/// and lines are all the parser's own.
fn tell_usage(error: clap::Error) {
    let arguments: Vec<String> = std::env::args_os().map(|a| printable(&a.to_string_lossy()).into_owned()).collect();
    let mut error = Cli::try_parse_from(arguments).err().filter(clap::Error::use_stderr).unwrap_or(error);
    command::suggest(&mut error);
    write_err(error.render().ansi().to_string().trim_end());
}

/// Applies `--root`.
fn confined(root: Option<&Path>) -> Result<(), CliError> {
    let Some(folder) = root else { return Ok(()) };
    input::confine(folder).map_err(|e| CliError::bad_input(anyhow!("--root {}: {e}", folder.display())))
}

fn dispatch(command: &Command) -> Result<Exit, CliError> {
    match command {
        Command::Run(args) => run::execute(args, &BuiltIn, &on_ctrl_c()),
        Command::Plan(args) => plan::execute(args, &BuiltIn),
        Command::Compare(args) => compare::execute(args, &on_ctrl_c()),
        Command::Init(args) => init::execute(args),
        Command::Doctor(args) => doctor::execute(args),
        Command::Bench(args) => bench::execute(args),
        Command::Submit(args) => submit::execute(args, &BuiltIn),
        Command::Recover(args) => recover::execute(args),
        Command::Merge(args) => merge::execute(args),
        Command::Trace(args) => trace::execute(args, &on_ctrl_c()),
        Command::Fold(args) => fold::execute(args, &on_ctrl_c()),
        Command::Topo(args) => topo::execute(args),
        Command::Workload(args) => workload::execute(args),
        Command::Validate(args) => validate::execute(args),
        Command::Calibrate(args) => calibrate::execute(args, &on_ctrl_c()),
        Command::Measured(args) => measured::execute(args),
        Command::Report(args) => report::execute(args),
        Command::Watch(args) => watch::execute(args),
        Command::Plot(args) => plot::execute(args),
        Command::Schema(args) => Ok(schema::execute(args)),
        Command::Completions(args) => Ok(completions::completions(args)),
        Command::Man(args) => completions::man(args),
    }
}
