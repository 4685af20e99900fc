//! Exporters: a [`Workload`](crate::workload::program::Workload) becomes files of other tools.
//!
//! Layer: workload. They make text and bytes; writing them to disk is the caller's. What a form cannot say is an error that names it, never left out in silence.

pub mod chakra;
pub mod flows;
pub mod simai;

/// Why a workload cannot be written in a form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error("{form} cannot say it: {what}")]
    NotExpressible { form: &'static str, what: String },
}

fn cannot(form: &'static str, what: impl Into<String>) -> ExportError {
    ExportError::NotExpressible { form, what: what.into() }
}
