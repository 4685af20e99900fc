//! The reasons why a flow has no path.
//!
//! Layer: routing. Only the error; `router` and `file` return it.

use crate::topology::FileError;

/// Why a flow has no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("flow {flow}: rank {rank} does not exist; the network has ranks 0 to {last}")]
    NoSuchRank { flow: u32, rank: u32, last: usize },
    #[error(
        "flow {flow}: no route from rank {src_rank} (host {src_host}) to rank {dst_rank} (host {dst_host}): no packet path joins them, \
         and they are not in one server with NVLink; in a rail-only fabric only ranks of one rail or one server can talk"
    )]
    NoRoute { flow: u32, src_rank: u32, src_host: u32, dst_rank: u32, dst_host: u32 },
    #[error(
        "flow {flow}: ranks {src_rank} and {dst_rank} share NIC {host}, so no packet path joins them; give the servers NVLink or a NIC per GPU"
    )]
    SameHost { flow: u32, src_rank: u32, dst_rank: u32, host: u32 },
    #[error(
        "{path}: no route for flow {flow} (rank {src_rank} to rank {dst_rank}); add a line that begins with `{flow}`"
    )]
    NotInFile { path: String, flow: u32, src_rank: u32, dst_rank: u32 },
    #[error("{policy}, flow {flow}: {why}; other experiments are not touched by it")]
    Policy { policy: String, flow: u32, why: String },
}
