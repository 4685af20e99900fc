//! How a workload breaks the rules that its ranks must keep among each other.
//!
//! Layer: workload. The error only; `check` and `progress` find what is wrong.

/// The violation found, with its ranks and ops. Ops are numbered from 0 in their rank's program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    #[error("rank {rank}: {problem}")]
    Rank { rank: u32, problem: String },
    #[error("group {group}: {problem}")]
    Group { group: u32, problem: String },
    #[error("program {program}, op {op} `{name}`: {problem}")]
    Op { program: u32, op: u32, name: String, problem: String },
    #[error(
        "group {group} ({dim}): collective {index} is {a_does} on rank {a} but {b_does} on rank {b}; all members must do the same"
    )]
    Collective { group: u32, dim: String, index: usize, a: u32, a_does: String, b: u32, b_does: String },
    #[error(
        "from rank {from} to rank {to}, tag {tag}: message {index} is {sent} at the sender but {received} at the receiver"
    )]
    Message { from: u32, to: u32, tag: u32, index: usize, sent: String, received: String },
    #[error("deadlock: {waits}")]
    Deadlock { waits: String },
}
