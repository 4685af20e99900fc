//! Ids of memo nodes, which are the same in every process.
//!
//! Layer: fold/memo. Knows nothing of what a node holds.

use sha2::Digest;
use sha2::Sha256;

/// 128 bits of a cryptographic hash of everything that led to the node.
pub type MemoNodeId = [u8; 16];

/// The id of the root or snapshot of `key`.
pub(crate) fn root_id(key: &[u8]) -> MemoNodeId {
    named(&[b"root", key])
}

/// The id of the node that the edge `key` leads to from `parent`.
pub(crate) fn child_id(parent: &MemoNodeId, key: &[u8]) -> MemoNodeId {
    named(&[parent, key])
}

fn named(parts: &[&[u8]]) -> MemoNodeId {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    let digest = hash.finalize();
    let mut id = MemoNodeId::default();
    id.copy_from_slice(&digest[..16]);
    id
}
