//! The memo: what partitions did before, in this process and, with a backing store, in earlier runs.
//!
//! The store is asked for a root or a snapshot when it is first met, and for the nodes behind a checkpoint when that is first passed; never for more.
//! What the store lacks is simulated: a checkpoint that leads to a missing node is removed.
//!
//! Keys are compared as whole bytes, so there is no false hit. Nodes only ever gain what any simulation of the same past would add, so results cannot
//! depend on the memo.
//!
//! Layer: fold/memo.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::stored::backing_store::BackingStore;
use super::stored::codec;
use crate::memo::admission::{Admission, hash};
use crate::memo::in_flight::InFlight;
use crate::memo::lock::lock;
use crate::memo::node::{Checkpoint, Continuation, Keyed, LazyNodeId, MemoNode, NodeBody};
use crate::memo::node_id::{MemoNodeId, root_id};
use crate::memo::owner::Recorder;

/// Maximum size of keys and outcomes in bytes, beyond which nothing new is recorded. It is less if less memory may be used ([`Memo::at_most`]).
const MAX_BYTES: u64 = 1 << 30;

/// Episodes known to this process, shared by all experiments and threads.
pub struct Memo {
    pub(crate) roots: Mutex<Roots>,
    pub(crate) store: Option<Arc<dyn BackingStore>>,
    /// Which experiment records what.
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) bytes: AtomicU64,
    max_bytes: u64,
    admission: Admission,
}

impl Default for Memo {
    fn default() -> Memo {
        Memo {
            roots: Mutex::default(),
            store: None,
            in_flight: Arc::default(),
            bytes: AtomicU64::new(0),
            max_bytes: MAX_BYTES,
            admission: Admission::default(),
        }
    }
}

/// Nodes where episodes start or go on: roots and snapshots by key, and snapshots also by id.
#[derive(Default)]
pub(crate) struct Roots {
    pub by_key: Keyed,
    /// Only snapshots that the store may refer to.
    pub states: HashMap<MemoNodeId, Arc<MemoNode>>,
}

impl Memo {
    /// An empty memo that asks `store` for what it has not met.
    pub fn on(store: Arc<dyn BackingStore>) -> Memo {
        let mut memo = Memo::default();
        memo.store = Some(store);
        memo
    }

    /// This memo with a limit: it records nothing new beyond `bytes` bytes.
    pub fn at_most(mut self, bytes: u64) -> Memo {
        self.max_bytes = self.max_bytes.min(bytes);
        self
    }

    /// The root of `key`, and whether it existed. If it did not, it is created and claimed by `recorder`. `None`: the memo does not admit it or is full.
    pub fn root(&self, key: Vec<u8>, recorder: Recorder) -> Option<(Arc<MemoNode>, bool)> {
        self.begin(key, None, recorder)
    }

    /// The node of the snapshot in the last `len` bytes of `key`, and whether it existed. If it did not, it is created and claimed by `recorder`. `None`:
    /// the memo does not admit it or is full.
    pub fn state(&self, key: Vec<u8>, len: usize, recorder: Recorder) -> Option<(Arc<MemoNode>, bool)> {
        self.begin(key, Some(len), recorder)
    }

    /// The child of `node` by `key`, and whether it existed. If it did not, it is created and claimed by `recorder`; nothing is known of it before `known`
    /// (ps). `None`: the memo does not admit it or is full.
    pub fn child(
        &self,
        node: &Arc<MemoNode>,
        key: Vec<u8>,
        known: u64,
        recorder: Recorder,
    ) -> Option<(Arc<MemoNode>, bool)> {
        let mut body = node.body();
        if let Some(child) = body.children.get(key.as_slice()) {
            note_found(recorder, key.len());
            return Some((Arc::clone(child), true));
        }
        // No node is moved or removed while the memo exists.
        if !self.admits(recorder, key.len(), || hash(Arc::as_ptr(node).addr() as u64, &key)) {
            return None;
        }
        let key: Arc<[u8]> = key.into();
        let child = self.node(LazyNodeId::child(node, &key), key.len(), known, None, recorder)?;
        body.children.insert(key, Arc::clone(&child));
        Some((child, false))
    }

    /// The child of `node` by `key`, if it exists.
    pub fn known_child(&self, node: &MemoNode, key: &[u8], recorder: Recorder) -> Option<Arc<MemoNode>> {
        let child = node.body().children.get(key).map(Arc::clone);
        child.inspect(|_| note_found(recorder, key.len()))
    }

    /// A new node whose key has `key` bytes. For a snapshot, `state` is the number of bytes at the key's end that it takes.
    pub fn node(
        &self,
        name: LazyNodeId,
        key: usize,
        known: u64,
        state: Option<usize>,
        recorder: Recorder,
    ) -> Option<Arc<MemoNode>> {
        self.reserve(MemoNode::bytes(key), recorder)
            .then(|| Arc::new(MemoNode::new(name, known, state, recorder.maker)))
    }

    /// Bytes of keys and outcomes that the memo holds.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).min(self.max_bytes)
    }

    /// Reserves memory for `bytes` bytes. Returns whether the memo was not full.
    pub fn reserve(&self, bytes: usize, recorder: Recorder) -> bool {
        self.admission.takes(recorder.balance, bytes as u64);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) < self.max_bytes
    }

    /// Whether a key of `key` bytes that the memo lacks is recorded.
    fn admits(&self, recorder: Recorder, key: usize, hash: impl FnOnce() -> u64) -> bool {
        self.admission.admits(recorder.balance, MemoNode::bytes(key), self.max_bytes, hash)
    }

    /// Every root and snapshot with its key.
    pub fn roots(&self) -> Vec<(Arc<[u8]>, Arc<MemoNode>)> {
        lock(&self.roots).by_key.iter().map(|(key, node)| (key.clone(), Arc::clone(node))).collect()
    }

    /// The root of `key`, or the snapshot in its last `state` bytes, and whether it existed. If it did not, it is created and claimed by `recorder`.
    /// `None`: the memo does not admit it or is full.
    pub fn begin(&self, key: Vec<u8>, state: Option<usize>, recorder: Recorder) -> Option<(Arc<MemoNode>, bool)> {
        if let Some(node) = lock(&self.roots).by_key.get(key.as_slice()) {
            note_found(recorder, key.len());
            return Some((Arc::clone(node), true));
        }
        // Hashing a large key takes time, and only a store needs the id now.
        let id = self.store.as_ref().map(|_| root_id(&key));
        let fetch = |store: &dyn BackingStore| id.map_or_else(Vec::new, |id| store.fetch(&id));
        let bytes = key.len();
        if self.admits(recorder, bytes, || hash(0, &key)) {
            return self.place(id, key, state, recorder, fetch);
        }
        let records = fetch(self.store.as_deref()?);
        let found = if records.is_empty() { None } else { self.place(id, key, state, recorder, |_| records) };
        found.inspect(|_| note_found(recorder, bytes))
    }

    /// Does the same as `begin` for a node that was missing a moment ago, with the records that the store has of it.
    fn place(
        &self,
        id: Option<MemoNodeId>,
        key: Vec<u8>,
        state: Option<usize>,
        recorder: Recorder,
        records: impl FnOnce(&dyn BackingStore) -> Vec<Vec<u8>>,
    ) -> Option<(Arc<MemoNode>, bool)> {
        let mut roots = lock(&self.roots);
        if let Some(node) = roots.by_key.get(key.as_slice()) {
            return Some((Arc::clone(node), true));
        }
        let key: Arc<[u8]> = key.into();
        let node = self.node(LazyNodeId::root(&key, id), key.len(), 0, state, recorder)?;
        // Other threads that meet it now wait for its body, not for all roots.
        let mut body = node.body();
        if let (Some(_), Some(id)) = (state, id) {
            roots.states.insert(id, Arc::clone(&node));
        }
        roots.by_key.insert(Arc::clone(&key), Arc::clone(&node));
        drop(roots);
        let mut was_there = false;
        for record in self.store.as_ref().map_or_else(Vec::new, |store| records(store.as_ref())) {
            if let Some(root) = codec::decode(&record, &key, state) {
                self.bytes.fetch_add(root.bytes, Ordering::Relaxed);
                node.unpredictable.fetch_or(root.node.unpredictable.load(Ordering::Relaxed), Ordering::Relaxed);
                merge(&mut body, root.node);
                was_there = true;
            }
        }
        if was_there {
            node.owner.leave();
        }
        drop(body);
        Some((node, was_there))
    }

    /// `checkpoint` of `node`, with the snapshot nodes that it leads to. `None`: one of them is missing; then the checkpoint is removed from `node`.
    pub fn reach(&self, node: &MemoNode, checkpoint: Arc<Checkpoint>) -> Option<Arc<Checkpoint>> {
        if !checkpoint.continuations.iter().any(|continuation| matches!(continuation, Continuation::Stored(_))) {
            return Some(checkpoint);
        }
        let reached = |continuation: &Continuation| match continuation {
            Continuation::Stored(id) => self.named(id).map(Continuation::Snapshot),
            continuation => Some(continuation.clone()),
        };
        let continuations = checkpoint.continuations.iter().map(reached).collect::<Option<Vec<Continuation>>>();
        let whole =
            continuations.map(|continuations| Arc::new(Checkpoint { continuations, ..Checkpoint::clone(&checkpoint) }));
        let mut body = node.body();
        // Only if no other thread has changed it meanwhile.
        if body.checkpoint.as_ref().is_some_and(|now| Arc::ptr_eq(now, &checkpoint)) {
            body.checkpoint.clone_from(&whole);
            if let (None, Some(saved)) = (&whole, &mut body.saved) {
                // The next checkpoint must be saved again.
                saved.checkpoint = false;
            }
        }
        whole
    }

    /// The snapshot with this id, if the memo or the store has it.
    fn named(&self, id: &MemoNodeId) -> Option<Arc<MemoNode>> {
        if let Some(node) = lock(&self.roots).states.get(id) {
            return Some(Arc::clone(node));
        }
        let records = self.store.as_ref()?.fetch(id);
        let (key, state) = records.iter().find_map(|record| codec::key(record))?;
        let (key, state) = (key.to_vec(), Some(state?));
        if root_id(&key) != *id {
            return None;
        }
        self.place(Some(*id), key, state, Recorder::default(), |_| records).map(|(node, _)| node)
    }
}

/// Counts a key of `key` bytes that `recorder` met and that is known.
fn note_found(recorder: Recorder, key: usize) {
    recorder.balance.into_iter().for_each(|balance| balance.found(MemoNode::bytes(key)));
}

/// Adds what `other` knows of the same past to `body`. Both are correct, so the longer one includes the shorter one.
fn merge(body: &mut NodeBody, other: MemoNode) {
    let mut left: Vec<(Arc<MemoNode>, MemoNode)> = Vec::new();
    merge_one(body, other, &mut left);
    while let Some((node, other)) = left.pop() {
        node.unpredictable.fetch_or(other.unpredictable.load(Ordering::Relaxed), Ordering::Relaxed);
        merge_one(&mut node.body(), other, &mut left);
    }
}

fn merge_one(body: &mut NodeBody, other: MemoNode, left: &mut Vec<(Arc<MemoNode>, MemoNode)>) {
    let more = other.into_body();
    let was = body.saved;
    if body.end.is_none()
        && (more.end.is_some() || was.is_none_or(|was| more.saved.is_some_and(|more| more.says_more_than(&was))))
    {
        (body.events, body.known, body.end, body.saved) = (more.events, more.known, more.end, more.saved);
    }
    if more.checkpoint.is_some() {
        // The later checkpoint was found because the earlier one led to a missing node.
        body.checkpoint = more.checkpoint;
    }
    if more.choice.is_some() {
        body.choice = more.choice;
    }
    if let Some(saved) = &mut body.saved {
        for also in [was, more.saved].into_iter().flatten() {
            saved.unpredictable |= also.unpredictable;
            saved.checkpoint |= also.checkpoint;
            saved.choice |= also.choice;
        }
    }
    for (key, child) in more.children {
        match body.children.entry(key) {
            Entry::Vacant(place) => {
                place.insert(child);
            }
            Entry::Occupied(place) => {
                // No other thread holds a node that was just decoded.
                left.extend(Arc::into_inner(child).map(|child| (Arc::clone(place.get()), child)));
            }
        }
    }
}

/// Frees cycles of nodes: checkpoints may form cycles, which would never be freed otherwise.
impl Drop for Memo {
    fn drop(&mut self) {
        let roots = std::mem::take(self.roots.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut left: Vec<Arc<MemoNode>> = roots.by_key.into_values().collect();
        while let Some(node) = left.pop() {
            let mut body = node.body();
            body.checkpoint = None;
            left.extend(body.children.drain().map(|(_, child)| child));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memo::node_id::child_id;

    #[test]
    fn a_long_episode_is_let_go_without_recursion() {
        let memo = Memo::default();
        let (mut node, _) = memo.root(vec![0], Recorder::default()).expect("an empty memo has room");
        for post in 0..200_000u32 {
            node = memo.child(&node, post.to_le_bytes().to_vec(), 0, Recorder::default()).expect("the memo has room").0;
        }
        drop(node);
        drop(memo);
    }

    #[test]
    fn names_do_not_depend_on_when_they_are_asked_for() {
        let ids_if_asked = |asked: &[usize]| {
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
            nodes.iter().map(|node| node.id()).collect::<Vec<MemoNodeId>>()
        };
        let ids = ids_if_asked(&[]);
        assert_eq!(ids[0], root_id(&[7]));
        assert_eq!(ids[2], child_id(&ids[1], &[1]));
        for asked in [&[4usize][..], &[2, 4], &[3, 1], &[0, 1, 2, 3, 4]] {
            assert_eq!(ids_if_asked(asked), ids, "{asked:?}");
        }
    }
}
