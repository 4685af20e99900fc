//! Nodes of the memo. An *episode* is a partition's lifetime, from idle to idle. Its root node stands for the canonical key of its start. Each effect
//! of the rest of the experiment (a post, a message that follows another, a queue pair that joins, a merge) leads to a child. A node holds the
//! message events that follow if there is no such effect.
//!
//! From time to time a node ends in a *checkpoint*: a snapshot of the whole partition. The snapshot's node is shared by all pasts that lead to it, so
//! a repeating pattern is a cycle.
//!
//! Layer: fold/memo.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use foldhash::fast::RandomState;

use crate::memo::keys::edge;
use crate::memo::lock::lock;
use crate::memo::node_id::{MemoNodeId, child_id, root_id};
use crate::memo::outcome::{CounterDelta, FinalState, NicDelta, PartitionPiece, PortDelta};
use crate::memo::owner::{NodeMaker, NodeOwner};
use crate::memo::skip_choice::SkipChoice;
use crate::memo::skip_plan::{RoundTrips, SkipPlan, SkipRate};
use crate::rows::canonical_key::CanonicalKey;

/// A node's id, computed when it is first needed. Most ids never are: only saved nodes and merges need them.
pub struct LazyNodeId {
    id: OnceLock<MemoNodeId>,
    key: Arc<[u8]>,
    /// `None`: a root or a snapshot.
    parent: Option<Weak<MemoNode>>,
}

impl From<MemoNodeId> for LazyNodeId {
    fn from(id: MemoNodeId) -> LazyNodeId {
        LazyNodeId { id: id.into(), key: Arc::default(), parent: None }
    }
}

impl LazyNodeId {
    /// The id of the root or snapshot of `key`. `id`: its value, if known already.
    pub fn root(key: &Arc<[u8]>, id: Option<MemoNodeId>) -> LazyNodeId {
        LazyNodeId { id: id.map_or_else(OnceLock::new, OnceLock::from), key: Arc::clone(key), parent: None }
    }

    /// The id of the node that the edge `key` leads to from `parent`.
    pub fn child(parent: &Arc<MemoNode>, key: &Arc<[u8]>) -> LazyNodeId {
        LazyNodeId { id: OnceLock::new(), key: Arc::clone(key), parent: Some(Arc::downgrade(parent)) }
    }

    /// The key of a root or snapshot that was created in this process.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value of the id. PRECONDITION: the memo of the node exists.
    pub fn id(&self) -> MemoNodeId {
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

    /// The id, if the parent's id is `parent`.
    fn given(&self, parent: Option<MemoNodeId>) -> MemoNodeId {
        *self.id.get_or_init(|| parent.map_or_else(|| root_id(&self.key), |up| child_id(&up, &self.key)))
    }
}

/// Nodes by their whole keys. Keys are tens of kilobytes, so a fast hash matters. No result depends on the order of entries.
pub(crate) type Keyed = HashMap<Arc<[u8]>, Arc<MemoNode>, RandomState>;

/// A node of the memo: a past that partitions may share.
pub struct MemoNode {
    pub name: LazyNodeId,
    /// Whether, from some instant on, what follows is random (a random mark) and no function of the past. Then waiting for its recorder is useless.
    pub unpredictable: AtomicBool,
    /// For a snapshot: its size in bytes; it is the last part of the key.
    state: Option<usize>,
    /// The experiment that created this node, and the one that records what follows.
    pub owner: NodeOwner,
    /// Time before which nothing happens if nothing else is known, in ps from the episode's start.
    pub born: u64,
    body: Mutex<NodeBody>,
}

/// Frees children one by one: episodes are long chains, and a recursive drop would overflow the stack.
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
    pub fn new(name: LazyNodeId, known: u64, state: Option<usize>, maker: NodeMaker) -> MemoNode {
        MemoNode {
            name,
            unpredictable: AtomicBool::new(false),
            state,
            owner: maker.into(),
            born: known,
            body: Mutex::new(NodeBody { known, ..NodeBody::default() }),
        }
    }

    /// Memory in bytes of a node whose key has `key` bytes.
    pub fn bytes(key: usize) -> usize {
        key + size_of::<MemoNode>() + 64
    }

    fn take_children(&mut self) -> Vec<Arc<MemoNode>> {
        let body = self.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut body.children).into_values().collect()
    }

    /// The node's id, which is the same in every process.
    pub fn id(&self) -> MemoNodeId {
        self.name.id()
    }

    /// The snapshot, if the node is one.
    pub fn state(&self) -> Option<&[u8]> {
        let key = self.name.key();
        self.state.map(|len| &key[key.len() - len..])
    }

    pub fn body(&self) -> MutexGuard<'_, NodeBody> {
        lock(&self.body)
    }

    /// The known future of the node. PRECONDITION: no other thread has it.
    pub fn into_body(mut self) -> NodeBody {
        std::mem::take(self.body.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The future that is known to follow a node's past.
#[derive(Default)]
pub struct NodeBody {
    pub events: Vec<TimedMessageEvent>,
    /// Time in ps from the episode's start before which all events are known.
    pub known: u64,
    pub children: Keyed,
    /// The final state, if the partition becomes idle.
    pub end: Option<Arc<FinalState>>,
    /// The end of what is known, if it continues from snapshots that other pasts share.
    pub checkpoint: Option<Arc<Checkpoint>>,
    /// The end of what is known, if it continues with a child that depends on the messages that wait then.
    pub choice: Option<Arc<SkipChoice>>,
    /// How much of it the store has.
    pub saved: Option<Saved>,
}

impl NodeBody {
    /// Whether there is an edge of kind `tag` at `at_ps`.
    pub fn has_edge(&self, tag: u8, at_ps: u64) -> bool {
        let begin = edge(tag, at_ps, CanonicalKey::default());
        self.children.keys().any(|key| key.starts_with(&begin))
    }
}

/// An event of a message, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedMessageEvent {
    /// Time in ps from the start of the episode or the last checkpoint.
    pub at: u64,
    /// Local number of its queue pair, and the message's number on it since that start.
    pub member: u32,
    pub nth: u32,
    pub event: MessageEvent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageEvent {
    /// Its last byte was sent. If the next message has been posted, its bytes follow at once.
    Sent,
    /// All of it has arrived.
    Delivered,
    /// All of it was acknowledged.
    Acked,
}

/// The end of a known interval: the snapshots at that instant, and what counters gained since the start or the last checkpoint.
#[derive(Clone)]
pub struct Checkpoint {
    /// Time in ps from that start.
    pub at: u64,
    /// The pieces into which the partition splits. With one piece it stays whole.
    pub pieces: Vec<PartitionPiece>,
    pub continuations: Vec<Continuation>,
    /// The gains of the counters of each NIC, port and queue pair.
    pub nics: Vec<NicDelta>,
    pub ports: Vec<PortDelta>,
    /// Maximum number of bytes that each ingress held.
    pub peaks: Vec<u32>,
    pub members: Vec<CounterDelta>,
}

impl Checkpoint {
    /// Whether a piece is skipped from here on.
    pub fn skips(&self) -> bool {
        self.continuations.iter().any(|continuation| matches!(continuation, Continuation::Skip(_)))
    }

    /// The number of packets that left ports until this checkpoint.
    pub fn hops(&self) -> u64 {
        self.nics.iter().map(|gained| gained.hops).sum::<u64>()
            + self.ports.iter().map(|gained| gained.hops).sum::<u64>()
    }

    /// Memory that it takes, in bytes.
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
                            + s.round_trips.len() * size_of::<RoundTrips>()
                    }
                    Continuation::Snapshot(_) | Continuation::Stored(_) => 0,
                }
        };
        let rows = self.nics.len() * size_of::<NicDelta>()
            + self.ports.len() * size_of::<PortDelta>()
            + self.peaks.len() * 4
            + self.members.len() * size_of::<CounterDelta>();
        size_of::<Checkpoint>()
            + rows
            + self.pieces.iter().map(piece).sum::<usize>()
            + self.continuations.iter().map(continuation).sum::<usize>()
    }
}

/// How a piece of a partition goes on after a checkpoint.
#[derive(Clone)]
pub enum Continuation {
    Snapshot(Arc<MemoNode>),
    /// From the snapshot with this id, which has not been fetched from the store yet.
    Stored(MemoNodeId),
    /// It is skipped ahead by this plan.
    Skip(Arc<SkipPlan>),
    /// It is idle, in this snapshot, so it retires.
    Retire(Arc<[u8]>),
}

/// How much of a node the store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    pub known: u64,
    /// Number of message events.
    pub events: usize,
    pub end: bool,
    pub checkpoint: bool,
    pub choice: bool,
    pub unpredictable: bool,
}

impl Saved {
    /// Whether this knows more than `other`, for nodes without an end.
    pub fn says_more_than(&self, other: &Saved) -> bool {
        (self.known, self.events) > (other.known, other.events)
    }
}

/// The part of a node that there is to save now.
pub(crate) fn standing(node: &MemoNode, body: &NodeBody) -> Saved {
    // Events at `known` belong to what follows them; nothing reads later ones.
    let events = body.events.partition_point(|x| x.at <= body.known);
    Saved {
        known: body.known,
        events,
        end: body.end.is_some(),
        checkpoint: body.checkpoint.is_some(),
        choice: body.choice.is_some(),
        unpredictable: node.unpredictable.load(Ordering::Relaxed),
    }
}

pub(crate) fn is_news(now: Saved, saved: Option<Saved>) -> bool {
    saved.is_none_or(|s| {
        (now.end && !s.end)
            || (now.checkpoint && !s.checkpoint)
            || (now.choice && !s.choice)
            || (now.unpredictable && !s.unpredictable)
            || (!s.end && now.says_more_than(&s))
    })
}
