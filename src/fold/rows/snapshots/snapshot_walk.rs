//! One pass over rows that either writes or reads a snapshot, so that both agree. This file has the encoding of single values.
//!
//! Numbers are local, times relative to the instant, sequence numbers relative to what is acknowledged. `snapshot_members` and `snapshot_packets`
//! decide which values a snapshot holds.
//!
//! Layer: fold/rows.

use crate::rows::advanced_rows::AdvancedRows;
use crate::rows::bytes::{NumberReader, NumberWriter};
use crate::rows::key_parts::KeyPart;
use crate::rows::partition_rows::{PartitionRows, RowCounts};
use hyperfold_columns::{FlowIdx, LINEAGE_WORDS, Lineage, NEVER};

/// A writer or reader of numbers.
pub(crate) trait Pen {
    const READS: bool;
    /// Writes `x` and returns it, or ignores it and returns the number read in its place.
    fn word(&mut self, x: u64) -> u64;
    /// Marks the following numbers as belonging to `part`. Returns the part before that. Only explanations use this.
    #[inline]
    fn part(&mut self, part: KeyPart) -> KeyPart {
        part
    }
}

impl Pen for NumberWriter {
    const READS: bool = false;

    #[inline]
    fn word(&mut self, x: u64) -> u64 {
        self.number(x);
        x
    }
}

impl Pen for NumberReader<'_> {
    const READS: bool = true;

    /// The next number; 0 if the bytes have ended.
    #[inline]
    fn word(&mut self, _: u64) -> u64 {
        self.number().unwrap_or(0)
    }
}

/// Meaning of local numbers: the rows of a partition, or of the range of them that a snapshot covers.
#[derive(Clone, Copy)]
pub(crate) struct RowNames<'a> {
    pub rows: &'a PartitionRows,
    /// The range of the partition's rows: those that had joined when the snapshot was written.
    pub from: RowCounts,
    pub to: RowCounts,
    /// For each queue pair, its place among the members. (`end`: for each switch port, its place among the ends.)
    pub member: &'a [u32],
    /// The queue pair with each flow number.
    pub flow: &'a [FlowIdx],
    pub end: &'a [u32],
}

/// One pass over the rows of a snapshot. It writes or reads them, as its pen does.
pub(super) struct SnapshotWalk<'a, P> {
    pub(super) pen: P,
    pub(super) names: RowNames<'a>,
    pub(super) now: u64,
    pub(super) limit: u64,
    /// How far queue pairs have gone on since the snapshot was written; empty: none has.
    pub(super) advanced: &'a [Option<AdvancedRows<'a>>],
    /// Number of packets so far.
    pub(super) packets: u64,
    /// Flow numbers of no member that occurred so far, while writing.
    pub(super) ancestors: Vec<u32>,
}

impl<P: Pen> SnapshotWalk<'_, P> {
    /// Whether pauses are part of the snapshot: some of its rows belong to a coupled switch.
    pub(super) fn has_pauses(&self) -> bool {
        self.names.to.switches > self.names.from.switches
    }

    pub(super) fn word(&mut self, x: u64) -> u64 {
        self.pen.word(x)
    }

    pub(super) fn half(&mut self, x: u32) -> u32 {
        self.pen.word(u64::from(x)) as u32
    }

    /// A number that is usually near `from`.
    pub(super) fn near(&mut self, x: u64, from: u64) -> u64 {
        let d = x.wrapping_sub(from) as i64;
        let z = self.pen.word(((d << 1) ^ (d >> 63)) as u64);
        from.wrapping_add((z >> 1) ^ (z & 1).wrapping_neg())
    }

    pub(super) fn time(&mut self, x: u64) -> u64 {
        if self.word(u64::from(x == NEVER)) != 0 { NEVER } else { self.near(x, self.now) }
    }

    /// A time before which something must not happen. All past times are equivalent.
    pub(super) fn not_before(&mut self, x: u64) -> u64 {
        self.now.wrapping_add(self.pen.word(x.saturating_sub(self.now)))
    }

    /// A timer; 0: it was never set.
    pub(super) fn timer(&mut self, x: u64) -> u64 {
        if self.word(u64::from(x == 0)) != 0 { 0 } else { self.time(x) }
    }

    /// A sequence number; 0 is a value of its own.
    pub(super) fn seq(&mut self, x: u64, from: u64) -> u64 {
        if self.word(u64::from(x == 0)) != 0 { 0 } else { self.near(x, from) }
    }

    pub(super) fn lineage(&mut self, d: &mut Lineage) {
        let before = self.pen.part(KeyPart::Lineages);
        let (root, ages) = (d[LINEAGE_WORDS - 1], &mut d[..LINEAGE_WORDS - 1]);
        for w in ages {
            *w = self.half(*w);
        }
        d[LINEAGE_WORDS - 1] = self.root(root);
        self.pen.part(before);
    }

    /// The root of a lineage: a flow number counted from 1, or 0 for none. It belongs to a member, otherwise to an ancestor.
    pub(super) fn root(&mut self, root: u32) -> u32 {
        let (names, from) = (self.names, self.names.from);
        if P::READS {
            return match self.half(0) {
                0 => 0,
                code if code % 2 == 1 => names.rows.flow_ids[from.members + (code / 2) as usize] + 1,
                code => names.rows.ancestors[from.ancestors + (code / 2) as usize - 1] + 1,
            };
        }
        let Some(id) = root.checked_sub(1) else { return self.half(0) };
        let f = names.flow[id as usize];
        let m = names.member[f.usize()];
        let code = if names.rows.members.get(m as usize).is_some_and(|member| member.flow == f) {
            2 * m + 1
        } else {
            let known = self.ancestors.iter().position(|&other| other == id);
            let k = known.unwrap_or_else(|| {
                self.ancestors.push(id);
                self.ancestors.len() - 1
            });
            2 * k as u32 + 2
        };
        self.half(code);
        root
    }
}
