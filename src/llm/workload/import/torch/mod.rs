//! What traces of PyTorch's profiler and dumps of its flight recorder have in common.
//!
//! Layer: workload.
//!
//! | module | content |
//! |---|---|
//! | `calls` | collectives and messages by PyTorch's names, sizes of elements |
//! | `files` | which file belongs to which rank |

pub(super) mod calls;
pub(super) mod files;

use super::MAX_RANKS;
use crate::workload::program::{Dim, Stream};

/// Most streams of communication that a program can have here.
pub(super) const MAX_COMM_STREAMS: usize = 252;

/// Streams for communication: lanes of one dimension first, then every other number.
pub(super) fn comm_streams() -> impl Iterator<Item = Stream> {
    let lanes = (0..16).map(|lane| Stream::comm_lane(Dim::Other, lane));
    let rest = (2..Stream::FREE.0).map(Stream).filter(|s| s.0 % 8 != Stream::comm(Dim::Other).0 % 8 || s.0 > 127);
    lanes.chain(rest)
}

/// The ranks of a list such as `[0, 1, 2]`. `None`: it is no such list, or was shortened.
pub(super) fn listed(text: &str) -> Option<Vec<u32>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    if inner.is_empty() {
        return Some(Vec::new());
    }
    inner.split(',').map(|item| item.trim().parse().ok().filter(|rank| *rank < MAX_RANKS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_communication_are_all_different() {
        let mut found: Vec<Stream> = comm_streams().collect();
        assert!(found.len() >= MAX_COMM_STREAMS, "{}", found.len());
        assert!(found.iter().all(|s| ![Stream::COMPUTE, Stream::COPY, Stream::FREE].contains(s)));
        found.sort();
        found.dedup();
        assert!(found.len() >= MAX_COMM_STREAMS, "{}", found.len());
    }
}
