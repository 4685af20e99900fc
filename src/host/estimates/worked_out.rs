//! Jobs whose result is computed while they are prepared, because nothing of them crosses the network.
//!
//! Layer: host. `workload::lower::op_times` computes the times; this module turns them into an outcome. Builds no tables.

use std::collections::HashMap;

use crate::outcomes::breakdown::{self, Breakdown};
use crate::outcomes::outcome::Iteration;
use crate::programs::plans::planner::is_analytic;
use hyperfold_config::spec;
use hyperfold_llm::workload::Representatives;
use hyperfold_llm::workload::lower::{Lowering, Planner, SteadyPairs, solved_ops};
use hyperfold_llm::workload::program::{Group, OpKind, Workload};

/// Which ranks of a program get tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RanksWithTasks {
    /// All ranks, for callers that need every rank's timeline.
    Every,
    /// One of the ranks that do the same at the same time, if all communication is analytical; else all. Times are the same.
    Representatives,
    /// No ranks, if all communication is analytical: the job's result is computed directly, without a graph. Else as `Representatives`. Times are the same.
    Unsimulated,
}

impl RanksWithTasks {
    /// Returns the choice that applies to a program.
    pub(crate) fn of(self, program: &spec::ProgramSpec) -> RanksWithTasks {
        match self {
            RanksWithTasks::Unsimulated if program.communication.analytic != spec::Analytic::ALL => {
                RanksWithTasks::Representatives
            }
            other => other,
        }
    }

    /// Returns the choice that applies to jobs that will be joined.
    pub(crate) fn of_several(self) -> RanksWithTasks {
        if self == RanksWithTasks::Unsimulated { RanksWithTasks::Representatives } else { self }
    }
}

/// The result of a job of which nothing crosses the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkedOut {
    /// Time from 0 to the end of the last op, ps.
    pub makespan_ps: u64,
    /// Mean measured iteration; `None`: the job has none.
    pub iteration: Option<Iteration>,
}

/// Sums of a job whose times were computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobSums {
    /// Time from 0 to the end of the last op, ps.
    pub makespan_ps: u64,
    /// The critical rank, the sum of its measured iterations, and their number; `None`: nothing ended.
    pub critical: Option<(u32, Breakdown, u64)>,
}

/// Whether to examine after how many pairs of passes the pipelines of a job repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedPeriod {
    No,
    /// Find the period, which is a multiple of so many pairs.
    Find(u32),
    /// Prove that the period is so many pairs.
    Prove(u32),
}

/// Maximum number of multiples that are tried. Our choice: pipelines repeat after one micro-batch, or after about as many as there are stages between two that
/// wait for each other.
const MAX_MULTIPLES: u32 = 64;

impl JobSums {
    /// Computes the sums of a workload, of which `warmup` iterations do not count, and its period in pairs of passes, if that is asked for and proved. `None`:
    /// the workload has to be simulated.
    pub(crate) fn of(
        workload: &Workload,
        lowering: &Lowering,
        planner: &mut dyn Planner,
        warmup: u32,
        asked: AskedPeriod,
    ) -> Option<(JobSums, Option<u32>)> {
        let solved = solved_ops(workload, lowering, planner)?;
        let sums = JobSums {
            makespan_ps: solved.times.end_ps(),
            critical: breakdown::summed(workload, &solved.times, warmup),
        };
        let pairs = || SteadyPairs::of(workload, lowering, &solved);
        let period = match asked {
            AskedPeriod::No => None,
            AskedPeriod::Find(unit) => {
                pairs().and_then(|steady| steady.period(unit, MAX_MULTIPLES)).map(|times| times * unit)
            }
            AskedPeriod::Prove(pairs_each) => {
                pairs().filter(|steady| steady.is_steady(pairs_each as i32)).map(|_| pairs_each)
            }
        };
        Some((sums, period))
    }

    /// Returns the sums of a job that is longer than this one by `times` the difference between `next` and this one. `None`: the sums do not extend.
    pub(crate) fn extended(&self, next: &JobSums, times: u64) -> Option<JobSums> {
        let more = |now: u64, then: u64| -> Option<u64> {
            let each = i128::from(then) - i128::from(now);
            u64::try_from(i128::from(now) + each.checked_mul(times.into())?).ok()
        };
        let critical = match (self.critical, next.critical) {
            (None, None) => None,
            (Some((rank, now, iterations)), Some((same, then, as_many))) if (rank, iterations) == (same, as_many) => {
                let mut exposed = now.exposed;
                for (part, then) in exposed.iter_mut().zip(then.exposed) {
                    *part = more(*part, then)?;
                }
                let parts = Breakdown {
                    total: more(now.total, then.total)?,
                    compute: more(now.compute, then.compute)?,
                    exposed,
                    bubble: more(now.bubble, then.bubble)?,
                    optimizer: more(now.optimizer, then.optimizer)?,
                    other: more(now.other, then.other)?,
                };
                Some((rank, parts, iterations))
            }
            _ => return None,
        };
        Some(JobSums { makespan_ps: more(self.makespan_ps, next.makespan_ps)?, critical })
    }

    /// Returns the outcome of a job with these sums. `collective`: see [`Iteration::collective`].
    pub(crate) fn worked_out(&self, workload: &Workload, collective: Option<(u64, (u64, u64))>) -> WorkedOut {
        let iteration = self
            .critical
            .map(|(rank, parts, iterations)| Iteration::of(workload, collective, (rank, parts.per(iterations))));
        WorkedOut { makespan_ps: self.makespan_ps, iteration }
    }
}

/// Returns representatives of ranks that do the same. They exist if every communication is analytical, or if ranks are joined (`joined`): then what a rank does
/// depends only on its class. Kernels that vary at random leave no two ranks alike.
pub(crate) fn representatives(
    workload: &Workload,
    program: &spec::ProgramSpec,
    servers: &[u32],
    joined: bool,
) -> Option<Representatives> {
    let (compute, analytic) = (&program.compute, &program.communication.analytic);
    if compute.jitter_ppm > 0 || !(joined || is_closed_form(workload, analytic)) {
        return None;
    }
    let slow = |rank: u32| u32::from(compute.stragglers.binary_search(&rank).is_ok());
    // Times of a group depend on how its members are placed on servers.
    let servers_of_group = |group: &Group| {
        let mut number: HashMap<u32, u32> = HashMap::new();
        let server = |&m: &u32| {
            let next = number.len() as u32;
            *number.entry(servers[m as usize]).or_insert(next)
        };
        group.members.iter().map(server).collect()
    };
    Representatives::of(workload, slow, servers_of_group)
}

/// Whether every communication of a workload is analytical.
fn is_closed_form(workload: &Workload, analytic: &spec::Analytic) -> bool {
    let communicates = |kind: &OpKind| match *kind {
        OpKind::Collective { dim, .. } | OpKind::Send { dim, .. } | OpKind::Recv { dim, .. } => Some(dim),
        OpKind::Compute { .. } | OpKind::Join => None,
    };
    let dims = || workload.programs.iter().flat_map(|p| &p.ops).filter_map(|op| communicates(&op.kind));
    *analytic == spec::Analytic::ALL || dims().all(|dim| is_analytic(analytic, dim))
}
