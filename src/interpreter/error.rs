//! What can be wrong with a kernel, and with a dispatch.

/// Reason why a text cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It is no valid WGSL. Has the message of naga's parser or validator.
    #[error("the kernel is not valid: {0}")]
    Invalid(String),
    /// It has no compute entry point of this name.
    #[error("the kernel has no compute entry point named \"{0}\"")]
    NoEntry(String),
    /// It has something that the interpreter does not know.
    #[error("the interpreter does not know {0}")]
    Unknown(String),
}

impl CompileError {
    pub(crate) fn unknown(what: impl Into<String>) -> CompileError {
        CompileError::Unknown(what.into())
    }
}

/// Reason why a dispatch broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Some invocations of a workgroup wait at a barrier that others never reach.
    #[error("of workgroup {group:?}, {ended} invocations ended and {waiting} wait at a barrier")]
    Barrier {
        /// The workgroup.
        group: [u32; 3],
        /// Number of invocations that ended.
        ended: usize,
        /// Number of invocations that wait.
        waiting: usize,
    },
    /// An invocation took more operations than are allowed.
    #[error("invocation {invocation} took more than {limit} operations")]
    TooLong {
        /// The invocation, numbered over the whole dispatch.
        invocation: u32,
        /// Number of operations that are allowed.
        limit: u64,
    },
    /// There are not as many buffers as bindings.
    #[error("{given} buffers for {bindings} bindings")]
    Buffers {
        /// Number of buffers.
        given: usize,
        /// Number of bindings.
        bindings: usize,
    },
}
