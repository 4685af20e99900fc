//! Nodes that the backing store lacks: chosen node by node, and encoded as one record per root.
//!
//! Layer: fold/memo.

use super::codec;
use std::sync::Arc;

use super::codec::put_node;
use crate::memo::node::{MemoNode, Saved, is_news, standing};
use crate::memo::node_id::MemoNodeId;
use crate::memo::table::Memo;
use crate::rows::bytes::NumberWriter;

/// A record of what the store lacks of one root.
pub struct Unsaved {
    /// Id of the root, by which the store finds the record.
    pub root: MemoNodeId,
    /// Nodes below the root that the store lacks, encoded.
    pub record: Vec<u8>,
    marks: Vec<(Arc<MemoNode>, Saved)>,
}

impl Unsaved {
    /// Notes that the store has the record now.
    pub fn is_saved(self) {
        for (node, saved) in self.marks {
            node.body().saved = Some(saved);
        }
    }
}

impl Memo {
    /// Passes what the store lacks to `take`, root by root.
    pub fn each_unsaved(&self, mut take: impl FnMut(Unsaved)) {
        let mut roots = self.roots();
        roots.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (key, root) in roots {
            if let Some((record, marks)) = encode(&key, &root) {
                take(Unsaved { root: root.id(), record, marks });
            }
        }
    }

    /// Notes what other processes have added to the store meanwhile, so that it is not saved again. `fetch` returns the records of a root.
    pub fn is_known(&self, mut fetch: impl FnMut(&MemoNodeId) -> Vec<Vec<u8>>) {
        for (key, root) in self.roots() {
            for stored in
                fetch(&root.id()).iter().filter_map(|record| codec::decode(record, &key, root.state().map(<[u8]>::len)))
            {
                let mut left = vec![(Arc::clone(&root), Arc::new(stored.node))];
                while let Some((node, stored)) = left.pop() {
                    let (mut own, stored) = (node.body(), stored.body());
                    let has_more = stored.saved.is_none_or(|stored| is_news(standing(&node, &own), Some(stored)));
                    if !has_more {
                        own.saved = stored.saved;
                    }
                    left.extend(
                        stored
                            .children
                            .iter()
                            .filter_map(|(key, child)| Some((Arc::clone(own.children.get(key)?), Arc::clone(child)))),
                    );
                }
            }
        }
    }
}

/// Whether any node below `root` has something to save.
fn has_news(root: &Arc<MemoNode>) -> bool {
    let mut left = vec![Arc::clone(root)];
    while let Some(node) = left.pop() {
        let body = node.body();
        if is_news(standing(&node, &body), body.saved) {
            return true;
        }
        left.extend(body.children.values().cloned());
    }
    false
}

/// A node that may go into a record.
struct Item {
    node: Arc<MemoNode>,
    parent: usize,
    key: Arc<[u8]>,
    news: bool,
    needed: bool,
}

/// A record's bytes, and what the store will have of each node once it holds the record.
type Encoded = (Vec<u8>, Vec<(Arc<MemoNode>, Saved)>);

/// Encodes what the store lacks of the root of `key`. `None` if it lacks nothing.
fn encode(key: &Arc<[u8]>, root: &Arc<MemoNode>) -> Option<Encoded> {
    if !has_news(root) {
        return None;
    }
    let mut items = vec![Item { node: Arc::clone(root), parent: 0, key: Arc::clone(key), news: false, needed: true }];
    let mut next = 0;
    while next < items.len() {
        let node = Arc::clone(&items[next].node);
        let body = node.body();
        items[next].news = is_news(standing(&node, &body), body.saved);
        let first = items.len();
        items.extend(body.children.iter().map(|(key, child)| Item {
            node: Arc::clone(child),
            parent: next,
            key: Arc::clone(key),
            news: false,
            needed: false,
        }));
        // Results must not depend on the order of a hash map.
        items[first..].sort_unstable_by(|a, b| a.key.cmp(&b.key));
        next += 1;
    }
    for i in (1..items.len()).rev() {
        items[i].needed |= items[i].news;
        let parent = items[i].parent;
        items[parent].needed |= items[i].needed;
    }
    let mut w = NumberWriter::default();
    let mut marks = Vec::new();
    let mut place = vec![0u64; items.len()];
    for (n, i) in (0..items.len()).filter(|&i| items[i].needed).enumerate() {
        place[i] = n as u64;
        let item = &items[i];
        if i > 0 {
            w.number(place[i] - place[item.parent]);
        }
        w.bytes(&item.key);
        if i == 0 {
            w.number(root.state().map_or(0, |state| state.len() as u64 + 1));
        }
        let saved = put_node(&mut w, &item.node, item.news);
        marks.extend(item.news.then(|| (Arc::clone(&item.node), saved)));
    }
    Some((w.0, marks))
}
