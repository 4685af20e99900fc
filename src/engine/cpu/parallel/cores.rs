//! Steps one experiment on several threads, with the same bytes as on one.
//!
//! Layer: engine. The stages of a step ([`STAGES`]) in their order make these phases, with a barrier after each:
//!
//! - Switches: a phase for each group of whole switches.
//! - NICs: one phase.
//! - Gates: the first thread serves them.
//! - Clocks: in one phase all threads find their minimum, in the next the first thread advances the experiment.
//!
//! Threads take blocks of rows, each from its own part first. Which thread processes a row changes nothing: within a phase no row sees what another
//! row does, except for flags and counts, whose order does not matter.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::barrier::{Broken, SpinBarrier};
use super::phases::SharedPieces;
use super::switch_groups::SwitchGroups;
use crate::cpu::nic;
use crate::cpu::switch::whole_switch;
use crate::cpu::whole_step::WholeExperiment;
use crate::systems::{NicRows, STAGES, StepStage, run_clocks, run_gates, run_nics};
use hyperfold_base::isolation::isolated;
use hyperfold_columns::{ClaimTable, NEVER, SwitchIdx, Tables, TaskIdx, flag, status};

/// Approximate number of blocks of rows per thread and phase: enough that all threads end a phase at about the same time.
const BLOCKS_A_THREAD: usize = 16;
/// Clocks per block: some memory pages.
const CLOCKS_A_BLOCK: usize = 1 << 14;

/// State that the threads of an experiment share.
struct Team<'a> {
    groups: &'a SwitchGroups,
    threads: usize,
    barrier: SpinBarrier,
    /// For each phase, the rows that no thread has taken yet.
    shares: Vec<SharedPieces>,
    earliest: AtomicU64,
    end: AtomicU64,
    goes_on: AtomicBool,
    /// Work that each thread leaves for the first one.
    left: Vec<Mutex<Left>>,
    claims: &'a [ClaimTable],
    n_phases: AtomicU64,
}

/// Work that a thread leaves for the first one.
#[derive(Default)]
struct Left {
    /// Switches that need more pause frames.
    lacking: Vec<SwitchIdx>,
    got: Vec<(TaskIdx, u64)>,
}

/// Runs experiment `t` on `threads` threads, this one included, until it stops or `goes_on` returns false after a step.
///
/// PRECONDITION: `t` holds one experiment, which is at the beginning of a step. `groups` are its switches. Nothing is traced.
pub fn run(t: &mut Tables, groups: &SwitchGroups, threads: usize, goes_on: &mut dyn FnMut(&Tables) -> bool) {
    if t.exps[0].status != status::RUNNING {
        return;
    }
    let claims = t.claim_tables();
    let sizes = groups.groups().iter().map(Vec::len).chain([t.nics.len(), t.clocks.len()]);
    let team = Team {
        groups,
        threads,
        barrier: SpinBarrier::new(threads),
        shares: sizes.map(|n| SharedPieces::of(n, threads)).collect(),
        earliest: AtomicU64::new(NEVER),
        end: AtomicU64::new(t.exps[0].step_end()),
        goes_on: AtomicBool::new(true),
        left: (0..threads).map(|_| Mutex::default()).collect(),
        claims: &claims,
        n_phases: AtomicU64::new(0),
    };
    // SAFETY: the tables stay where they are, because nothing grows inside a step. The documentation of `work` says which thread has which rows
    // between two barriers.
    #[allow(unsafe_code)]
    let mut lent: Vec<Tables> = (0..threads).map(|k| unsafe { t.lend(&claims, k as u32) }).collect();
    let first = lent.remove(0);
    let defect = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .zip(lent)
            .map(|(k, lent)| {
                let team = &team;
                scope.spawn(move || isolated(|| team.guarded(k, lent, None)))
            })
            .collect();
        let own_defect = team.guarded(0, first, Some((t, goes_on)));
        // If another thread panics, this experiment fails with that panic.
        let others_ended: Vec<_> = others.into_iter().map(|thread| thread.join()).collect();
        let mut defect = own_defect;
        for ended in others_ended {
            match ended {
                Ok(Ok(panic)) => defect = defect.or(panic),
                Ok(Err(told)) => defect = defect.or(Some(Box::new(told.to_string()))),
                Err(panic) => defect = defect.or(Some(panic)),
            }
        }
        defect
    });
    if let Some(panic) = defect {
        resume_unwind(panic);
    }
}

/// The blocks of NICs that one thread takes.
struct SharedNics<'s> {
    pieces: &'s SharedPieces,
    /// The thread's own part of the pieces.
    part: usize,
    /// Maximum number of NICs in a block.
    a_block: usize,
}

impl NicRows for SharedNics<'_> {
    fn nic(&mut self, t: &mut Tables, end: u64) {
        while let Some(rows) = self.pieces.take(self.part, self.a_block) {
            let last = rows.end as u32;
            for n in rows {
                nic::row_before(t, (n as u32).into(), last, end);
            }
        }
    }
}

/// The earliest of the clocks, in ps, that thread `k` takes and no other.
fn earliest_of(t: &Tables, clocks: &SharedPieces, k: usize) -> u64 {
    let mut earliest = NEVER;
    while let Some(rows) = clocks.take(k, CLOCKS_A_BLOCK) {
        earliest = t.clocks[rows].iter().fold(earliest, |earliest, &at| earliest.min(at));
    }
    earliest
}

/// Data that only the first thread has: the tables as their owner has them, and the function that says whether to go on after a step.
type Owner<'o, 't, 'w> = (&'o mut Tables<'w>, &'t mut dyn FnMut(&Tables) -> bool);

impl Team<'_> {
    /// Runs the work of thread `k`. Returns the panic, if there was one.
    fn guarded(&self, k: usize, mut t: Tables, owner: Option<Owner>) -> Option<Box<dyn Any + Send>> {
        let ended = catch_unwind(AssertUnwindSafe(|| self.work(k, &mut t, owner)));
        if ended.is_err() {
            self.barrier.break_up();
        }
        // A thread that finds the barrier broken has not failed itself.
        ended.err()
    }

    /// Steps until the first thread says otherwise.
    ///
    /// Which thread may touch which rows between two barriers:
    /// - Switches of a group: their own ports, plans, wires and words; the packets on these; and the far ends of their links. The far ends are wires
    ///   to NICs and to switches of other groups, which no other thread touches in this phase: only one port sends on a wire. Where switches cut through,
    ///   the ports of these switches are read.
    /// - NICs: their own wires, queue pairs, tasks and pools, and the wires to their switches. Of an arriving message, the receiver only reads words
    ///   that nobody writes. Ports of switches may be read.
    /// - Clocks are only read.
    /// - Between phases the first thread may touch everything.
    fn work(&self, k: usize, t: &mut Tables, mut owner: Option<Owner>) -> Result<(), Broken> {
        let groups = self.groups.groups();
        let (nics, clocks) = (&self.shares[groups.len()], &self.shares[groups.len() + 1]);
        let n_nics = t.nics.len();
        let nics_a_block = (n_nics / (self.threads * BLOCKS_A_THREAD)).max(16).next_multiple_of(nic::TOGETHER as usize);
        while self.goes_on.load(Ordering::Relaxed) {
            let end = self.end.load(Ordering::Relaxed);
            for stage in STAGES {
                match stage {
                    StepStage::Switches => {
                        for (group, shares) in groups.iter().zip(&self.shares) {
                            self.switches(k, t, (group, shares), end);
                            self.end_phase(k)?;
                        }
                    }
                    StepStage::Nics => {
                        // No thread raises the flag of this stage's condition in it or later.
                        run_nics(t, &mut SharedNics { pieces: nics, part: k, a_block: nics_a_block }, end);
                        self.leave_arrived(k, t);
                        self.end_phase(k)?;
                    }
                    StepStage::Gates => {
                        if let Some((all, _)) = &mut owner {
                            self.finish_switches_and_nics(all);
                            run_gates(all, &mut WholeExperiment::default(), end);
                        }
                        self.end_phase(k)?;
                    }
                    StepStage::Clocks => {
                        self.earliest.fetch_min(earliest_of(t, clocks, k), Ordering::Relaxed);
                        self.end_phase(k)?;
                        if let Some((all, goes_on)) = &mut owner {
                            self.advance(all, end, goes_on);
                        }
                        self.end_phase(k)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Processes switches of a `group` as thread `k`, while any are left that no thread has taken.
    fn switches(&self, k: usize, t: &mut Tables, (group, shares): (&[SwitchIdx], &SharedPieces), end: u64) {
        let a_block = (group.len() / (self.threads * BLOCKS_A_THREAD)).max(1);
        while let Some(rows) = shares.take(k, a_block) {
            for &s in &group[rows] {
                if whole_switch::one(t, s, end) {
                    self.leave_work(k, |left| left.lacking.push(s));
                }
            }
        }
    }

    /// Leaves the messages that arrived at the NICs of thread `k` for the first thread.
    fn leave_arrived(&self, k: usize, t: &mut Tables) {
        if let Some(got) = &mut t.got_later
            && !got.is_empty()
        {
            self.leave_work(k, |left| left.got.append(got));
        }
    }

    /// Ends a phase for thread `k`: waits for all other threads.
    fn end_phase(&self, k: usize) -> Result<(), Broken> {
        self.barrier.wait()?;
        if cfg!(debug_assertions) {
            if k == 0 {
                let phase = self.n_phases.fetch_add(1, Ordering::Relaxed) as u32 + 1;
                self.claims.iter().for_each(|table| table.next_phase(phase));
            }
            self.barrier.wait()?;
        }
        Ok(())
    }

    fn leave_work(&self, k: usize, add: impl FnOnce(&mut Left)) {
        add(&mut self.left[k].lock().expect("only this thread has it now"));
    }

    /// After the phases of switches and NICs: handles what the threads have left.
    fn finish_switches_and_nics(&self, t: &mut Tables) {
        let mut lacking = Vec::new();
        for left in &self.left {
            let mut left = left.lock().expect("the other threads wait");
            for (i, arrived_ps) in left.got.drain(..) {
                t.tasks[i].got = arrived_ps;
            }
            lacking.append(&mut left.lacking);
        }
        if t.flags() & flag::NEEDS_FRAMES != 0 {
            // All other switches have finished this step.
            for s in SwitchIdx::all(t.exps[0].switch_len) {
                t.switches[s].independent |= whole_switch::DONE;
            }
            for s in lacking {
                t.switches[s].independent &= !whole_switch::DONE;
            }
        }
    }

    /// Advances the experiment after a step that ended at `end` (ps), and prepares the next step.
    fn advance(&self, t: &mut Tables, end: u64, goes_on: &mut dyn FnMut(&Tables) -> bool) {
        let earliest = self.earliest.swap(NEVER, Ordering::Relaxed);
        run_clocks(t, &mut WholeExperiment { earliest: Some(earliest) }, end);
        self.shares.iter().for_each(SharedPieces::reset);
        self.end.store(t.exps[0].step_end(), Ordering::Relaxed);
        self.goes_on.store(t.exps[0].status == status::RUNNING && goes_on(t), Ordering::Relaxed);
    }
}
