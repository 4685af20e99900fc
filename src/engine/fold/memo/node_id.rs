//! Names of pasts, which mean the same to every process. Most are never asked for: only what is kept, and mergers.
//!
//! Layer: engine. Knows nothing of what follows a past.

use std::sync::{Arc, OnceLock, Weak};

use sha2::{Digest, Sha256};

use crate::engine::fold::memo::table::MemoNode;

/// 128 bits of a cryptographic hash of everything that led there.
pub type NodeId = [u8; 16];

/// A name, or what it is made of.
pub struct LazyNodeId {
    id: OnceLock<NodeId>,
    key: Arc<[u8]>,
    /// `None`: a root or a state.
    parent: Option<Weak<MemoNode>>,
}

impl From<NodeId> for LazyNodeId {
    fn from(id: NodeId) -> LazyNodeId {
        LazyNodeId { id: id.into(), key: Arc::default(), parent: None }
    }
}

impl LazyNodeId {
    /// Of the root or state of `key`; `id`: if it is known already.
    pub fn root(key: &Arc<[u8]>, id: Option<NodeId>) -> LazyNodeId {
        LazyNodeId { id: id.map_or_else(OnceLock::new, OnceLock::from), key: Arc::clone(key), parent: None }
    }

    /// Of what the edge `key` leads to from `parent`.
    pub fn child(parent: &Arc<MemoNode>, key: &Arc<[u8]>) -> LazyNodeId {
        LazyNodeId { id: OnceLock::new(), key: Arc::clone(key), parent: Some(Arc::downgrade(parent)) }
    }

    /// The key, of a root or state that was made here.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// PRECONDITION: the memo that the node is of is still there.
    pub fn id(&self) -> NodeId {
        if let Some(id) = self.id.get() {
            return *id;
        }
        let parent = |name: &LazyNodeId| {
            name.parent.as_ref().map(|up| up.upgrade().expect("a memo forgets nothing while it is there"))
        };
        // Episodes are long chains: no recursion.
        let mut unnamed: Vec<Arc<MemoNode>> = Vec::new();
        let mut up = parent(self);
        while let Some(node) = up.take_if(|node| node.name.id.get().is_none()) {
            up = parent(&node.name);
            unnamed.push(node);
        }
        let mut above = up.map(|node| node.id());
        while let Some(node) = unnamed.pop() {
            above = Some(node.name.given(above));
        }
        self.given(above)
    }

    /// The name, given that of the parent.
    fn given(&self, parent: Option<NodeId>) -> NodeId {
        *self.id.get_or_init(|| parent.map_or_else(|| root_id(&self.key), |up| child_id(&up, &self.key)))
    }
}

/// The name of the root or state of `key`.
pub fn root_id(key: &[u8]) -> NodeId {
    named(&[b"root", key])
}

/// The name of what the edge `key` leads to from `parent`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fold::memo::in_flight::Recorder;
    use crate::engine::fold::memo::table::Memo;

    #[test]
    fn names_do_not_depend_on_when_they_are_asked_for() {
        let of = |asked: &[usize]| {
            let memo = Memo::default();
            let mut nodes = vec![memo.root(vec![7], Recorder::default()).expect("an empty memo has room").0];
            for key in 0..4u8 {
                let child =
                    memo.child(&nodes[key as usize], vec![key], 0, Recorder::default()).expect("the memo has room").0;
                nodes.push(child);
            }
            for &k in asked {
                nodes[k].id();
            }
            nodes.iter().map(|node| node.id()).collect::<Vec<NodeId>>()
        };
        let ids = of(&[]);
        assert_eq!(ids[0], root_id(&[7]));
        assert_eq!(ids[2], child_id(&ids[1], &[1]));
        for asked in [&[4usize][..], &[2, 4], &[3, 1], &[0, 1, 2, 3, 4]] {
            assert_eq!(of(asked), ids, "{asked:?}");
        }
    }
}
