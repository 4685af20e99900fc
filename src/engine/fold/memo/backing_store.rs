//! What earlier runs found out. A [`Shelf`] has it by names; it is asked for a root or a state when that is first met, and for where a cut leads when that is first
//! followed, never for more.
//!
//! Layer: engine. Whatever the shelf does not have is simulated: a cut that leads to what is not there is forgotten, and the node goes on as if it had none.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::fold::memo::codec;
use crate::engine::fold::memo::in_flight::Recorder;
use crate::engine::fold::memo::node_id::{LazyNodeId, root_id};
use crate::engine::fold::memo::table::{Checkpoint, Continuation, Memo, MemoNode, NodeBody, NodeId, lock};

/// What earlier runs left behind.
pub trait BackingStore: Send + Sync {
    /// Every record of the root or state of this name, as [`super::Unsaved`] had them, the oldest first; none if there is none.
    fn fetch(&self, root: &NodeId) -> Vec<Vec<u8>>;
}

impl Memo {
    /// The root of `key`, or the state of its last `state` bytes, made if need be, and whether it was there. `None`: the memo is full.
    pub(in crate::engine::fold) fn begin(
        &self,
        key: Vec<u8>,
        state: Option<usize>,
        by: Recorder,
    ) -> Option<(Arc<MemoNode>, bool)> {
        if let Some(node) = lock(&self.roots).by_key.get(key.as_slice()) {
            return Some((Arc::clone(node), true));
        }
        // A name is work for large keys, and only a shelf asks for it now.
        let id = self.store.as_ref().map(|_| root_id(&key));
        self.place(id, key, state, by, |store| id.map_or_else(Vec::new, |id| store.fetch(&id)))
    }

    /// The same, of what was not there a moment ago, with the records that the shelf has of it.
    fn place(
        &self,
        id: Option<NodeId>,
        key: Vec<u8>,
        state: Option<usize>,
        by: Recorder,
        records: impl FnOnce(&dyn BackingStore) -> Vec<Vec<u8>>,
    ) -> Option<(Arc<MemoNode>, bool)> {
        let mut roots = lock(&self.roots);
        if let Some(node) = roots.by_key.get(key.as_slice()) {
            return Some((Arc::clone(node), true));
        }
        let key: Arc<[u8]> = key.into();
        let node = self.node(LazyNodeId::root(&key, id), key.len(), 0, state, by)?;
        // Whoever else meets it now waits for its body, not for all roots.
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

    /// `cut` of `node`, with the states that it leads to. `None`: one of them is not to be had, and `node` has no cut any more.
    pub(in crate::engine::fold) fn reach(
        &self,
        node: &MemoNode,
        checkpoint: Arc<Checkpoint>,
    ) -> Option<Arc<Checkpoint>> {
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
        // Unless somebody else was here meanwhile.
        if body.checkpoint.as_ref().is_some_and(|now| Arc::ptr_eq(now, &checkpoint)) {
            body.checkpoint.clone_from(&whole);
            if let (None, Some(saved)) = (&whole, &mut body.saved) {
                // The next one is worth saving again.
                saved.checkpoint = false;
            }
        }
        whole
    }

    /// The state of this name, if it is here or on the shelf.
    fn named(&self, id: &NodeId) -> Option<Arc<MemoNode>> {
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

/// What `other` says of the same past becomes part of `body`. Both are true, so what says more includes what says less.
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
        // The later one was found where the earlier one led nowhere.
        body.checkpoint = more.checkpoint;
    }
    if let Some(saved) = &mut body.saved {
        for also in [was, more.saved].into_iter().flatten() {
            saved.unpredictable |= also.unpredictable;
            saved.checkpoint |= also.checkpoint;
        }
    }
    for (key, child) in more.children {
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
