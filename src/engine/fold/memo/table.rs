//! What partitions did before. An episode is a partition's life from idle to idle. Its root is the canonical form of what it starts from; what the rest of the world does (a
//! post, a message that follows another, a newcomer, a merger) leads to a child, and a node tells what will have become of messages if nothing of the kind comes. Now and then
//! a node ends in a *cut*: the partition's whole state by then, a node that all pasts share which lead there. A pattern that repeats is a cycle.
//!
//! Keys are compared as whole bytes, so there is no false hit. Nodes only ever gain what any simulation of the same past would add: results cannot depend on it.
//! `shelf` knows of earlier runs, `codec` how tries travel there and back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::fold::rows::canonical_key::CanonicalKey;
use foldhash::fast::RandomState;

use crate::columns::{FlowRx, FlowTx, Port};
use crate::engine::fold::memo::backing_store::BackingStore;
use crate::engine::fold::memo::in_flight::{InFlight, NodeOwner, Recorder};
use crate::engine::fold::memo::node_id::LazyNodeId;
pub use crate::engine::fold::memo::node_id::NodeId;
use crate::engine::fold::run::join::edge;
use crate::engine::fold::steady::skip_plan::{SkipPlan, SkipRate};

/// Bytes of keys and outcomes beyond which nothing new is remembered.
const MOST_BYTES: u64 = 1 << 30;

/// Nodes by whole keys. These are tens of kilobytes of states, so what they are hashed by matters; nobody sees in which order they stand.
pub(in crate::engine::fold) type Keyed = HashMap<Arc<[u8]>, Arc<MemoNode>, RandomState>;

/// Episodes known to this process; shared by all experiments and threads.
#[derive(Default)]
pub struct Memo {
    pub(in crate::engine::fold) roots: Mutex<Roots>,
    pub(in crate::engine::fold) store: Option<Arc<dyn BackingStore>>,
    /// Who is finding out what.
    pub(in crate::engine::fold) in_flight: Arc<InFlight>,
    pub(in crate::engine::fold) bytes: AtomicU64,
}

/// Where episodes begin or go on: roots and states, by their keys; states by their names too.
#[derive(Default)]
pub(in crate::engine::fold) struct Roots {
    pub by_key: Keyed,
    /// Only what a shelf may tell of.
    pub states: HashMap<NodeId, Arc<MemoNode>>,
}

/// A past that partitions may share.
pub struct MemoNode {
    pub(in crate::engine::fold) name: LazyNodeId,
    /// What followed was from some instant on no function of the past (a random marking): waiting for who records it is in vain.
    pub unpredictable: AtomicBool,
    /// Of a state: how many bytes at the end of its key are it.
    state: Option<usize>,
    /// Who is finding out what follows.
    pub(in crate::engine::fold) owner: NodeOwner,
    /// Nothing happens before this if nothing else is known, from the episode's start, ps.
    pub(in crate::engine::fold) born: u64,
    body: Mutex<NodeBody>,
}

/// What follows that past.
#[derive(Default)]
pub struct NodeBody {
    pub events: Vec<TimedMessageEvent>,
    /// All of `told` before this is there, counted from the episode's start, ps.
    pub known: u64,
    pub(in crate::engine::fold) children: Keyed,
    /// The partition came to rest.
    pub end: Option<Arc<FinalState>>,
    /// What is known goes on from a state that others came to as well.
    pub checkpoint: Option<Arc<Checkpoint>>,
    /// How much of it the shelf has.
    pub(in crate::engine::fold) saved: Option<Saved>,
}

impl NodeBody {
    /// Whether an edge of this kind leads on at `at`.
    pub fn has_edge(&self, tag: u8, at: u64) -> bool {
        let begin = edge(tag, at, CanonicalKey::default());
        self.children.keys().any(|key| key.starts_with(&begin))
    }
}

/// What of a node is on the shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    pub known: u64,
    /// How many tidings.
    pub events: usize,
    pub end: bool,
    pub checkpoint: bool,
    pub unpredictable: bool,
}

/// News of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedMessageEvent {
    /// From the start of the episode, or from the last cut, ps.
    pub at: u64,
    /// Local number of its queue pair, and which of its messages since then.
    pub member: u32,
    pub nth: u32,
    pub event: MessageEvent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageEvent {
    /// Its last byte was sent: if the next is posted by now, it follows at once.
    Sent,
    /// It arrived whole.
    Delivered,
    /// It was acknowledged whole.
    Acked,
}

/// Where a stretch of the known leads: the states by then, and what was gained since the start or the last cut.
#[derive(Clone)]
pub struct Checkpoint {
    /// From there, ps.
    pub at: u64,
    /// What the partition falls apart into; one piece: it stays whole.
    pub pieces: Vec<PartitionPiece>,
    pub continuations: Vec<Continuation>,
    /// Bytes and packets sent.
    pub nics: Vec<(u64, u64)>,
    pub ports: Vec<PortDelta>,
    /// The most that each ingress held.
    pub peaks: Vec<u32>,
    pub members: Vec<CounterDelta>,
}

/// Rows of a partition that go on by themselves, by local numbers; the queue pairs that are at work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionPiece {
    pub nics: Vec<u32>,
    pub ports: Vec<u32>,
    pub ends: Vec<u32>,
    pub members: Vec<u32>,
    pub working: Vec<u32>,
    /// What [`super::part::Part::ancestors`] is by then: places among the numbers of the members and, behind these, of the ancestors before.
    pub ancestors: Vec<u32>,
}

impl PartitionPiece {
    pub fn is_empty(&self) -> bool {
        self.nics.is_empty() && self.ports.is_empty() && self.members.is_empty()
    }
}

/// Where a piece leads.
#[derive(Clone)]
pub enum Continuation {
    Snapshot(Arc<MemoNode>),
    /// To the state of this name, which nobody has taken from the shelf yet.
    Stored(NodeId),
    /// It sleeps.
    Skip(Arc<SkipPlan>),
    /// Its rows rest, in this state.
    Retire(Arc<[u8]>),
}

/// What a queue pair's counters gained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterDelta {
    pub una: u64,
    pub sent_bytes: u64,
    pub arrived_bytes: u64,
    pub milestone: u64,
    pub n_sent: u32,
    pub n_acks: u32,
}

/// What an episode leaves behind, by local numbers.
#[derive(Debug, PartialEq)]
pub struct FinalState {
    /// From the episode's start, ps.
    pub at: u64,
    pub nics: Vec<NicFinal>,
    pub ports: Vec<PortDelta>,
    /// The most that each ingress held.
    pub peaks: Vec<u32>,
    pub members: Vec<MemberFinal>,
}

#[derive(Debug, PartialEq)]
pub struct NicFinal {
    pub tx_bytes: u64,
    pub hops: u64,
    pub rr: u32,
    /// Queue pairs in its turn.
    pub order: Vec<u32>,
}

/// Gains of a port's counters; `max_q` within the episode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortDelta {
    pub tx_bytes: u64,
    pub hops: u64,
    pub max_q: u32,
    pub q_area: u64,
    pub marks: u64,
}

impl PortDelta {
    /// Adds itself to the counters of `row`.
    pub fn count(&self, row: &mut Port) {
        row.tx_bytes += self.tx_bytes;
        row.hops += self.hops;
        row.max_q = row.max_q.max(self.max_q);
        row.q_area += self.q_area;
        row.marks += self.marks;
    }
}

/// Rows of a queue pair at the end, and where the episode began for it.
#[derive(Debug, PartialEq)]
pub struct MemberFinal {
    pub start: u64,
    pub tx: FlowTx,
    pub rx: FlowRx,
    pub tx_before: FlowTx,
    pub rx_before: FlowRx,
}

impl Memo {
    /// An empty memo that asks `shelf` for what it has not met.
    pub fn on(store: Arc<dyn BackingStore>) -> Memo {
        let mut memo = Memo::default();
        memo.store = Some(store);
        memo
    }

    /// The root of `key`, made if need be, then claimed by `by`, and whether it was there. `None`: the memo is full.
    pub fn root(&self, key: Vec<u8>, by: Recorder) -> Option<(Arc<MemoNode>, bool)> {
        self.begin(key, None, by)
    }

    /// The node of the state that `key` ends in, the last `len` bytes of it, made if need be, then claimed by `by`, and whether it was there. `None`: the memo is full.
    pub fn state(&self, key: Vec<u8>, len: usize, by: Recorder) -> Option<(Arc<MemoNode>, bool)> {
        self.begin(key, Some(len), by)
    }

    /// The child of `node` by `key`, made if need be, then claimed by `by`, and whether it was there; nothing is known of a new one before `known`. `None`: the memo is full.
    pub fn child(&self, node: &Arc<MemoNode>, key: Vec<u8>, known: u64, by: Recorder) -> Option<(Arc<MemoNode>, bool)> {
        let mut body = node.body();
        if let Some(child) = body.children.get(key.as_slice()) {
            return Some((Arc::clone(child), true));
        }
        let key: Arc<[u8]> = key.into();
        let child = self.node(LazyNodeId::child(node, &key), key.len(), known, None, by)?;
        body.children.insert(key, Arc::clone(&child));
        Some((child, false))
    }

    /// A new node whose key has `key` bytes; of a state, the last `state` of them are it.
    pub(in crate::engine::fold) fn node(
        &self,
        name: LazyNodeId,
        key: usize,
        known: u64,
        state: Option<usize>,
        by: Recorder,
    ) -> Option<Arc<MemoNode>> {
        self.room(MemoNode::bytes(key)).then(|| Arc::new(MemoNode::new(name, known, state, by)))
    }

    /// Bytes of keys and outcomes that it holds.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).min(MOST_BYTES)
    }

    /// Takes room for `bytes` if there is any.
    pub fn room(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) < MOST_BYTES
    }

    /// Every root and state with its key.
    pub(in crate::engine::fold) fn roots(&self) -> Vec<(Arc<[u8]>, Arc<MemoNode>)> {
        lock(&self.roots).by_key.iter().map(|(key, node)| (key.clone(), Arc::clone(node))).collect()
    }
}

/// Cuts may lead in circles, which would keep each other for ever.
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

/// Episodes are long chains: they are taken down one by one, as a node that drops its children that drop theirs would overflow the stack.
impl Drop for MemoNode {
    fn drop(&mut self) {
        let mut left = self.take_children();
        while let Some(node) = left.pop() {
            if let Some(mut last) = Arc::into_inner(node) {
                left.append(&mut last.take_children());
            }
        }
    }
}

impl MemoNode {
    pub(in crate::engine::fold) fn new(name: LazyNodeId, known: u64, state: Option<usize>, by: Recorder) -> MemoNode {
        MemoNode {
            name,
            unpredictable: AtomicBool::new(false),
            state,
            owner: by.into(),
            born: known,
            body: Mutex::new(NodeBody { known, ..NodeBody::default() }),
        }
    }

    /// Room that a node takes whose key has `key` bytes.
    pub(in crate::engine::fold) fn bytes(key: usize) -> usize {
        key + size_of::<MemoNode>() + 64
    }

    fn take_children(&mut self) -> Vec<Arc<MemoNode>> {
        let body = self.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut body.children).into_values().collect()
    }

    /// Its name, which means the same to every process.
    pub fn id(&self) -> NodeId {
        self.name.id()
    }

    /// Of a state: the rows, to be read by [`super::state`].
    pub fn state(&self) -> Option<&[u8]> {
        let key = self.name.key();
        self.state.map(|len| &key[key.len() - len..])
    }

    pub fn body(&self) -> MutexGuard<'_, NodeBody> {
        lock(&self.body)
    }

    /// What follows, of a node that nobody else has.
    pub(in crate::engine::fold) fn into_body(mut self) -> NodeBody {
        std::mem::take(self.body.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Checkpoint {
    /// Room that it takes.
    pub fn bytes(&self) -> usize {
        let piece = |p: &PartitionPiece| {
            4 * (p.nics.len() + p.ports.len() + p.ends.len() + p.members.len() + p.working.len() + p.ancestors.len())
                + size_of::<PartitionPiece>()
        };
        let continuation = |l: &Continuation| {
            size_of::<Continuation>()
                + match l {
                    Continuation::Retire(bytes) => bytes.len(),
                    Continuation::Skip(s) => {
                        size_of::<SkipPlan>()
                            + s.state.len()
                            + s.rates.len() * size_of::<SkipRate>()
                            + s.ports.len() * 16
                    }
                    Continuation::Snapshot(_) | Continuation::Stored(_) => 0,
                }
        };
        let rows = self.nics.len() * 16
            + self.ports.len() * size_of::<PortDelta>()
            + self.peaks.len() * 4
            + self.members.len() * size_of::<CounterDelta>();
        size_of::<Checkpoint>()
            + rows
            + self.pieces.iter().map(piece).sum::<usize>()
            + self.continuations.iter().map(continuation).sum::<usize>()
    }
}

impl FinalState {
    /// Room that it takes.
    pub fn bytes(nics: usize, ports: usize, members: usize) -> usize {
        nics * 64 + ports * 64 + members * size_of::<MemberFinal>()
    }
}

/// A thread that panicked left nothing half done here: every change is a single insertion.
pub(in crate::engine::fold) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
