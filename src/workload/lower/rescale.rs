//! A task graph whose kernels take other times: nothing else of it depends on them, so that it need not be lowered again.
//!
//! Layer: workload. Knows where `lower` has put the tasks of kernels.

use crate::workload::program::{OpKind, Workload};
use crate::workload::tasks::TaskGraph;

/// A kernel's time by a factor of which 2^32 is 1.
pub(super) fn scaled(ps: u64, factor_q32: u64) -> u64 {
    ((u128::from(ps) * u128::from(factor_q32)) >> 32) as u64
}

/// The graph that `lower` makes of `workload`, given the one that it made with other factors (rank, op). All else of both is the same.
pub fn rescaled(graph: &TaskGraph, workload: &Workload, factor_q32: &dyn Fn(u32, u32) -> u64) -> TaskGraph {
    let mut graph = graph.clone();
    // Ranks that another stands for have no tasks.
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
