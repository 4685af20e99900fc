//! The state of an experiment that is being folded.
//!
//! Layer: fold/run. Only state; the files above it define what happens.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::audits::copies::ContinuedAudits;
use super::audits::restart::{CoupledSwitches, Restart};
use super::explanations::explanation::Explainer;
use super::partitions::partition::Partition;
use super::simulation::span_threads::SpanThreads;
use super::skips::gain::LeastGain;
use crate::memo::in_flight::ExperimentTicket;
use crate::memo::table::Memo;
use crate::rows::buffer_guard::BufferGuard;
use crate::rows::index::RowIndex;
use crate::rows::partition_rows::hops;
use crate::run::schedule::TurnSchedule;
use crate::run::stats::TurnTimer;
use crate::run::stop::Stop;
use crate::steady::detector::SteadyRates;
use crate::steady::wander::RateWander;
use hyperfold_columns::{FlowIdx, NicIdx, OwnedTables, SwitchIdx, Tables};
use hyperfold_engine::FoldStats;

/// Joins all rows that a queue pair (fourth argument) of a NIC (third) crosses into one partition, before it sends at an instant (fifth, ps). Returns
/// the partition's number.
pub(crate) type Join = fn(&mut FoldRun, &mut Tables, NicIdx, FlowIdx, u64) -> Result<u32, Stop>;

/// Runs a number of turns (third argument), or to the end. The fourth argument is the maximum number of packet records.
pub(crate) type Turns = fn(&mut FoldRun, &mut Tables, u32, u64) -> Result<(), Stop>;

/// Runs a copy without skips if one is due, before a partition (third argument) is skipped at an instant (fourth, ps) at the given rates.
pub(crate) type CopyIfDue = fn(&mut FoldRun, &mut Tables, u32, u64, &[Option<SteadyRates>]);

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
    pub partitions: Vec<Partition>,
    /// Numbers of retired partitions, to be used again.
    pub spare: Vec<u32>,
    /// Whether a queue pair whose timers change windows has just joined: its partition is not recorded.
    pub joined_unrecordable: bool,
    /// The partition whose turn it is, while it is simulated.
    pub turning: u32,
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
    /// The function by which rows join a partition. A field, because simulation calls it and it calls simulation.
    pub join: Join,
    /// The functions by which copies take turns and are made. Fields, because turns lead to both.
    pub turns: Turns,
    pub copy_if_due: CopyIfDue,
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
pub(crate) fn new_partition(run: &mut FoldRun, start: u64) -> u32 {
    run.stats.partitions += 1;
    match run.spare.pop() {
        Some(p) => {
            run.partitions[p as usize] = Partition { hops_due: run.checkpoint_hops, ..Partition::new(start) };
            p
        }
        None => {
            run.partitions.push(Partition { hops_due: run.checkpoint_hops, ..Partition::new(start) });
            run.partitions.len() as u32 - 1
        }
    }
}

/// Packet-hops of simulated partitions that are not in the statistics yet.
pub(crate) fn unsettled_hops(run: &FoldRun, t: &Tables) -> u64 {
    let simulated = run.partitions.iter().filter(|partition| !partition.looked_up);
    simulated.map(|partition| hops(t, &partition.rows)).sum()
}
