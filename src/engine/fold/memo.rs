//! What partitions did before: a trie of episodes. An episode is a partition's life from idle to idle. Its root is the canonical form of what it starts from, each
//! further post, newcomer or merger leads to a child, and a node tells what messages will have arrived and ended if nothing further comes.
//!
//! Keys are compared as whole bytes, so there is no false hit. Nodes only ever gain what any simulation of the same past would add: results cannot depend on it.
//! A [`Shelf`] may hold what earlier runs found out; it is asked for a root when that is first met. `codec` says how tries travel there and back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use super::codec;
use crate::columns::{FlowRx, FlowTx};

/// Bytes of keys and outcomes beyond which nothing new is remembered.
const MOST_BYTES: u64 = 1 << 30;

/// The name of a past: 128 bits of a cryptographic hash of everything that led there, so that it means the same to every process.
pub type Id = [u8; 16];

/// What earlier runs left behind.
pub trait Shelf: Send + Sync {
    /// Every record of the root of this name, as [`super::Unsaved`] had them; none if there is none.
    fn fetch(&self, root: &Id) -> Vec<Vec<u8>>;
}

/// Episodes known to this process; shared by all experiments and threads.
#[derive(Default)]
pub struct Memo {
    roots: Mutex<HashMap<Box<[u8]>, Arc<Node>>>,
    shelf: Option<Arc<dyn Shelf>>,
    bytes: AtomicU64,
}

/// A past that partitions may share.
pub struct Node {
    pub id: Id,
    /// Of a root: what followed was no function of the key (a random marking), so remembering is in vain.
    pub wild: AtomicBool,
    /// Nothing happens before this if nothing else is known, from the episode's start, ps.
    pub(super) born: u64,
    body: Mutex<Body>,
}

/// What follows that past.
#[derive(Default)]
pub struct Body {
    pub told: Vec<Told>,
    /// All of `told` before this is there, counted from the episode's start, ps.
    pub known: u64,
    pub(super) children: HashMap<Box<[u8]>, Arc<Node>>,
    /// The partition came to rest.
    pub end: Option<Arc<Leaf>>,
    /// How much of it the shelf has.
    pub(super) saved: Option<Saved>,
}

/// What of a node is on the shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    pub known: u64,
    pub end: bool,
    pub wild: bool,
}

/// A message arrived whole (`got`), else was acknowledged whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// From the episode's start, ps.
    pub at: u64,
    /// Local number of its queue pair, and which of its messages in this episode.
    pub member: u32,
    pub nth: u32,
    pub got: bool,
}

/// What an episode leaves behind, by local numbers.
#[derive(Debug, PartialEq)]
pub struct Leaf {
    /// From the episode's start, ps.
    pub at: u64,
    pub nics: Vec<NicEnd>,
    pub ports: Vec<PortEnd>,
    /// The most that each ingress held.
    pub peaks: Vec<u32>,
    pub members: Vec<MemberEnd>,
}

#[derive(Debug, PartialEq)]
pub struct NicEnd {
    pub tx_bytes: u64,
    pub hops: u64,
    pub rr: u32,
    /// Queue pairs in its turn.
    pub order: Vec<u32>,
}

/// Gains of a port's counters; `max_q` within the episode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortEnd {
    pub tx_bytes: u64,
    pub hops: u64,
    pub max_q: u32,
    pub q_area: u64,
    pub marks: u64,
}

/// Rows of a queue pair at the end, and where the episode began for it.
#[derive(Debug, PartialEq)]
pub struct MemberEnd {
    pub start: u64,
    pub tx: FlowTx,
    pub rx: FlowRx,
    pub tx_before: FlowTx,
    pub rx_before: FlowRx,
}

impl Memo {
    /// An empty memo that asks `shelf` for what it has not met.
    pub fn on(shelf: Arc<dyn Shelf>) -> Memo {
        Memo { shelf: Some(shelf), ..Memo::default() }
    }

    /// The root of `key`, made if need be, and whether it was there. `None`: the memo is full.
    pub fn root(&self, key: Vec<u8>) -> Option<(Arc<Node>, bool)> {
        let mut roots = lock(&self.roots);
        if let Some(node) = roots.get(key.as_slice()) {
            return Some((Arc::clone(node), true));
        }
        let node = self.node(root_id(&key), key.len(), 0)?;
        let Some(shelf) = &self.shelf else {
            roots.insert(key.into_boxed_slice(), Arc::clone(&node));
            return Some((node, false));
        };
        // Whoever else meets it now waits for its body, not for all roots.
        let mut body = node.body();
        roots.insert(key.as_slice().into(), Arc::clone(&node));
        drop(roots);
        let mut was_there = false;
        for record in shelf.fetch(&node.id) {
            if let Some(root) = codec::decode(&record, &key) {
                self.bytes.fetch_add(root.bytes, Ordering::Relaxed);
                node.wild.fetch_or(root.node.wild.load(Ordering::Relaxed), Ordering::Relaxed);
                merge(&mut body, root.node);
                was_there = true;
            }
        }
        drop(body);
        Some((node, was_there))
    }

    /// The child of `node` by `key`, made if need be, and whether it was there; nothing is known of a new one before `known`. `None`: the memo is full.
    pub fn child(&self, node: &Node, key: Vec<u8>, known: u64) -> Option<(Arc<Node>, bool)> {
        let mut body = node.body();
        if let Some(child) = body.children.get(key.as_slice()) {
            return Some((Arc::clone(child), true));
        }
        let child = self.node(child_id(&node.id, &key), key.len(), known)?;
        body.children.insert(key.into_boxed_slice(), Arc::clone(&child));
        Some((child, false))
    }

    fn node(&self, id: Id, key: usize, known: u64) -> Option<Arc<Node>> {
        self.room(Node::bytes(key)).then(|| Arc::new(Node::new(id, known)))
    }

    /// Takes room for `bytes` if there is any.
    pub fn room(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) < MOST_BYTES
    }

    /// Bytes of all that is remembered; whatever is added adds to it.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Every root with its key.
    pub(super) fn roots(&self) -> Vec<(Box<[u8]>, Arc<Node>)> {
        lock(&self.roots).iter().map(|(key, node)| (key.clone(), Arc::clone(node))).collect()
    }
}

/// The name of the root of `key`.
pub fn root_id(key: &[u8]) -> Id {
    named(&[b"root", key])
}

/// The name of what the edge `key` leads to from `parent`.
pub(super) fn child_id(parent: &Id, key: &[u8]) -> Id {
    named(&[parent, key])
}

fn named(parts: &[&[u8]]) -> Id {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    let digest = hash.finalize();
    let mut id = Id::default();
    id.copy_from_slice(&digest[..16]);
    id
}

/// What `other` says of the same past becomes part of `body`. Both are true, so what says more includes what says less.
pub(super) fn merge(body: &mut Body, other: Node) {
    let mut left: Vec<(Arc<Node>, Node)> = Vec::new();
    merge_one(body, other, &mut left);
    while let Some((node, other)) = left.pop() {
        merge_one(&mut node.body(), other, &mut left);
    }
}

fn merge_one(body: &mut Body, mut other: Node, left: &mut Vec<(Arc<Node>, Node)>) {
    let mut more = std::mem::take(other.body.get_mut().unwrap_or_else(PoisonError::into_inner));
    if body.end.is_none() && (more.end.is_some() || more.known > body.known || body.saved.is_none()) {
        (body.told, body.known, body.end, body.saved) = (std::mem::take(&mut more.told), more.known, more.end.take(), more.saved);
    }
    if let (Some(saved), Some(more)) = (&mut body.saved, more.saved) {
        saved.wild |= more.wild;
    }
    for (key, child) in std::mem::take(&mut more.children) {
        match body.children.entry(key) {
            Entry::Vacant(place) => {
                place.insert(child);
            }
            Entry::Occupied(place) => {
                // Nobody else holds what was just decoded.
                left.extend(Arc::into_inner(child).map(|child| (Arc::clone(place.get()), child)));
            }
        }
    }
}

/// Episodes are long chains: they are taken down one by one, as a node that drops its children that drop theirs would overflow the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let mut left = self.take_children();
        while let Some(node) = left.pop() {
            if let Some(mut last) = Arc::into_inner(node) {
                left.append(&mut last.take_children());
            }
        }
    }
}

impl Node {
    pub(super) fn new(id: Id, known: u64) -> Node {
        Node { id, wild: AtomicBool::new(false), born: known, body: Mutex::new(Body { known, ..Body::default() }) }
    }

    /// Room that a node takes whose key has `key` bytes.
    pub(super) fn bytes(key: usize) -> usize {
        key + size_of::<Node>() + 64
    }

    fn take_children(&mut self) -> Vec<Arc<Node>> {
        let body = self.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut body.children).into_values().collect()
    }

    pub fn body(&self) -> MutexGuard<'_, Body> {
        lock(&self.body)
    }
}

impl Leaf {
    /// Room that it takes.
    pub fn bytes(nics: usize, ports: usize, members: usize) -> usize {
        nics * 64 + ports * 64 + members * size_of::<MemberEnd>()
    }
}

/// A thread that panicked left nothing half done here: every change is a single insertion.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_episode_is_let_go_without_recursion() {
        let memo = Memo::default();
        let (mut node, _) = memo.root(vec![0]).expect("an empty memo has room");
        for post in 0..200_000u32 {
            node = memo.child(&node, post.to_le_bytes().to_vec(), 0).expect("the memo has room").0;
        }
        drop(node);
        drop(memo);
    }
}
