//! The state of an experiment that is being folded.
//!
//! Layer: fold/run. Only state; the files above it define what happens.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::audits::copies::ContinuedAudits;
use super::audits::restart::{CoupledSwitches, Restart};
use super::explanations::explanation::Explainer;
use super::partitions::partition::{Partition, Partitions};
use super::simulation::span_threads::SpanThreads;
use super::skips::gain::LeastGain;
use crate::memo::in_flight::ExperimentTicket;
use crate::memo::table::Memo;
use crate::rows::buffer_guard::BufferGuard;
use crate::rows::index::{PartitionIdx, RowIndex};
use crate::rows::partition_rows::hops;
use crate::run::stats::TurnTimer;
use crate::run::turn_schedule::TurnSchedule;
use crate::steady::rate_drift::RateWander;
use hyperfold_columns::{FlowIdx, OwnedTables, SwitchIdx, Tables};
use hyperfold_engine::FoldStats;

/// One experiment that is being folded. Row numbers are those of its tables.
pub(crate) struct FoldRun {
    /// A copy of the start, from which the experiment can start over.
    pub restart: Arc<Restart>,
    pub coupled: CoupledSwitches,
    /// Length of a step of the experiment, in ps.
    pub step: u64,
    /// The memo; `None`: nothing is recorded.
    pub memo: Option<Arc<Memo>>,
    /// Minimum number of packets between checkpoints. A skip must save twice as many.
    pub checkpoint_hops: u64,
    pub index: RowIndex,
    pub partitions: Partitions,
    /// Whether a queue pair whose timers change windows has just joined: its partition is not recorded.
    pub joined_unrecordable: bool,
    /// The partition whose turn it is, while it is simulated.
    pub turning: PartitionIdx,
    pub schedule: TurnSchedule,
    pub guard: BufferGuard,
    /// Switches at which a pause, a resume or a drop was within reach: left out, or met while steady phases were skipped.
    pub left_out: BTreeSet<SwitchIdx>,
    /// The buffer guard will fail once an interval under way ends. Noted where steady phases are skipped.
    pub fails_for_certain: bool,
    /// Skips that were audited, by `SkipPlan::draw`.
    pub audited: HashSet<u32>,
    pub gain: LeastGain,
    /// Instant in ps at which a first skip would have begun, although it was too late for one. The experiment then goes on without skips.
    pub first_skip_too_late: Option<u64>,
    /// How far rates differ from one skip to the next.
    pub wander: RateWander,
    /// How spans are stepped on several threads.
    pub threads: SpanThreads,
    /// Whether measured rates may be carried on. They may not in the copies by which that is audited.
    pub carries: bool,
    pub continued: ContinuedAudits,
    pub return_point: Option<Box<ReturnPoint>>,
    /// Instant in ps beyond which no row is simulated, once it is planned to hand the experiment over as it stands. It is handed over at the first turn from
    /// then on.
    pub hand_over_after: Option<u64>,
    /// Maximum number of packet records.
    pub limit: u64,
    pub stats: FoldStats,
    /// Records why partitions are simulated, if that is requested.
    pub explainer: Option<Explainer>,
    pub ticket: ExperimentTicket,
    pub timer: TurnTimer,
    /// Copies that go on before the next turn.
    pub prepared_copies: Vec<PreparedCopy>,
}

/// A copy of an experiment as it was before a skip. It goes on without that skip and begins none, to audit it.
pub(crate) struct PreparedCopy {
    pub run: FoldRun,
    pub tables: OwnedTables,
    /// The partition that is skipped.
    pub p: PartitionIdx,
    /// Start and end of the copy, in ps.
    pub from_ps: u64,
    pub to_ps: u64,
    /// For each queue pair of the partition: bytes sent by `from_ps`.
    pub sent_before: Vec<(FlowIdx, u64)>,
    /// Packet-hops that it was expected to take.
    pub expected_hops: u64,
}

/// A copy of an experiment from before a switch filled up, when nothing had been skipped or rounded, to which it can go back.
pub(crate) struct ReturnPoint {
    pub run: FoldRun,
    pub tables: OwnedTables,
    /// Everything before this instant has happened, in ps.
    pub at_ps: u64,
    /// How near a switch was to a pause ([`BufferGuard::approached`]).
    pub approached: usize,
    /// Packet-hops of the experiment's progress ([`LeastGain::progress_hops`]) at which a later copy replaces this one.
    pub renewed_at_hops: u64,
    /// An earlier copy, in case this one is too late.
    pub earlier: Option<Box<ReturnPoint>>,
}

/// The number of a new partition without rows, which starts at `start` (ps).
pub(crate) fn new_partition(run: &mut FoldRun, start: u64) -> PartitionIdx {
    run.stats.partitions += 1;
    run.partitions.add(Partition { hops_due: run.checkpoint_hops, ..Partition::new(start) })
}

/// Packet-hops of simulated partitions that are not in the statistics yet.
pub(crate) fn unsettled_hops(run: &FoldRun, t: &Tables) -> u64 {
    let simulated = run.partitions.iter().filter(|partition| partition.is_simulated());
    simulated.map(|partition| hops(t, &partition.rows)).sum()
}
