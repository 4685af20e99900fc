//! Jobs that are worked out while they are prepared, because nothing of them crosses the network.
//!
//! Layer: batch. `workload::lower::op_times` has the times; here they become an outcome. Builds no tables.

use std::collections::HashMap;

use super::breakdown;
use super::outcome::Iteration;
use super::planner::is_analytic;
use crate::spec;
use crate::workload::Representatives;
use crate::workload::lower::{Lowering, Planner, op_times};
use crate::workload::program::{Group, OpKind, Workload};

/// Which ranks of a program get tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RanksWithTasks {
    /// All: for whom every rank's timeline is of interest.
    Every,
    /// One of those that do the same at the same time, where all communication is analytical; else all. Times are the same.
    Representatives,
    /// None, where all communication is analytical: what the job comes to is worked out at once, without a graph. Else as `Representatives`. Times are the same.
    Unsimulated,
}

impl RanksWithTasks {
    /// What is asked for of a program.
    pub(super) fn of(self, program: &spec::ProgramSpec) -> RanksWithTasks {
        match self {
            RanksWithTasks::Unsimulated if program.communication.analytic != spec::Analytic::ALL => {
                RanksWithTasks::Representatives
            }
            other => other,
        }
    }

    /// What is asked for of jobs that are to be joined.
    pub(super) fn of_several(self) -> RanksWithTasks {
        if self == RanksWithTasks::Unsimulated { RanksWithTasks::Representatives } else { self }
    }
}

/// What a job comes to that nothing crosses the network for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkedOut {
    /// From 0 to the end of the last op.
    pub makespan_ps: u64,
    pub iteration: Option<Iteration>,
}

impl WorkedOut {
    /// Of a workload. `warmup` iterations do not count; `collective`: see [`Iteration::collective`]. `None`: it has to be simulated.
    pub(super) fn of(
        workload: &Workload,
        on: &Lowering,
        planner: &mut dyn Planner,
        warmup: u32,
        collective: Option<(u64, (u64, u64))>,
    ) -> Option<WorkedOut> {
        let times = op_times(workload, on, planner)?;
        let found = breakdown::worked_out(workload, &times, warmup);
        let iteration = found.map(|found| Iteration::of(workload, collective, found));
        Some(WorkedOut { makespan_ps: times.end_ps(), iteration })
    }
}

/// Ranks that stand for others, where every communication is analytical or what they send is one flow (`joined`): what a rank does then depends on its class alone.
/// Kernels that vary at random leave no two alike.
pub(super) fn representatives(
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
    // Times of a group go by how its members lie on servers.
    let lie = |group: &Group| {
        let mut number: HashMap<u32, u32> = HashMap::new();
        let server = |&m: &u32| {
            let next = number.len() as u32;
            *number.entry(servers[m as usize]).or_insert(next)
        };
        group.members.iter().map(server).collect()
    };
    Representatives::of(workload, slow, lie)
}

/// Whether every communication is analytical.
fn is_closed_form(workload: &Workload, analytic: &spec::Analytic) -> bool {
    let communicates = |kind: &OpKind| match *kind {
        OpKind::Collective { dim, .. } | OpKind::Send { dim, .. } | OpKind::Recv { dim, .. } => Some(dim),
        OpKind::Compute { .. } | OpKind::Join => None,
    };
    let dims = || workload.programs.iter().flat_map(|p| &p.ops).filter_map(|op| communicates(&op.kind));
    *analytic == spec::Analytic::ALL || dims().all(|dim| is_analytic(analytic, dim))
}
