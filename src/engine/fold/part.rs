//! A partition: rows that active flows connect, their common clock, and what it has been told so far.

use std::sync::Arc;

use super::claims::Claim;
use super::memo::{Node, Tidings};
use super::nap::Nap;
use super::sleep::Sleep;
use super::state::Counts;
use super::watch::Watch;
use crate::columns::{FlowRx, FlowTx, NEVER, Tables, qp};

/// A queue pair of a partition, or one that is finished but still in the turn of one of its NICs.
#[derive(Clone)]
pub struct Member {
    pub flow: u32,
    /// Its path belongs to the partition.
    pub routed: bool,
    /// Messages posted in this episode, and whether each was the first of those that one event posted.
    pub posted: Vec<(u32, bool)>,
    /// How many of them the rows have seen: fewer than all while what was looked up is simulated after all.
    pub seen: usize,
    /// Of them, those that the network was given, and those told to have been sent, to have arrived, to have ended. Where the former two are equal, the next post sends at
    /// once; else it waits behind what is there, and nothing changes until its turn comes.
    pub given: usize,
    pub sent: usize,
    pub got: usize,
    pub done: usize,
    /// Of those sent, how many the rows have sent: fewer while what was looked up is simulated after all.
    pub passed: usize,
    /// Where it stood at the last cut.
    pub cut: Standing,
    /// Its state is that of the partition's node; else it has only stood in a turn so far.
    pub known: bool,
    /// Its rows when it joined.
    pub tx: FlowTx,
    pub rx: FlowRx,
}

/// How many of a queue pair's messages had been posted, given to the network, sent.
#[derive(Clone, Copy, Default)]
pub struct Standing {
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
pub struct Event {
    pub at: u64,
    pub nic: u32,
    pub what: What,
}

impl Event {
    /// By time; what is told before what is posted, and what that causes at once; then by NIC.
    pub fn order(&self) -> (u64, u32) {
        (self.at, self.turn())
    }

    /// Its place within its instant.
    pub fn turn(&self) -> u32 {
        match self.what {
            What::Told { at_once: false, .. } => 0,
            _ => self.nic + 1,
        }
    }
}

#[derive(Clone)]
pub enum What {
    /// `follows`: the bytes of the message that goes on where this one was sent. `at_once`: by a post of the same instant.
    Told { member: u32, nth: u32, tidings: Tidings, follows: Option<u64>, at_once: bool },
    /// Messages of these sizes were posted at once.
    Post { member: u32, bytes: Vec<u64> },
    /// Rows joined, in canonical form.
    Join(Vec<u8>),
}

/// A partition's place in the memo.
pub struct Script {
    /// Of a simulated partition: it is the one to record `node`.
    pub claim: Option<Claim>,
    pub node: Arc<Node>,
    /// How many of the node's tidings were told.
    pub cursor: usize,
    /// What happened and is not in the memo yet.
    pub pending: Vec<Event>,
    /// A place further back, and what happened since: whoever posts or joins at a time that has been passed goes in between.
    pub anchor: Arc<Node>,
    pub recent: Vec<Event>,
}

/// A copy records nothing.
impl Clone for Script {
    fn clone(&self) -> Script {
        Script {
            claim: None,
            node: Arc::clone(&self.node),
            cursor: self.cursor,
            pending: self.pending.clone(),
            anchor: Arc::clone(&self.anchor),
            recent: self.recent.clone(),
        }
    }
}

impl Script {
    pub fn new(root: Arc<Node>) -> Script {
        Script {
            claim: None,
            node: Arc::clone(&root),
            anchor: root,
            cursor: 0,
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
    pub fn at(&mut self, node: Arc<Node>) {
        self.anchor = Arc::clone(&node);
        self.node = node;
        self.cursor = 0;
        self.recent.clear();
    }
}

/// Rows of a partition that is looked up: they are in the state `node` as of `at`, not in the tables.
#[derive(Clone)]
pub struct Base {
    pub node: Arc<Node>,
    pub at: u64,
    pub from: Counts,
    pub to: Counts,
}

/// Rows that step together. NICs, ports, ends and members keep their places while it lives: these are its local numbers.
#[derive(Clone)]
pub struct Part {
    /// When something happens next; `NEVER` during its own turn.
    pub next: u64,
    /// The lowest of its NICs, by which it is found.
    pub first: u32,
    /// When it came to life.
    pub start: u64,
    /// All that happens before this in a simulated partition is pending or in the memo.
    pub covered: u64,
    /// When it is laid down unless something happens by then; `NEVER` while it is not at rest.
    pub rests_at: u64,
    /// None of its rows has been simulated beyond this; more than `covered` where a partition has joined that lags behind.
    pub reached: u64,
    /// Its rows stand as they were at its start, what happens is looked up.
    pub replay: bool,
    /// It sleeps; its rows do not stand in the tables either.
    pub nap: Option<Box<Nap>>,
    pub watch: Watch,
    /// Neither plain flows nor several paths nor timers that others see: its state can be written down.
    pub fit: bool,
    /// What it slept with, since it woke by itself: whether that was true is yet to be seen.
    pub faith: Option<Arc<Sleep>>,
    /// `None`: neither looked up nor remembered.
    pub script: Option<Script>,
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
    pub bases: Vec<Base>,
    /// Something happened since the last cut that is in the memo; and how many packets must leave its ports until the next.
    pub moved: bool,
    pub due: u64,
    /// When the last post of each NIC was.
    pub posted_at: Vec<u64>,
    /// What never changes about its rows, while nobody joins.
    pub shape: Option<Arc<[u8]>>,
}

impl Part {
    pub fn new(start: u64) -> Part {
        Part {
            next: NEVER,
            first: u32::MAX,
            start,
            covered: start,
            rests_at: NEVER,
            reached: start,
            replay: false,
            nap: None,
            watch: Watch::new(start),
            fit: true,
            faith: None,
            script: None,
            nics: Vec::new(),
            nic_base: Vec::new(),
            ports: Vec::new(),
            port_base: Vec::new(),
            ends: Vec::new(),
            peaks: Vec::new(),
            members: Vec::new(),
            flow_ids: Vec::new(),
            ancestors: Vec::new(),
            bases: Vec::new(),
            moved: false,
            due: 0,
            posted_at: Vec::new(),
            shape: None,
        }
    }

    /// The first of its own instants at or after `at`: it is simulated from one to the next, and laid down at one. So when it is depends on what happened to it alone.
    pub fn mark(&self, at: u64, step: u64) -> u64 {
        self.start + at.saturating_sub(self.start).div_ceil(step) * step
    }

    /// When it goes on.
    pub fn look(&self, t: &Tables) -> Look {
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
        let next = self.nics.iter().fold(packets, |next, &n| next.min(t.clocks[(own + n) as usize]));
        let quiet = |n: &u32| t.nics[*n as usize].busy_until == NEVER && t.nics[*n as usize].timer == NEVER;
        let rest = packets == NEVER && self.nics.iter().all(quiet) && self.members.iter().all(|m| is_idle(t, m.flow));
        Look { next, rest }
    }
}

/// What a partition's clocks say.
pub struct Look {
    /// The next instant at which anything happens.
    pub next: u64,
    /// Nothing is queued, travelling or unacknowledged.
    pub rest: bool,
}

/// Whether nothing of queue pair `f` is outstanding.
pub fn is_idle(t: &Tables, f: u32) -> bool {
    let tx = &t.flow_tx[f as usize];
    tx.flags & qp::CREATED == 0 || tx.snd_una >= tx.size
}
