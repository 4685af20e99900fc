//! Exporters: a [`Workload`](crate::workload::program::Workload) becomes files of other tools.
//!
//! Layer: workload. Exporters make text and bytes; the caller writes them to disk. What a format cannot express is an error that names it. Nothing is left out
//! silently.

pub mod chakra;
pub mod flows;
pub mod simai;

/// Why a workload cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// The format has no words for it.
    #[error("{form} cannot say it: {what}")]
    NotExpressible {
        /// Name of the format.
        form: &'static str,
        /// The things that the format cannot express.
        what: String,
    },
}

fn cannot(form: &'static str, what: impl Into<String>) -> ExportError {
    ExportError::NotExpressible { form, what: what.into() }
}
