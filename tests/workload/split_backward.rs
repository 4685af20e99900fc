//! Pipeline schedules that split backward passes: work is moved and none is added, bytes stay, gradients of weights come in order, and iterations get shorter.

use hyperfold_llm::collective::CollectiveOp;
use hyperfold_llm::model::{Layout, Model, PipelineSchedule, Recompute};
use hyperfold_llm::workload::program::{Dim, OpKind, Phase, Workload};
use hyperfold_llm::workload::training::evaluate;

use crate::training::{Plain, graph, layout, machine, params, total};

const SPLIT: [PipelineSchedule; 4] =
    [PipelineSchedule::ZbH1, PipelineSchedule::ZbV, PipelineSchedule::VHalf, PipelineSchedule::VMin];

/// A layout with a schedule.
fn scheduled(schedule: PipelineSchedule, l: &Layout) -> Layout {
    Layout { schedule, vpp: if schedule.is_v_shaped() { 2 } else { 1 }, overlap_p2p: true, ..l.clone() }
}

/// Time of kernels of forward and backward passes on all ranks.
fn kernel_ps(w: &Workload) -> u128 {
    let of_program = |p: u32| -> u128 {
        let ps = |kind: &OpKind| match *kind {
            OpKind::Compute { ps, phase: Phase::Forward | Phase::Backward } => u128::from(ps),
            _ => 0,
        };
        w.programs[p as usize].ops.iter().map(|o| ps(&o.kind)).sum()
    };
    w.ranks.iter().map(|r| of_program(r.program)).sum()
}

#[test]
fn split_backward_passes_move_work_and_add_none() {
    for (model, tp, ep) in [("gpt3-13b", 4, 1), ("mixtral-8x7b", 2, 2), ("deepseek-v3", 1, 2)] {
        for recompute in [Recompute::None, Recompute::Full] {
            let l = Layout {
                tp,
                ep,
                pp: 4,
                dp: 2,
                recompute,
                sequence_parallel: tp > 1,
                overlap_grad: true,
                zero: 1,
                global_batch: 12,
                ..layout()
            };
            let whole = graph(model, &Layout { overlap_p2p: true, ..l.clone() });
            for schedule in SPLIT {
                let w = graph(model, &scheduled(schedule, &l));
                // Kernels in pieces round up.
                let (split, once) = (kernel_ps(&w), kernel_ps(&whole));
                assert!(split.abs_diff(once) * 1_000_000 < once, "{model} {schedule:?}: {split} {once}");
                for op in [CollectiveOp::AllGather, CollectiveOp::ReduceScatter, CollectiveOp::AllToAll] {
                    for dim in [Dim::Tp, Dim::Ep] {
                        assert_eq!(
                            total(&w, dim, Some(op)),
                            total(&whole, dim, Some(op)),
                            "{model} {schedule:?} {op:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn bytes_of_split_backward_passes_follow_the_formula() {
    for pp in [2, 4] {
        for schedule in SPLIT {
            for (overlap_grad, zero) in [(false, 0), (true, 0), (true, 1)] {
                let l = Layout { tp: 4, pp, dp: 2, overlap_grad, zero, global_batch: 10, ..layout() };
                let w = graph("gpt3-13b", &scheduled(schedule, &l));
                let message = 2048 * 5120 * 2;
                // Five micro-batches on eight pipelines. The turn of a V is inside the last rank.
                let hops = if schedule.is_v_shaped() { 2 * pp - 2 } else { pp - 1 };
                assert_eq!(total(&w, Dim::Pp, None), 2 * hops as u128 * 5 * message * 8, "{schedule:?} {pp}");
                // The first rank of a V has both ends, which are tied, so it has one copy of the embedding.
                let v = schedule.is_v_shaped();
                let n = params("gpt3-13b", 4, if v { 1 } else { pp as u64 }, 2048);
                let embedding = (51200u64.div_ceil(128 * 4) * 128 * 5120 * 4) as u128;
                let tied = if v { 0 } else { embedding * 2 * 4 * 2 };
                let all_reduced = if zero == 0 { n * 4 * 2 } else { 0 };
                assert_eq!(total(&w, Dim::Dp, Some(CollectiveOp::AllReduce)), all_reduced + tied, "{schedule:?} {pp}");
                if zero == 1 {
                    assert_eq!(total(&w, Dim::Dp, Some(CollectiveOp::ReduceScatter)), n * 4 * 2);
                    assert_eq!(total(&w, Dim::Dp, Some(CollectiveOp::AllGather)), n * 2 * 2);
                }
            }
        }
    }
}

#[test]
fn gradients_of_weights_follow_their_own_inputs_gradients_and_precede_their_reduction() {
    let l = Layout { pp: 4, dp: 2, overlap_grad: true, global_batch: 16, ..layout() };
    for schedule in SPLIT {
        let w = graph("gpt3-13b", &scheduled(schedule, &l));
        for program in &w.programs {
            let named = |name: &str| {
                let is = |op: &&hyperfold_llm::workload::program::Op| &w.names[op.name] == name;
                program.ops.iter().filter(is).count()
            };
            // Eight micro-batches, each once: the products of attention and of the feed-forward part are named apart.
            assert_eq!(named("attention-weights") % 8, 0, "{schedule:?}");
            assert!(named("attention-weights") > 0 && named("mlp-weights") > 0, "{schedule:?}");
            let last_weights = program.ops.iter().rposition(|op| w.names[op.name].ends_with("-weights"));
            let last_reduced = program.ops.iter().rposition(|op| &w.names[op.name] == "grads");
            assert!(last_reduced > last_weights, "{schedule:?}");
        }
    }
}

#[test]
fn split_backward_passes_shorten_the_iteration_and_both_estimates_agree() {
    let model = Model::named("gpt3-13b").unwrap();
    let plain = Plain { free_communication: true };
    let base = Layout { pp: 4, global_batch: 16, ..layout() };
    let time = |schedule| evaluate(&model, &scheduled(schedule, &base), &machine(&plain)).unwrap();
    let whole = evaluate(&model, &base, &machine(&plain)).unwrap();
    let (h1, v) = (time(PipelineSchedule::ZbH1), time(PipelineSchedule::ZbV));
    assert!(v.iteration < h1.iteration && h1.iteration < whole.iteration, "{v:?} {h1:?} {whole:?}");
    assert!(v.bubble < h1.bubble && h1.bubble < whole.bubble);
}
