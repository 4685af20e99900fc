//! How a workload breaks the rules that its ranks must keep among each other.
//!
//! Layer: workload. The error only; `check` and `progress` find what is wrong.

/// The violation found, with its ranks and ops. Ops are numbered from 0 in their rank's program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// A rank is wrong.
    #[error("rank {rank}: {problem}")]
    Rank {
        /// Rank that is wrong.
        rank: u32,
        /// The fault, in words for the user.
        problem: String,
    },
    /// A group is wrong.
    #[error("group {group}: {problem}")]
    Group {
        /// Index of the group.
        group: u32,
        /// The fault, in words for the user.
        problem: String,
    },
    /// An op is wrong.
    #[error("program {program}, op {op} `{name}`: {problem}")]
    Op {
        /// Index of the program.
        program: u32,
        /// Number of the op in it.
        op: u32,
        /// Name of the op.
        name: String,
        /// The fault, in words for the user.
        problem: String,
    },
    /// Members of a group call different collectives.
    #[error(
        "group {group} ({dim}): collective {index} is {a_does} on rank {a} but {b_does} on rank {b}; all members must do the same"
    )]
    Collective {
        /// Index of the group.
        group: u32,
        /// Dimension of the group.
        dim: String,
        /// Number of the collective among those of the group.
        index: usize,
        /// A rank of the group.
        a: u32,
        /// Collective that rank `a` calls.
        a_does: String,
        /// Another rank of the group.
        b: u32,
        /// Collective that rank `b` calls.
        b_does: String,
    },
    /// A sender and a receiver do not agree.
    #[error(
        "from rank {from} to rank {to}, tag {tag}: message {index} is {sent} at the sender but {received} at the receiver"
    )]
    Message {
        /// Rank that sends.
        from: u32,
        /// Rank that receives.
        to: u32,
        /// Tag of the message.
        tag: u32,
        /// Number of the message among those of the two ranks with this tag.
        index: usize,
        /// The message that the sender sends.
        sent: String,
        /// The message that the receiver expects.
        received: String,
    },
    /// Ranks wait for each other.
    #[error("deadlock: {waits}")]
    Deadlock {
        /// Who waits for whom, in words.
        waits: String,
    },
}
