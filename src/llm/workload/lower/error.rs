//! Reasons why programs cannot be lowered.
//!
//! Layer: workload.

/// Maximum number of tasks of one experiment: 2^27. Our choice: with their edges and the engine's rows they take some 30 GB.
pub(super) const MAX_TASKS: usize = 1 << 27;

/// Why programs cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// Members of a group call different collectives.
    #[error(
        "collective {nth} of the group of ranks {group}: rank {a} calls {a_call}, rank {b} calls {b_call}; all members must call the same"
    )]
    Mismatch {
        /// Ranks of the group, as text.
        group: String,
        /// Number of the collective among those of the group.
        nth: u32,
        /// A rank of the group.
        a: u32,
        /// Collective that rank `a` calls.
        a_call: String,
        /// Another rank of the group.
        b: u32,
        /// Collective that rank `b` calls.
        b_call: String,
    },
    /// A member does not call a collective.
    #[error("collective {nth} of the group of ranks {group}: rank {rank} never calls it")]
    Missing {
        /// Ranks of the group, as text.
        group: String,
        /// Number of the collective among those of the group.
        nth: u32,
        /// Rank that never calls the collective.
        rank: u32,
    },
    /// Sends and receives differ in number.
    #[error("rank {src} sends {sends} messages with tag {tag} to rank {dst}, which receives {recvs}")]
    Unmatched {
        /// Rank that sends.
        src: u32,
        /// Rank that receives.
        dst: u32,
        /// Tag of the messages.
        tag: u32,
        /// Number of sends.
        sends: usize,
        /// Number of receives.
        recvs: usize,
    },
    /// A message is received with another size.
    #[error("message {nth} with tag {tag} from rank {src} to rank {dst}: {sent} bytes are sent, {received} received")]
    Size {
        /// Rank that sends.
        src: u32,
        /// Rank that receives.
        dst: u32,
        /// Tag of the message.
        tag: u32,
        /// Number of the message among those of the two ranks with this tag.
        nth: usize,
        /// Bytes that the sender sends.
        sent: u64,
        /// Bytes that the receiver expects.
        received: u64,
    },
    /// A collective cannot be planned.
    #[error("rank {rank}, op {op} ({name}): {why}")]
    Plan {
        /// Rank that calls the collective.
        rank: u32,
        /// Number of the op.
        op: u32,
        /// Name of the op.
        name: String,
        /// Reason why it cannot be planned.
        why: String,
    },
    /// A collective cannot be joined to one flow.
    #[error(
        "fidelity.join = \"ranks\": {op} (rank {rank}, {name}) is not one flow; set workload.algorithm = \"ring\" (of all-to-alls \"direct\"), or take it off the network with workload.analytic"
    )]
    NotOneFlow {
        /// Operation of the collective, in words.
        op: String,
        /// Rank that calls the collective.
        rank: u32,
        /// Name of the op.
        name: String,
    },
    /// The task graph has too many tasks.
    #[error(
        "the program becomes more than {MAX_TASKS} tasks, the most that one experiment has room for (at rank {rank}, op {op}, {name}); fewer iterations, a larger workload.chunk_kib, fewer workload.channels or workload.analytic make it smaller, at flow level fidelity.join too"
    )]
    TooLarge {
        /// Rank at which it becomes too large.
        rank: u32,
        /// Number of the op.
        op: u32,
        /// Name of the op.
        name: String,
    },
}
