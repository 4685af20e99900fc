//! A partition's place in the memo, and the events since then that the memo lacks.
//!
//! Layer: fold/memo.

use hyperfold_columns::NicIdx;
use std::sync::Arc;

use crate::memo::in_flight::RecordingClaim;
use crate::memo::node::{MemoNode, MessageEvent};

/// An event that is recorded once everything before it has been recorded.
#[derive(Clone)]
pub(crate) struct PendingEvent {
    pub at: u64,
    pub nic: NicIdx,
    pub what: PendingKind,
}

impl PendingEvent {
    /// Sort key: by time; then message events before posts and what the posts cause at once; then by NIC.
    pub(crate) fn order(&self) -> (u64, u32) {
        (self.at, self.turn())
    }

    /// Order among the events of one instant.
    pub(crate) fn turn(&self) -> u32 {
        match self.what {
            PendingKind::Message { at_once: false, .. } => 0,
            _ => self.nic.0 + 1,
        }
    }
}

#[derive(Clone)]
pub(crate) enum PendingKind {
    /// An event of a message. `follows`: size of the message that follows one that was sent, in bytes. `at_once`: a post at the same instant caused
    /// it.
    Message { member: u32, nth: u32, event: MessageEvent, follows: Option<u64>, at_once: bool },
    /// Messages of these sizes, in bytes, were posted at once.
    Post { member: u32, bytes: Vec<u64> },
    /// Rows joined; the key describes them.
    Join(Vec<u8>),
}

/// A partition's place in the memo.
pub(crate) struct MemoCursor {
    /// For a simulated partition: its claim to record `node`.
    pub claim: Option<RecordingClaim>,
    pub node: Arc<MemoNode>,
    /// Number of the node's events that were reported.
    pub next_event: usize,
    /// Events that have happened and are not recorded yet.
    pub pending: Vec<PendingEvent>,
    /// An earlier node, and the events since then. A post or join at a time that has already passed is inserted between them.
    pub anchor: Arc<MemoNode>,
    pub recent: Vec<PendingEvent>,
}

/// A copy has no claim, so it records nothing.
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

    /// Begins a turn at `at_ps`: nothing new happens before that.
    pub(crate) fn turn(&mut self, at_ps: u64) {
        if self.recent.iter().all(|e| e.at < at_ps) {
            self.anchor = Arc::clone(&self.node);
            self.recent.clear();
        }
    }

    /// Returns to the anchor. All events since then are pending again.
    pub(crate) fn rewind(&mut self) {
        let mut all = std::mem::take(&mut self.recent);
        all.append(&mut self.pending);
        self.pending = all;
        self.node = Arc::clone(&self.anchor);
    }

    /// Continues from `node`, where nothing has happened yet.
    pub(crate) fn at(&mut self, node: Arc<MemoNode>) {
        self.anchor = Arc::clone(&node);
        self.node = node;
        self.next_event = 0;
        self.recent.clear();
    }
}
