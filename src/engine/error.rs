//! Errors for which an engine cannot go on.
//!
//! Layer: engine.

/// Reason why an engine cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The device failed; the text says how.
    #[error("{0}")]
    Device(String),
    /// The device computes other results than the CPU engine; the text says where, and what to do.
    #[error("{0}")]
    Differs(String),
    /// The run was asked to stop before the device had finished its work.
    #[error("the run was asked to stop while the device was at work")]
    Stopped,
}
