//! A partition: rows that active flows connect, their common clock, and what it has been told so far.

use std::sync::Arc;

use crate::columns::{FlowRx, FlowTx, NEVER, Tables, qp};
use crate::engine::fold::memo::in_flight::RecordingClaim;
use crate::engine::fold::memo::table::{MemoNode, MessageEvent};
use crate::engine::fold::rows::snapshot::RowCounts;
use crate::engine::fold::steady::detector::Detector;
use crate::engine::fold::steady::skip::Skip;
use crate::engine::fold::steady::skip_plan::SkipPlan;

/// A queue pair of a partition, or one that is finished but still in the turn of one of its NICs.
#[derive(Clone)]
pub struct Member {
    pub flow: u32,
    /// Its path belongs to the partition.
    pub routed: bool,
    /// Messages posted in this episode, and whether each was the first of those that one event posted.
    pub posted: Vec<(u32, bool)>,
    /// How many of them the rows have seen: fewer than all while what was looked up is simulated after all.
    pub posts_in_rows: usize,
    /// Of them, those that the network was given, and those told to have been sent, to have arrived, to have ended. Where the former two are equal, the next post sends at
    /// once; else it waits behind what is there, and nothing changes until its turn comes.
    pub given: usize,
    pub sent: usize,
    pub delivered: usize,
    pub acked: usize,
    /// Of those sent, how many the rows have sent: fewer while what was looked up is simulated after all.
    pub sent_in_rows: usize,
    /// Where it stood at the last cut.
    pub at_checkpoint: SendProgress,
    /// Its state is that of the partition's node; else it has only stood in a turn so far.
    pub known: bool,
    /// Its rows when it joined.
    pub tx: FlowTx,
    pub rx: FlowRx,
}

/// How many of a queue pair's messages had been posted, given to the network, sent.
#[derive(Clone, Copy, Default)]
pub struct SendProgress {
    pub posted: usize,
    pub given: usize,
    pub sent: usize,
}

/// Counters of a port when it joined, or at the last cut. Its longest queue is counted anew from then.
#[derive(Clone, Copy)]
pub struct PortBase {
    pub tx_bytes: u64,
    pub hops: u64,
    pub max_q: u32,
    pub q_area: u64,
    pub marks: u64,
}

/// Something that belongs into the memo once everything before it does.
#[derive(Clone)]
pub struct PendingEvent {
    pub at: u64,
    pub nic: u32,
    pub what: PendingKind,
}

impl PendingEvent {
    /// By time; what is told before what is posted, and what that causes at once; then by NIC.
    pub fn order(&self) -> (u64, u32) {
        (self.at, self.turn())
    }

    /// Its place within its instant.
    pub fn turn(&self) -> u32 {
        match self.what {
            PendingKind::Message { at_once: false, .. } => 0,
            _ => self.nic + 1,
        }
    }
}

#[derive(Clone)]
pub enum PendingKind {
    /// `follows`: the bytes of the message that goes on where this one was sent. `at_once`: by a post of the same instant.
    Message { member: u32, nth: u32, event: MessageEvent, follows: Option<u64>, at_once: bool },
    /// Messages of these sizes were posted at once.
    Post { member: u32, bytes: Vec<u64> },
    /// Rows joined, in canonical form.
    Join(Vec<u8>),
}

/// A partition's place in the memo.
pub struct MemoCursor {
    /// Of a simulated partition: it is the one to record `node`.
    pub claim: Option<RecordingClaim>,
    pub node: Arc<MemoNode>,
    /// How many of the node's tidings were told.
    pub next_event: usize,
    /// What happened and is not in the memo yet.
    pub pending: Vec<PendingEvent>,
    /// A place further back, and what happened since: whoever posts or joins at a time that has been passed goes in between.
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
    pub fn new(root: Arc<MemoNode>) -> MemoCursor {
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
    pub fn turn(&mut self, at: u64) {
        if self.recent.iter().all(|e| e.at < at) {
            self.anchor = Arc::clone(&self.node);
            self.recent.clear();
        }
    }

    /// Back to the anchor, with all that happened since still to be told.
    pub fn rewind(&mut self) {
        let mut all = std::mem::take(&mut self.recent);
        all.append(&mut self.pending);
        self.pending = all;
        self.node = Arc::clone(&self.anchor);
    }

    /// Goes on from `node`, where nothing has happened yet.
    pub fn at(&mut self, node: Arc<MemoNode>) {
        self.anchor = Arc::clone(&node);
        self.node = node;
        self.next_event = 0;
        self.recent.clear();
    }
}

/// Rows of a partition that is looked up: they are in the state `node` as of `at`, not in the tables.
#[derive(Clone)]
pub struct BaseSnapshot {
    pub node: Arc<MemoNode>,
    pub at: u64,
    pub from: RowCounts,
    pub to: RowCounts,
}

/// Rows that step together. NICs, ports, ends and members keep their places while it lives: these are its local numbers.
#[derive(Clone)]
pub struct Partition {
    /// When something happens next; `NEVER` during its own turn.
    pub next: u64,
    /// The lowest of its NICs, by which it is found.
    pub first: u32,
    /// When it came to life.
    pub start: u64,
    /// All that happens before this in a simulated partition is pending or in the memo.
    pub covered: u64,
    /// When it is laid down unless something happens by then; `NEVER` while it is not at rest.
    pub retires_at: u64,
    /// None of its rows has been simulated beyond this; more than `covered` where a partition has joined that lags behind.
    pub reached: u64,
    /// Its rows stand as they were at its start, what happens is looked up.
    pub looked_up: bool,
    /// It sleeps; its rows do not stand in the tables either.
    pub skip: Option<Box<Skip>>,
    pub detector: Detector,
    /// Neither plain flows nor several paths nor timers that others see: its state can be written down.
    pub recordable: bool,
    /// What it slept with, since it woke by itself: whether that was true is yet to be seen.
    pub ended_skip: Option<Arc<SkipPlan>>,
    /// `None`: neither looked up nor remembered.
    pub cursor: Option<MemoCursor>,
    pub nics: Vec<u32>,
    /// Bytes and packets sent when each NIC joined.
    pub nic_base: Vec<(u64, u64)>,
    /// Switch ports whose transmitters are its own.
    pub ports: Vec<u32>,
    pub port_base: Vec<PortBase>,
    /// Switch ports that receive from its NICs and ports, and the most each held.
    pub ends: Vec<u32>,
    pub peaks: Vec<u32>,
    pub members: Vec<Member>,
    /// Their queue pairs' numbers, side by side: whoever joins is ranked among them.
    pub flow_ids: Vec<u32>,
    /// Numbers of queue pairs that are members no more, but by which events under way go: those that these events go back to. They order ties, and whoever joins is ranked among them.
    pub ancestors: Vec<u32>,
    /// Of those looked up: what they go back to. Rows of none stand in the tables.
    pub base_snapshots: Vec<BaseSnapshot>,
    /// Something happened since the last cut that is in the memo; and how many packets must leave its ports until the next.
    pub changed: bool,
    pub hops_due: u64,
    /// When the last post of each NIC was.
    pub last_post_at: Vec<u64>,
    /// What never changes about its rows, while nobody joins.
    pub shape: Option<Arc<[u8]>>,
}

impl Partition {
    pub fn new(start: u64) -> Partition {
        Partition {
            next: NEVER,
            first: u32::MAX,
            start,
            covered: start,
            retires_at: NEVER,
            reached: start,
            looked_up: false,
            skip: None,
            detector: Detector::new(start),
            recordable: true,
            ended_skip: None,
            cursor: None,
            nics: Vec::new(),
            nic_base: Vec::new(),
            ports: Vec::new(),
            port_base: Vec::new(),
            ends: Vec::new(),
            peaks: Vec::new(),
            members: Vec::new(),
            flow_ids: Vec::new(),
            ancestors: Vec::new(),
            base_snapshots: Vec::new(),
            changed: false,
            hops_due: 0,
            last_post_at: Vec::new(),
            shape: None,
        }
    }

    /// The first of its own instants at or after `at`: it is simulated from one to the next, and laid down at one. So when it is depends on what happened to it alone.
    pub fn mark(&self, at: u64, step: u64) -> u64 {
        self.start + at.saturating_sub(self.start).div_ceil(step) * step
    }

    /// When it goes on.
    pub fn next_events(&self, t: &Tables) -> NextEvents {
        let nics = t.exps[0].nic_len;
        let own = t.exps[0].end_len;
        let mut packets = NEVER;
        for &i in &self.ends {
            packets = packets.min(t.clocks[(nics + i) as usize]);
        }
        for &p in &self.ports {
            packets = packets.min(t.clocks[(own + nics + p) as usize]);
        }
        for &n in &self.nics {
            packets = packets.min(t.clocks[n as usize]);
        }
        let at = self.nics.iter().fold(packets, |at, &n| at.min(t.clocks[(own + n) as usize]));
        let quiet = |n: &u32| t.nics[*n as usize].busy_until == NEVER && t.nics[*n as usize].timer == NEVER;
        let idle = packets == NEVER && self.nics.iter().all(quiet) && self.members.iter().all(|m| is_idle(t, m.flow));
        NextEvents { at, idle }
    }
}

/// What a partition's clocks say.
pub struct NextEvents {
    /// The next instant at which anything happens.
    pub at: u64,
    /// Nothing is queued, in flight or unacknowledged.
    pub idle: bool,
}

/// Whether nothing of queue pair `f` is outstanding.
pub fn is_idle(t: &Tables, f: u32) -> bool {
    let tx = &t.flow_tx[f as usize];
    tx.flags & qp::CREATED == 0 || tx.snd_una >= tx.size
}
