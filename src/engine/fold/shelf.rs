//! What earlier runs found out. A [`Shelf`] has it by names; it is asked for a root or a state when that is first met, and for where a cut leads when that is first
//! followed, never for more.
//!
//! Layer: engine. Whatever the shelf does not have is simulated: a cut that leads to what is not there is forgotten, and the node goes on as if it had none.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::claims::By;
use super::codec;
use super::memo::{Body, Cut, Id, Lead, Memo, Node, lock};
use super::name::{Name, root_id};

/// What earlier runs left behind.
pub trait Shelf: Send + Sync {
    /// Every record of the root or state of this name, as [`super::Unsaved`] had them, the oldest first; none if there is none.
    fn fetch(&self, root: &Id) -> Vec<Vec<u8>>;
}

impl Memo {
    /// The root of `key`, or the state of its last `state` bytes, made if need be, and whether it was there. `None`: the memo is full.
    pub(super) fn begin(&self, key: Vec<u8>, state: Option<usize>, by: By) -> Option<(Arc<Node>, bool)> {
        if let Some(node) = lock(&self.roots).by_key.get(key.as_slice()) {
            return Some((Arc::clone(node), true));
        }
        // A name is work for large keys, and only a shelf asks for it now.
        let id = self.shelf.as_ref().map(|_| root_id(&key));
        self.place(id, key, state, by, |shelf| id.map_or_else(Vec::new, |id| shelf.fetch(&id)))
    }

    /// The same, of what was not there a moment ago, with the records that the shelf has of it.
    fn place(
        &self,
        id: Option<Id>,
        key: Vec<u8>,
        state: Option<usize>,
        by: By,
        records: impl FnOnce(&dyn Shelf) -> Vec<Vec<u8>>,
    ) -> Option<(Arc<Node>, bool)> {
        let mut roots = lock(&self.roots);
        if let Some(node) = roots.by_key.get(key.as_slice()) {
            return Some((Arc::clone(node), true));
        }
        let key: Arc<[u8]> = key.into();
        let node = self.node(Name::root(&key, id), key.len(), 0, state, by)?;
        // Whoever else meets it now waits for its body, not for all roots.
        let mut body = node.body();
        if let (Some(_), Some(id)) = (state, id) {
            roots.states.insert(id, Arc::clone(&node));
        }
        roots.by_key.insert(Arc::clone(&key), Arc::clone(&node));
        drop(roots);
        let mut was_there = false;
        for record in self.shelf.as_ref().map_or_else(Vec::new, |shelf| records(shelf.as_ref())) {
            if let Some(root) = codec::decode(&record, &key, state) {
                self.bytes.fetch_add(root.bytes, Ordering::Relaxed);
                node.wild.fetch_or(root.node.wild.load(Ordering::Relaxed), Ordering::Relaxed);
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
    pub(super) fn reach(&self, node: &Node, cut: Arc<Cut>) -> Option<Arc<Cut>> {
        if !cut.leads.iter().any(|lead| matches!(lead, Lead::Shelved(_))) {
            return Some(cut);
        }
        let reached = |lead: &Lead| match lead {
            Lead::Shelved(id) => self.named(id).map(Lead::State),
            lead => Some(lead.clone()),
        };
        let leads = cut.leads.iter().map(reached).collect::<Option<Vec<Lead>>>();
        let whole = leads.map(|leads| Arc::new(Cut { leads, ..Cut::clone(&cut) }));
        let mut body = node.body();
        // Unless somebody else was here meanwhile.
        if body.cut.as_ref().is_some_and(|now| Arc::ptr_eq(now, &cut)) {
            body.cut.clone_from(&whole);
            if let (None, Some(saved)) = (&whole, &mut body.saved) {
                // The next one is worth saving again.
                saved.cut = false;
            }
        }
        whole
    }

    /// The state of this name, if it is here or on the shelf.
    fn named(&self, id: &Id) -> Option<Arc<Node>> {
        if let Some(node) = lock(&self.roots).states.get(id) {
            return Some(Arc::clone(node));
        }
        let records = self.shelf.as_ref()?.fetch(id);
        let (key, state) = records.iter().find_map(|record| codec::key(record))?;
        let (key, state) = (key.to_vec(), Some(state?));
        if root_id(&key) != *id {
            return None;
        }
        self.place(Some(*id), key, state, By::default(), |_| records).map(|(node, _)| node)
    }
}

/// What `other` says of the same past becomes part of `body`. Both are true, so what says more includes what says less.
fn merge(body: &mut Body, other: Node) {
    let mut left: Vec<(Arc<Node>, Node)> = Vec::new();
    merge_one(body, other, &mut left);
    while let Some((node, other)) = left.pop() {
        node.wild.fetch_or(other.wild.load(Ordering::Relaxed), Ordering::Relaxed);
        merge_one(&mut node.body(), other, &mut left);
    }
}

fn merge_one(body: &mut Body, other: Node, left: &mut Vec<(Arc<Node>, Node)>) {
    let more = other.into_body();
    let was = body.saved;
    if body.end.is_none()
        && (more.end.is_some() || was.is_none_or(|was| more.saved.is_some_and(|more| more.says_more_than(&was))))
    {
        (body.told, body.known, body.end, body.saved) = (more.told, more.known, more.end, more.saved);
    }
    if more.cut.is_some() {
        // The later one was found where the earlier one led nowhere.
        body.cut = more.cut;
    }
    if let Some(saved) = &mut body.saved {
        for also in [was, more.saved].into_iter().flatten() {
            saved.wild |= also.wild;
            saved.cut |= also.cut;
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
