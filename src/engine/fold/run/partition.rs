//! A partition of a folded run: its rows, their common clock, and its places in the memo and in a skip.
//!
//! Layer: fold/run.

use std::sync::Arc;

use crate::columns::{NEVER, NicIdx, Tables};
use crate::engine::fold::memo::cursor::MemoCursor;
use crate::engine::fold::memo::node::MemoNode;
use crate::engine::fold::memo::skip_plan::SkipPlan;
use crate::engine::fold::rows::partition_rows::{PartitionRows, RowCounts, is_idle};
use crate::engine::fold::rows::rows_by_switch::RowsBySwitch;
use crate::engine::fold::run::explanation::FoldCause;
use crate::engine::fold::steady::detector::Detector;
use crate::engine::fold::steady::skip::Skip;

/// Rows that step together, and what they do.
#[derive(Clone)]
pub(crate) struct Partition {
    pub rows: PartitionRows,
    /// When something happens next; `NEVER` during its own turn.
    pub next: u64,
    /// The lowest of its NICs, by which it is found.
    pub first: NicIdx,
    /// When it started, or passed its last checkpoint.
    pub start: u64,
    /// Of a simulated partition: all before this is pending or recorded.
    pub covered: u64,
    /// When it retires unless something happens by then; `NEVER` while it is not idle.
    pub retires_at: u64,
    /// None of its rows has been simulated beyond this. Later than `covered` after a merge with a partition that lags
    /// behind.
    pub reached: u64,
    /// It is looked up: its rows are as they were at its start.
    pub looked_up: bool,
    /// It is skipped ahead; its rows are not in the tables either.
    pub skip: Option<Box<Skip>>,
    /// Its samples, which show whether it is steady.
    pub detector: Detector,
    /// It can be recorded: no plain flows, no multipath, no timers that others see.
    pub recordable: bool,
    /// The plan of a skip that ended by itself just before: it is not known yet whether rates had changed.
    pub ended_skip: Option<Arc<SkipPlan>>,
    /// `None`: neither looked up nor recorded.
    pub cursor: Option<MemoCursor>,
    /// The memo had no room for what it did. It has no place there, but is looked up again at its next checkpoint.
    pub turned_away: bool,
    /// Where the rows of a looked-up partition are. Others have none: their rows are in the tables.
    pub base_snapshots: Vec<BaseSnapshot>,
    /// Something was recorded since the last checkpoint; and how many packets must leave its ports until the next one.
    pub changed: bool,
    pub hops_due: u64,
    /// What never changes about its rows, while no others join.
    pub shape: Option<Arc<[u8]>>,
    /// It has a switch that was coupled while queue pairs crossed it, and whose ports are not processed jointly yet. Then:
    /// whether it was remembered until then.
    pub awaits: Option<bool>,
    /// Its rows at switches by switch, if it is large.
    pub by_switch: Option<Arc<RowsBySwitch>>,
    /// Why it is simulated, and its packet-hops that are counted for that already. Only explanations read it.
    pub cause: FoldCause,
    pub explained_hops: u64,
}

impl Partition {
    /// Without rows.
    pub(crate) fn new(start: u64) -> Partition {
        Partition {
            rows: PartitionRows::default(),
            next: NEVER,
            first: NicIdx::NONE,
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

    /// What it does is a function of its past: it is remembered, or may be from its next checkpoint on.
    pub(crate) fn is_memorable(&self) -> bool {
        self.cursor.is_some() || self.turned_away
    }

    /// The memo has no room for what it does.
    pub(crate) fn turn_away(&mut self) {
        self.turned_away |= self.cursor.take().is_some();
    }

    /// Of one that was turned away: everything that was posted is in its rows, so these say all.
    pub(crate) fn has_all_posts(&self) -> bool {
        self.rows.members.iter().all(|m| m.posts_in_rows == m.posted.len())
    }

    /// The first of its own instants at or after `at`. It is simulated from one to the next and retires at one, so this
    /// depends on its own past alone.
    pub(crate) fn mark(&self, at: u64, step: u64) -> u64 {
        self.start + at.saturating_sub(self.start).div_ceil(step) * step
    }

    /// When it goes on.
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
        let at = self.rows.nics.iter().fold(packets, |at, &n| at.min(t.clocks[n.end().own_clock(own)]));
        let quiet = |n: &NicIdx| t.nics[*n].busy_until == NEVER && t.nics[*n].timer == NEVER;
        let idle = packets == NEVER
            && self.rows.nics.iter().all(quiet)
            && self.rows.members.iter().all(|m| is_idle(t, m.flow));
        NextEvents { at, idle }
    }
}

/// Rows of a looked-up partition: they are in the snapshot `node` as of `at`, not in the tables.
#[derive(Clone)]
pub(crate) struct BaseSnapshot {
    pub node: Arc<MemoNode>,
    pub at: u64,
    /// The range of the partition's rows that it holds.
    pub from: RowCounts,
    pub to: RowCounts,
}

/// What a partition's clocks say.
pub(crate) struct NextEvents {
    /// The next instant at which anything happens.
    pub at: u64,
    /// Nothing is queued, in flight or unacknowledged.
    pub idle: bool,
}
