//! Ids of memo nodes, which mean the same to every process.
//!
//! Layer: fold/memo. Knows nothing of what a node holds.

use sha2::Digest;
use sha2::Sha256;

/// 128 bits of a cryptographic hash of all that led to the node.
pub type NodeId = [u8; 16];

/// The id of the root or snapshot of `key`.
pub fn root_id(key: &[u8]) -> NodeId {
    named(&[b"root", key])
}

/// The id of the node that the edge `key` leads to from `parent`.
pub fn child_id(parent: &NodeId, key: &[u8]) -> NodeId {
    named(&[parent, key])
}

fn named(parts: &[&[u8]]) -> NodeId {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    let digest = hash.finalize();
    let mut id = NodeId::default();
    id.copy_from_slice(&digest[..16]);
    id
}
