//! Reasons why programs cannot be lowered.
//!
//! Layer: workload.

/// Maximum number of tasks of one experiment: 2^27. Our choice: with their edges and the engine's rows they take some 30 GB.
pub(super) const MAX_TASKS: usize = 1 << 27;

/// Why programs cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    #[error(
        "collective {nth} of the group of ranks {group}: rank {a} calls {a_call}, rank {b} calls {b_call}; all members must call the same"
    )]
    Mismatch { group: String, nth: u32, a: u32, a_call: String, b: u32, b_call: String },
    #[error("collective {nth} of the group of ranks {group}: rank {rank} never calls it")]
    Missing { group: String, nth: u32, rank: u32 },
    #[error("rank {src} sends {sends} messages with tag {tag} to rank {dst}, which receives {recvs}")]
    Unmatched { src: u32, dst: u32, tag: u32, sends: usize, recvs: usize },
    #[error("message {nth} with tag {tag} from rank {src} to rank {dst}: {sent} bytes are sent, {received} received")]
    Size { src: u32, dst: u32, tag: u32, nth: usize, sent: u64, received: u64 },
    #[error("rank {rank}, op {op} ({name}): {why}")]
    Plan { rank: u32, op: u32, name: String, why: String },
    #[error(
        "fidelity.join = \"ranks\": {op} (rank {rank}, {name}) is not one flow; set workload.algorithm = \"ring\" (of all-to-alls \"direct\"), or take it off the network with workload.analytic"
    )]
    NotOneFlow { op: String, rank: u32, name: String },
    #[error(
        "the program becomes more than {MAX_TASKS} tasks, the most that one experiment has room for (at rank {rank}, op {op}, {name}); fewer iterations, a larger workload.chunk_kib, fewer workload.channels or workload.analytic make it smaller, at flow level fidelity.join too"
    )]
    TooLarge { rank: u32, op: u32, name: String },
}
