//! A rank's program, and what of it is held against other ranks.
//!
//! Layer: workload. Plain data.

use crate::collective::CollectiveOp;
use crate::workload::import::{ImportError, MAX_BYTES};
use crate::workload::program::{OpKind, Program};

/// A rank's program, and what is needed to hold it against those of other ranks.
pub(super) struct RankProgram {
    pub(super) path: String,
    pub(super) rank: Option<u32>,
    pub(super) world_size: Option<u32>,
    pub(super) program: Program,
    /// Groups of the rank, by slot.
    pub(super) slots: Vec<u32>,
    /// Its collectives, in order.
    pub(super) calls: Vec<GroupCall>,
    pub(super) has_messages: bool,
    /// Number of all-to-alls whose parts have different sizes.
    pub(super) uneven: u64,
    /// Counts of its trace, for notes.
    pub(super) seen: Seen,
}

/// Counts of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) n_kernels: u64,
    /// From the begin of the first kernel to the end of the last.
    pub(super) span_ns: u64,
    /// Idle time of streams that nothing in the trace explains.
    pub(super) host_ns: u64,
    /// Number of waits that events of CUDA tell of.
    pub(super) by_events: u64,
    /// Number of kernels that overlap the one before them on their stream.
    pub(super) overlaps: u64,
}

/// Notes on all traces together.
pub(super) fn notes(ranks: &[RankProgram]) -> Vec<String> {
    let us = |ns: u64| ns as f64 / 1e3;
    let sum = |count: fn(&Seen) -> u64| ranks.iter().map(|r| count(&r.seen)).sum::<u64>();
    let Some(longest) = ranks.iter().max_by_key(|r| r.seen.span_ns) else { return Vec::new() };
    let traces = if ranks.len() == 1 { "1 trace".to_string() } else { format!("{} traces", ranks.len()) };
    let mut notes = vec![format!(
        "{traces} with {} kernels; the longest, {}, takes {:.1} us. For {:.1} us of it streams waited for nothing that the trace has: that stays as time of the host. Times of collectives are simulated, not taken from traces",
        sum(|s| s.n_kernels),
        longest.path,
        us(longest.seen.span_ns),
        us(longest.seen.host_ns)
    )];
    if sum(|s| s.by_events) == 0 {
        notes.push("the traces have no waits between streams, so only waits that took time are known; profile with enable_cuda_sync_events for all".to_string());
    }
    if sum(|s| s.overlaps) > 0 {
        notes.push(format!(
            "{} kernels overlap the one before them on their stream; here they follow it",
            sum(|s| s.overlaps)
        ));
    }
    notes
}

/// A collective of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupCall {
    pub(super) slot: u16,
    pub(super) op: CollectiveOp,
    pub(super) bytes: u64,
    /// Bytes that the rank begins with.
    pub(super) in_bytes: u64,
    pub(super) sequence: Option<u64>,
    /// Index of its op in the program.
    pub(super) op_idx: u32,
}

impl RankProgram {
    /// Calls of a group, in order.
    pub(super) fn calls_of(&self, group: u32) -> impl Iterator<Item = &GroupCall> {
        self.calls.iter().filter(move |call| self.slots[usize::from(call.slot)] == group)
    }

    /// Gives the calls of a group the bytes of `calls`.
    pub(super) fn set_bytes(&mut self, group: u32, calls: &[GroupCall]) {
        let slots = &self.slots;
        let own = self.calls.iter_mut().filter(|call| slots[usize::from(call.slot)] == group);
        for (own, call) in own.zip(calls) {
            own.bytes = call.bytes;
            if let OpKind::Collective { bytes, .. } = &mut self.program.ops[own.op_idx as usize].kind {
                *bytes = call.bytes;
            }
        }
    }

    /// Lets its all-gathers gather from so many ranks.
    pub(super) fn gather_from(&mut self, n_ranks: u32) -> Result<(), ImportError> {
        for call in self.calls.iter_mut().filter(|call| call.op == CollectiveOp::AllGather && call.in_bytes > 0) {
            let all = call.in_bytes.checked_mul(u64::from(n_ranks));
            let all = all
                .filter(|bytes| *bytes <= MAX_BYTES)
                .ok_or_else(|| ImportError::path(&self.path, format!("{n_ranks} ranks gather more than a petabyte")))?;
            call.bytes = all;
            if let OpKind::Collective { bytes, .. } = &mut self.program.ops[call.op_idx as usize].kind {
                *bytes = all;
            }
        }
        Ok(())
    }
}
