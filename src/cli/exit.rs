//! Exit codes, and errors that know theirs.
//!
//! Layer: cli.

use std::process::ExitCode;

use crate::results::ResultsError;
use crate::session::SessionError;

/// How the program ends; the numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Every experiment has a result (`oom` is one).
    Ok = 0,
    /// Some experiments failed, or the run broke off.
    Failed = 1,
    /// Bad usage or input, no experiments, a folder in use, no adapter.
    BadInput = 2,
    /// A condition such as `--strict` was hit.
    Condition = 3,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// An error with the exit code it leads to.
#[derive(Debug)]
pub struct CliError {
    pub exit: Exit,
    pub error: anyhow::Error,
    /// A line of its own below it: what is safe, and how to go on.
    pub then: Option<String>,
}

impl CliError {
    /// The user's input or machine is not as it must be.
    pub fn bad_input(error: impl Into<anyhow::Error>) -> CliError {
        CliError { exit: Exit::BadInput, error: error.into(), then: None }
    }

    /// Results that cannot be read or written: a folder that is not as it must be is the user's to mend, a full disk is not bad input.
    pub fn results(error: ResultsError) -> CliError {
        if error.is_usage() { CliError::bad_input(error) } else { CliError::broken(error) }
    }

    /// The run itself broke off.
    pub fn broken(error: impl Into<anyhow::Error>) -> CliError {
        CliError { exit: Exit::Failed, error: error.into(), then: None }
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> CliError {
        let exit = if error.is_usage() { Exit::BadInput } else { Exit::Failed };
        // An error of the sweep file stands for itself, so that the line it is about can be shown.
        let error = match error {
            SessionError::Spec(error) => error.into(),
            other => other.into(),
        };
        CliError { exit, error, then: None }
    }
}
