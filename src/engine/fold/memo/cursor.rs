//! A partition's place in the memo, and what happened since that the memo lacks.
//!
//! Layer: fold/memo.

use crate::columns::NicIdx;
use std::sync::Arc;

use crate::engine::fold::memo::in_flight::RecordingClaim;
use crate::engine::fold::memo::node::{MemoNode, MessageEvent};

/// Something to be recorded once everything before it is.
#[derive(Clone)]
pub(crate) struct PendingEvent {
    pub at: u64,
    pub nic: NicIdx,
    pub what: PendingKind,
}

impl PendingEvent {
    /// By time; then message events, before posts and what these cause at once; then by NIC.
    pub(crate) fn order(&self) -> (u64, u32) {
        (self.at, self.turn())
    }

    /// Its place within its instant.
    pub(crate) fn turn(&self) -> u32 {
        match self.what {
            PendingKind::Message { at_once: false, .. } => 0,
            _ => self.nic.0 + 1,
        }
    }
}

#[derive(Clone)]
pub(crate) enum PendingKind {
    /// `follows`: the bytes of the message that follows one that was sent. `at_once`: by a post of the same instant.
    Message { member: u32, nth: u32, event: MessageEvent, follows: Option<u64>, at_once: bool },
    /// Messages of these sizes were posted at once.
    Post { member: u32, bytes: Vec<u64> },
    /// Rows joined, with this key.
    Join(Vec<u8>),
}

/// A partition's place in the memo.
pub(crate) struct MemoCursor {
    /// Of a simulated partition: it is the one to record `node`.
    pub claim: Option<RecordingClaim>,
    pub node: Arc<MemoNode>,
    /// How many of the node's events were reported.
    pub next_event: usize,
    /// What happened and is not recorded yet.
    pub pending: Vec<PendingEvent>,
    /// An earlier node, and what happened since: a post or join at a time already passed is inserted between.
    pub anchor: Arc<MemoNode>,
    pub recent: Vec<PendingEvent>,
}

/// A copy records nothing.
impl Clone for MemoCursor {
    fn clone(&self) -> MemoCursor {
        MemoCursor {
            claim: None,
            node: Arc::clone(&self.node),
            next_event: self.next_event,
            pending: self.pending.clone(),
            anchor: Arc::clone(&self.anchor),
            recent: self.recent.clone(),
        }
    }
}

impl MemoCursor {
    pub(crate) fn new(root: Arc<MemoNode>) -> MemoCursor {
        MemoCursor {
            claim: None,
            node: Arc::clone(&root),
            anchor: root,
            next_event: 0,
            pending: Vec::new(),
            recent: Vec::new(),
        }
    }

    /// A turn begins at `at`: nothing new happens before.
    pub(crate) fn turn(&mut self, at: u64) {
        if self.recent.iter().all(|e| e.at < at) {
            self.anchor = Arc::clone(&self.node);
            self.recent.clear();
        }
    }

    /// Back to the anchor; all that happened since is pending again.
    pub(crate) fn rewind(&mut self) {
        let mut all = std::mem::take(&mut self.recent);
        all.append(&mut self.pending);
        self.pending = all;
        self.node = Arc::clone(&self.anchor);
    }

    /// Goes on from `node`, where nothing has happened yet.
    pub(crate) fn at(&mut self, node: Arc<MemoNode>) {
        self.anchor = Arc::clone(&node);
        self.node = node;
        self.next_event = 0;
        self.recent.clear();
    }
}
