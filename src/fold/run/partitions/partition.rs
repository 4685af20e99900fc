//! A partition of a folded run: its rows, their common clock, and its places in the memo and in a skip.
//!
//! Layer: fold/run.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use crate::memo::cursor::MemoCursor;
use crate::memo::node::MemoNode;
use crate::memo::skip_plan::SkipPlan;
use crate::rows::index::PartitionIdx;
use crate::rows::partition_rows::{PartitionRows, RowCounts, is_idle};
use crate::rows::rows_by_switch::RowsBySwitch;
use crate::run::explanations::explanation::FoldCause;
use crate::steady::detector::Detector;
use crate::steady::skip::Skip;
use hyperfold_columns::{NEVER, NicIdx, Tables};

/// Where the rows of a partition are, and how it goes on.
#[derive(Clone)]
pub(crate) enum PartitionState {
    /// It has no rows: its number is free.
    Idle,
    /// Its rows are in the tables and are simulated.
    Simulated,
    /// The memo knows it: its rows are as they were at its start, in snapshots.
    LookedUp,
    /// It is skipped ahead at steady rates; its rows are in a snapshot as well.
    Skipped(Box<Skip>),
}

/// All partitions of a run, by their numbers.
#[derive(Clone, Default)]
pub(crate) struct Partitions {
    all: Vec<Partition>,
    /// Numbers of partitions without rows, to be used again.
    spare: Vec<PartitionIdx>,
}

impl Partitions {
    /// Adds a partition and returns its number.
    pub(crate) fn add(&mut self, partition: Partition) -> PartitionIdx {
        match self.spare.pop() {
            Some(p) => {
                self.all[p.usize()] = partition;
                p
            }
            None => {
                self.all.push(partition);
                PartitionIdx::new(self.all.len() - 1)
            }
        }
    }

    /// Takes partition `p` out. Its number is free then.
    pub(crate) fn remove(&mut self, p: PartitionIdx) -> Partition {
        self.spare.push(p);
        std::mem::replace(&mut self.all[p.usize()], Partition { state: PartitionState::Idle, ..Partition::new(0) })
    }

    /// Number of partitions that have rows.
    pub(crate) fn n_active(&self) -> usize {
        self.all.len() - self.spare.len()
    }

    /// All numbers, those without rows included.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = PartitionIdx> + use<> {
        (0..self.all.len()).map(PartitionIdx::new)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Partition> {
        self.all.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Partition> {
        self.all.iter_mut()
    }
}

impl Index<PartitionIdx> for Partitions {
    type Output = Partition;

    #[inline]
    fn index(&self, p: PartitionIdx) -> &Partition {
        &self.all[p.usize()]
    }
}

impl IndexMut<PartitionIdx> for Partitions {
    #[inline]
    fn index_mut(&mut self, p: PartitionIdx) -> &mut Partition {
        &mut self.all[p.usize()]
    }
}

/// Rows that step together, with their common state.
#[derive(Clone)]
pub(crate) struct Partition {
    pub state: PartitionState,
    pub rows: PartitionRows,
    /// Time of its next event in ps; `NEVER` during its own turn.
    pub next: u64,
    /// The lowest of its NICs, which identifies it in the schedule.
    pub first: NicIdx,
    /// Time in ps at which it started or passed its last checkpoint.
    pub start: u64,
    /// For a simulated partition: time in ps before which everything is pending or recorded.
    pub covered: u64,
    /// Time in ps at which it retires if nothing happens by then; `NEVER` while it is not idle.
    pub retires_at: u64,
    /// Time in ps beyond which none of its rows has been simulated. It is later than `covered` after a merge with a partition that lags behind.
    pub reached: u64,
    /// Its samples, which show whether it is steady.
    pub detector: Detector,
    /// Whether it can be recorded: no plain flows, no multipath, no timers that others see.
    pub recordable: bool,
    /// The plan of a skip that has just ended by itself; it is not known yet whether rates have changed.
    pub ended_skip: Option<Arc<SkipPlan>>,
    /// Its place in the memo; `None`: it is neither looked up nor recorded.
    pub cursor: Option<MemoCursor>,
    /// Whether the memo did not admit what it did. Then it has no place there, but is looked up again at its next checkpoint.
    pub turned_away: bool,
    /// Snapshots that hold the rows of a looked-up partition. Other partitions have none: their rows are in the tables.
    pub base_snapshots: Vec<BaseSnapshot>,
    /// Whether something was recorded since the last checkpoint; and number of packets that must leave its ports before the next one.
    pub changed: bool,
    pub hops_due: u64,
    /// The constant properties of its rows, while no others join.
    pub shape: Option<Arc<[u8]>>,
    /// Set if one of its switches was coupled while queue pairs crossed it, and its ports are not processed jointly yet. The value: whether the
    /// partition was remembered until then.
    pub awaits: Option<bool>,
    /// Its rows at switches, by switch, if it is large.
    pub by_switch: Option<Arc<RowsBySwitch>>,
    /// Why it is simulated, and its packet-hops that are already counted for that. Only explanations read it.
    pub cause: FoldCause,
    pub explained_hops: u64,
}

impl Partition {
    /// A partition that is simulated, still without rows.
    pub(crate) fn new(start: u64) -> Partition {
        Partition {
            state: PartitionState::Simulated,
            rows: PartitionRows::default(),
            next: NEVER,
            first: NicIdx::NONE,
            start,
            covered: start,
            retires_at: NEVER,
            reached: start,
            detector: Detector::new(start),
            recordable: true,
            ended_skip: None,
            cursor: None,
            turned_away: false,
            base_snapshots: Vec::new(),
            changed: false,
            hops_due: 0,
            shape: None,
            awaits: None,
            by_switch: None,
            cause: FoldCause::default(),
            explained_hops: 0,
        }
    }

    /// Whether its rows are in the tables. One without rows counts as simulated.
    #[inline]
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.state, PartitionState::Idle | PartitionState::Simulated)
    }

    /// Its skip, if it is skipped.
    #[inline]
    pub(crate) fn skip(&self) -> Option<&Skip> {
        if let PartitionState::Skipped(skip) = &self.state { Some(skip) } else { None }
    }

    /// Ends its skip, if it is skipped, and returns it. Its rows are not in the tables yet.
    pub(crate) fn take_skip(&mut self) -> Option<Box<Skip>> {
        match std::mem::replace(&mut self.state, PartitionState::LookedUp) {
            PartitionState::Skipped(skip) => Some(skip),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Whether its actions are a function of its past: it is remembered, or may be from its next checkpoint on.
    pub(crate) fn is_memorable(&self) -> bool {
        self.cursor.is_some() || self.turned_away
    }

    /// Removes it from the memo until its next checkpoint, because the memo does not admit its events.
    pub(crate) fn turn_away(&mut self) {
        self.turned_away |= self.cursor.take().is_some();
    }

    /// Whether every posted message is in its rows, so that these are the complete state.
    pub(crate) fn has_all_posts(&self) -> bool {
        self.rows.members.iter().all(|m| m.posts_in_rows == m.posted.len())
    }

    /// The first of its own instants at or after `at_ps`. It is simulated from one such instant to the next and retires at one, so this depends
    /// only on its own past.
    pub(crate) fn mark(&self, at_ps: u64, step: u64) -> u64 {
        self.start + at_ps.saturating_sub(self.start).div_ceil(step) * step
    }

    /// Time of its next event, and whether it is idle.
    pub(crate) fn next_events(&self, t: &Tables) -> NextEvents {
        let nics = t.exps[0].nic_len;
        let own = t.exps[0].end_len;
        let mut packets = NEVER;
        for &i in &self.rows.ends {
            packets = packets.min(t.clocks[i.end(nics).usize()]);
        }
        for &p in &self.rows.ports {
            packets = packets.min(t.clocks[p.end(nics).own_clock(own)]);
        }
        for &n in &self.rows.nics {
            packets = packets.min(t.clocks[n.usize()]);
        }
        let at_ps = self.rows.nics.iter().fold(packets, |at_ps, &n| at_ps.min(t.clocks[n.end().own_clock(own)]));
        let quiet = |n: &NicIdx| t.nics[*n].busy_until == NEVER && t.nics[*n].timer == NEVER;
        let idle = packets == NEVER
            && self.rows.nics.iter().all(quiet)
            && self.rows.members.iter().all(|m| is_idle(t, m.flow));
        NextEvents { at: at_ps, idle }
    }
}

/// Rows of a looked-up partition: they are in the snapshot `node` as of `at_ps`, not in the tables.
#[derive(Clone)]
pub(crate) struct BaseSnapshot {
    pub node: Arc<MemoNode>,
    pub at: u64,
    /// The range of the partition's rows in the snapshot.
    pub from: RowCounts,
    pub to: RowCounts,
}

/// Result of reading a partition's clocks.
pub(crate) struct NextEvents {
    /// Time of its next event, in ps.
    pub at: u64,
    /// Whether nothing is queued, in flight or unacknowledged.
    pub idle: bool,
}
