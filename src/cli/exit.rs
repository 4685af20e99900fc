//! Exit codes, and errors that have an exit code.
//!
//! Layer: cli.

use std::process::ExitCode;

use hyperfold_results::ResultsError;
use hyperfold_session::SessionError;

/// Exit codes of the program. The numbers are part of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Every experiment has a result (`oom` is one).
    Ok = 0,
    /// Some experiments failed, or the run broke off.
    Failed = 1,
    /// Bad usage or input, no experiments, a folder in use, or no adapter.
    BadInput = 2,
    /// A condition such as `--strict` was hit.
    Condition = 3,
    /// The program was stopped by Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// The exit code as a number.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// An error with its exit code.
#[derive(Debug)]
pub struct CliError {
    pub exit: Exit,
    pub error: anyhow::Error,
    /// A further line below the error: what is safe, and how to go on.
    pub then: Option<String>,
}

impl CliError {
    /// An error of the user's input or machine.
    pub fn bad_input(error: impl Into<anyhow::Error>) -> CliError {
        CliError { exit: Exit::BadInput, error: error.into(), then: None }
    }

    /// An error of reading or writing results. A wrong folder is an error of the user; a full disk is not.
    pub fn results(error: ResultsError) -> CliError {
        if error.is_usage() { CliError::bad_input(error) } else { CliError::broken(error) }
    }

    /// An error that broke off the run.
    pub fn broken(error: impl Into<anyhow::Error>) -> CliError {
        CliError { exit: Exit::Failed, error: error.into(), then: None }
    }
}

/// An error and its causes in one line. Causes that the text before them already tells are left out.
pub fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> CliError {
        let exit = if error.is_usage() { Exit::BadInput } else { Exit::Failed };
        // An error of the sweep file is unwrapped, so that its line can be shown.
        let error = match error {
            SessionError::Spec(error) => error.into(),
            other => other.into(),
        };
        CliError { exit, error, then: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let source = || std::io::Error::other("no such thing");
        let io = ResultsError::Io { path: "a".into(), source: source() };
        assert_eq!(with_causes(&io.into()), "cannot write a: no such thing");
        let tells_its_cause = anyhow::Error::new(source()).context("a: damaged (no such thing)");
        assert_eq!(with_causes(&tells_its_cause), "a: damaged (no such thing)");
    }
}
