//! Simulations compared with formulas: collectives, pipelines and traffic whose result a few lines of algebra predict.
//!
//! Layer: host. The networks are small, generated and free of contention, so the formulas are exact up to packets in flight. `hyperfold validate closed-forms`
//! and the test of the same name use these rows. Nothing here is fitted.

mod collectives;
mod formulas;
mod pipelines;
mod row;
mod simulate;
mod traffic;

pub use row::{ClosedFormError, ClosedFormRow};

/// Simulates and returns all rows. Takes some seconds.
///
/// # Errors
/// An experiment cannot be prepared or does not end.
pub fn rows() -> Result<Vec<ClosedFormRow>, ClosedFormError> {
    let mut rows = collectives::rows()?;
    rows.extend(pipelines::rows()?);
    rows.extend(traffic::rows()?);
    Ok(rows)
}
