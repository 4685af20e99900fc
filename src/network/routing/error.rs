//! The reasons why a flow has no path.
//!
//! Layer: routing. Only the error; `router` and `file` return it.

use crate::topology::FileError;

/// Why a flow has no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The file of routes cannot be read, or a line of it is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// A flow names a rank that the network does not have.
    #[error("flow {flow}: rank {rank} does not exist; the network has ranks 0 to {last}")]
    NoSuchRank {
        /// Number of the flow.
        flow: u32,
        /// Rank that does not exist.
        rank: u32,
        /// Last rank that there is.
        last: usize,
    },
    /// No path joins two ranks.
    #[error(
        "flow {flow}: no route from rank {src_rank} (host {src_host}) to rank {dst_rank} (host {dst_host}): no packet path joins them, \
         and they are not in one server with NVLink; ranks of different rails of a rail-only fabric, or of leaves that no circuits join, cannot talk"
    )]
    NoRoute {
        /// Number of the flow.
        flow: u32,
        /// Rank that sends.
        src_rank: u32,
        /// Id of the sender's host.
        src_host: u32,
        /// Rank that receives.
        dst_rank: u32,
        /// Id of the receiver's host.
        dst_host: u32,
    },
    /// Two ranks share a NIC, so no packet path joins them.
    #[error(
        "flow {flow}: ranks {src_rank} and {dst_rank} share NIC {host}, so no packet path joins them; give the servers NVLink (cluster.nvlink_gbps) or a NIC for each GPU (cluster.nics_per_server)"
    )]
    SameHost {
        /// Number of the flow.
        flow: u32,
        /// Rank that sends.
        src_rank: u32,
        /// Rank that receives.
        dst_rank: u32,
        /// Id of the host that is their NIC.
        host: u32,
    },
    /// The file of routes has none for a flow.
    #[error(
        "{path}: no route for flow {flow} (rank {src_rank} to rank {dst_rank}); add a line that begins with `{flow}`"
    )]
    NotInFile {
        /// Path of the file.
        path: String,
        /// Number of the flow.
        flow: u32,
        /// Rank that sends.
        src_rank: u32,
        /// Rank that receives.
        dst_rank: u32,
    },
    /// A policy of the program that uses the library returned no route that connects, or panicked.
    #[error("{policy}, flow {flow}: {why}; other experiments are not touched by it")]
    Policy {
        /// Name of the policy, and where it is from.
        policy: String,
        /// Number of the flow.
        flow: u32,
        /// The fault of its route, in words.
        why: String,
    },
}
