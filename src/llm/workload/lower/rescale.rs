//! Gives the kernels of a task graph other times. Nothing else of a graph depends on these times, so it need not be lowered again.
//!
//! Layer: workload. This module knows where `lower` puts the tasks of kernels.

use crate::workload::program::{OpKind, Workload};
use crate::workload::tasks::TaskGraph;

/// A kernel's time multiplied by a factor; 2^32 is 1.
pub(super) fn scaled(ps: u64, factor_q32: u64) -> u64 {
    ((u128::from(ps) * u128::from(factor_q32)) >> 32) as u64
}

/// The graph that `lower` makes of `workload` with these factors (by rank and op), given a graph that it made with other factors. Everything else must be
/// equal.
pub fn rescaled(graph: &TaskGraph, workload: &Workload, factor_q32: &dyn Fn(u32, u32) -> u64) -> TaskGraph {
    let mut graph = graph.clone();
    // A rank that another stands for has no tasks.
    for ((rank, info), ops) in (0u32..).zip(&workload.ranks).zip(&graph.ops) {
        let program = &workload.programs[info.program as usize];
        for ((i, op), tasks) in (0u32..).zip(&program.ops).zip(ops) {
            if let OpKind::Compute { ps, .. } = op.kind {
                graph.tasks[tasks.begin as usize].delay_ps = scaled(ps, factor_q32(rank, i));
            }
        }
    }
    graph
}
