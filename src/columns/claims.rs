//! Records which thread uses which row between two barriers, in debug builds. It checks what [`super::Column::lend`] requires.
//!
//! Layer: columns. In release builds nothing is recorded, and every check is empty.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Whether claims are recorded and checked.
const CHECKED: bool = cfg!(debug_assertions);
const WRITTEN: u64 = 1;
const SEVERAL: u64 = 2;

/// For each row of a column, the last claim on it.
#[derive(Clone)]
pub struct ClaimTable(Option<Arc<RowClaims>>);

struct RowClaims {
    phase: AtomicU32,
    /// One word per row: the phase, the thread, and two bits.
    rows: Vec<AtomicU64>,
}

impl ClaimTable {
    pub(crate) fn new(rows: usize) -> ClaimTable {
        ClaimTable(CHECKED.then(|| {
            let rows = (0..rows).map(|_| AtomicU64::new(u64::MAX)).collect();
            Arc::new(RowClaims { phase: AtomicU32::new(0), rows })
        }))
    }

    /// Begins phase `phase`, after all threads have passed a barrier.
    pub fn next_phase(&self, phase: u32) {
        if let Some(table) = &self.0 {
            table.phase.store(phase, Relaxed);
        }
    }
}

/// The claims of one thread on a column.
pub struct Claims(Option<(Arc<RowClaims>, u32)>);

impl Claims {
    /// Claims that record and check nothing.
    pub const NONE: Claims = Claims(None);

    /// The claims of thread `thread`.
    pub fn of(table: &ClaimTable, thread: u32) -> Claims {
        Claims(table.0.clone().map(|table| (table, thread)))
    }

    /// Claims row `row` of a column of `T` for reading.
    #[inline]
    pub(crate) fn reads<T>(&self, row: usize) {
        if CHECKED {
            self.note::<T>(row, 0);
        }
    }

    /// Claims row `row` of a column of `T` for writing.
    #[inline]
    pub(crate) fn writes<T>(&self, row: usize) {
        if CHECKED {
            self.note::<T>(row, WRITTEN);
        }
    }

    /// Claims all of `rows` for reading.
    #[inline]
    pub(crate) fn reads_all<T>(&self, rows: &Range<usize>) {
        if CHECKED && self.0.is_some() {
            rows.clone().for_each(|row| self.note::<T>(row, 0));
        }
    }

    fn note<T>(&self, row: usize, bits: u64) {
        let Some((table, thread)) = &self.0 else { return };
        let phase = u64::from(table.phase.load(Relaxed));
        let mine = (phase << 32) | (u64::from(*thread) << 2);
        let old = table.rows[row].load(Relaxed);
        let new = if old >> 32 != phase {
            mine | bits
        } else if old & !3 == mine && old & SEVERAL == 0 {
            old | bits
        } else {
            let what = std::any::type_name::<T>();
            assert!(old & WRITTEN == 0 && bits == 0, "row {row} of {what}: two threads in one phase, one writes");
            old | SEVERAL
        };
        table.rows[row].store(new, Relaxed);
    }
}
