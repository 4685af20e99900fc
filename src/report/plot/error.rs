//! Errors for which a figure cannot be made.
//!
//! Layer: plot.

use thiserror::Error;

use hyperfold_results::ReadError;

/// Reason why a figure cannot be made.
#[derive(Debug, Error)]
pub enum PlotError {
    /// The folder has no results, or damaged ones.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An option names a column that there is not, or that cannot be drawn so.
    #[error("{option} {name}: {why}")]
    Column {
        /// The option that names the column, such as `--x`.
        option: &'static str,
        /// The name that the user wrote.
        name: String,
        /// Its fault, in words for the user.
        why: String,
    },
    /// A network has too many switches or links.
    #[error("the network is too large to be drawn: {0}")]
    TooLarge(String),
    /// A condition on the rows cannot be read or decided.
    #[error("--where '{condition}': {why}")]
    Where {
        /// The condition as the user wrote it.
        condition: String,
        /// Its fault, in words for the user.
        why: String,
    },
    /// The run did not write a file that the figure needs.
    #[error("{dir}: there is no {file}; run the sweep with `{setting}` for it")]
    NotWritten {
        /// Folder of the run.
        dir: String,
        /// Name of the file.
        file: &'static str,
        /// Setting that asks for it, as a sweep file has it.
        setting: &'static str,
    },
    /// No row has a value to draw; the text says why.
    #[error("{0}")]
    Nothing(String),
    /// The pixels cannot be made: the figure is too large, for example.
    #[error("the figure cannot be painted: {0}")]
    Paint(String),
}
