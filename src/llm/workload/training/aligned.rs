//! When the stages of a Megatron pipeline reduce their gradients, if that overlaps with backward passes.
//!
//! Layer: workload. Megatron starts reductions so that stages are slowed down at the same time and not one after another (`align_grad_reduce`, on by default;
//! megatron/core/pipeline_parallel/schedules.py):
//!
//! - Without interleaving, the first stage reduces during its last backward pass. The other stages reduce after theirs, while they would wait.
//! - Gradients of the output matrix may be computed after all passes (`defer_embedding_wgrad_compute`); the last stage then reduces after them.
//! - With interleaving, rank r reduces a virtual stage r passes after the last backward pass of that stage. So all ranks begin at about the same time.

use super::plan::JobPlan;
use crate::model::pipeline::{PassKind, Slot};
use crate::model::{Framework, Layout};

/// When a rank reduces gradients, and how much longer its passes take meanwhile. Lists are by number of the rank's slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AlignedReductions {
    /// The chunks whose gradients are reduced after a slot.
    pub after: Vec<Vec<u32>>,
    /// Factor on the kernels of a slot; at least 1.
    pub stretch: Vec<f64>,
}

/// Whether a pipeline rank reduces gradients by the rules of this module, and not bucket by bucket during the last backward pass of each virtual stage.
pub(super) fn is_aligned(layout: &Layout, rank: u32) -> bool {
    let megatron = layout.framework == Framework::Megatron && layout.pp > 1 && layout.overlap_grad;
    let aligned = layout.align_grad_reduce && (layout.vpp > 1 || rank > 0);
    megatron && !layout.schedule.splits_backward() && (aligned || layout.defers_on(rank))
}

impl AlignedReductions {
    /// The reductions of a rank with these slots. `None` if the rank does not follow the rules of this module.
    pub(super) fn of(plan: &JobPlan, layout: &Layout, rank: u32, order: &[Slot]) -> Option<AlignedReductions> {
        if !is_aligned(layout, rank) || order.is_empty() {
            return None;
        }
        let backwards: Vec<usize> = (0..order.len()).filter(|&i| order[i].pass == PassKind::Backward).collect();
        let mut after = vec![Vec::new(); order.len()];
        for chunk in 0..layout.vpp {
            let last = backwards.iter().rposition(|&i| order[i].chunk == chunk).unwrap_or(backwards.len() - 1);
            let waits = if layout.vpp > 1 { rank as usize } else { 0 };
            // Gradients of the output matrix that come after all passes are those of the last virtual stage.
            let deferred = layout.defers_on(rank) && chunk + 1 == layout.vpp;
            let waits = if deferred { order.len() } else { waits };
            let slot = backwards.get(last + waits).copied().unwrap_or(order.len() - 1);
            after[slot].push(chunk);
        }
        // What is reduced later comes later in the order of passes; after the last slot, the first chunk is reduced first.
        let (mut left_ps, mut slowdown) = (0u64, 1.0);
        let mut stretch = vec![1.0; order.len()];
        for (i, slot) in order.iter().enumerate() {
            if left_ps > 0 {
                let stage = layout.virtual_stage(rank, slot.chunk) as usize;
                let pass = plan.pass(&plan.stages[stage], slot.pass).compute.max(1);
                let covered = left_ps.min(pass);
                stretch[i] = 1.0 + (slowdown - 1.0) * covered as f64 / pass as f64;
                left_ps -= covered;
            }
            for &chunk in &after[i] {
                let sync = plan.grad_syncs[layout.virtual_stage(rank, chunk) as usize];
                left_ps += sync.ps;
                slowdown = f64::max(sync.slowdown, 1.0);
            }
        }
        Some(AlignedReductions { after, stretch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::pipeline_orders;
    use crate::workload::training::plan::{GradSync, LayerPlan};
    use crate::workload::training::step::{PassStep, Spent};
    use crate::workload::training::tests::layout;

    /// A plan of equal layers, one a virtual stage, whose gradients take as long as a backward pass and a half.
    fn plan(stages: u32) -> JobPlan {
        let spent = |compute| Spent { compute, ..Spent::default() };
        let steps = |ps| vec![PassStep::Kernel { name: "k", ps }];
        let layer = LayerPlan {
            forward: steps(1_000),
            backward: steps(2_000),
            spent: [spent(1_000), spent(2_000), Spent::default(), spent(2_000)],
            ..LayerPlan::default()
        };
        JobPlan {
            layers: vec![layer],
            stages: vec![vec![0]; stages as usize],
            grad_syncs: vec![GradSync { ps: 3_000, slowdown: 1.2 }; stages as usize],
            ..JobPlan::default()
        }
    }

    #[test]
    fn ranks_reduce_a_virtual_stage_at_the_same_time() {
        let l = Layout { pp: 4, vpp: 3, microbatch: 1, global_batch: 8, overlap_grad: true, ..layout() };
        let orders = pipeline_orders(&l);
        let n = orders[0].len();
        for rank in 0..4 {
            let found = AlignedReductions::of(&plan(12), &l, rank, &orders[rank as usize]).unwrap();
            let launches: Vec<(usize, Vec<u32>)> =
                (0..n).filter(|&i| !found.after[i].is_empty()).map(|i| (n - 1 - i, found.after[i].clone())).collect();
            let r = rank as usize;
            // Eight passes follow the last one of chunk 2, four that of chunk 1. Rank r waits for r of them.
            assert_eq!(launches, [(8 - r, vec![2]), (4 - r, vec![1]), (0, vec![0])], "rank {rank}");
            // One pass and a half is slowed down after each.
            let first = n - (8 - r);
            for (found, expected) in found.stretch[first..].iter().zip([1.2, 1.1, 1.0]) {
                assert!((found - expected).abs() < 1e-9, "rank {rank}");
            }
            assert!(found.stretch[..first].iter().all(|&s| s == 1.0));
        }
    }

    #[test]
    fn later_stages_reduce_while_they_would_wait() {
        let l = Layout { pp: 4, microbatch: 1, global_batch: 8, overlap_grad: true, ..layout() };
        let orders = pipeline_orders(&l);
        assert_eq!(AlignedReductions::of(&plan(4), &l, 0, &orders[0]), None);
        let found = AlignedReductions::of(&plan(4), &l, 2, &orders[2]).unwrap();
        assert_eq!(found.after.last().unwrap(), &[0]);
        assert!(found.stretch.iter().all(|&s| s == 1.0));
        for other in [
            Layout { overlap_grad: false, ..l.clone() },
            Layout { framework: Framework::DeepSpeed, ..l.clone() },
            Layout { pp: 1, ..l.clone() },
        ] {
            assert!(!is_aligned(&other, 2));
        }
    }
}
