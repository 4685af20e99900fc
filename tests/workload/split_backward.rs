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

/// Micro-batches from both ends, and two copies of the parameters: what one pipeline computes and sends stays, and twice as many gradients are reduced.
#[test]
fn dualpipe_moves_work_and_reduces_two_copies() {
    for pp in [2, 4, 8] {
        for (overlap_grad, zero) in [(false, 0), (true, 0), (true, 1)] {
            for dp in [1, 2] {
                let l = Layout { tp: 4, pp, dp, overlap_grad, zero, global_batch: 16 * dp, ..layout() };
                let dual = Layout { schedule: PipelineSchedule::DualPipe, vpp: 2, overlap_p2p: true, ..l.clone() };
                let context = format!("{pp} {dp} {overlap_grad} {zero}");
                let w = graph("gpt3-13b", &dual);
                let whole = graph("gpt3-13b", &Layout { overlap_p2p: true, ..l });
                let (split, once) = (kernel_ps(&w), kernel_ps(&whole));
                assert!(split.abs_diff(once) * 1_000_000 < once, "{context}: {split} {once}");
                let message = 2048 * 5120 * 2;
                assert_eq!(total(&w, Dim::Pp, None), 2 * (pp - 1) as u128 * 16 * message * 4 * dp as u128, "{context}");
                // The groups of gradients have both copies of each of the dp replicas.
                let n = 2 * dp as u128 * params("gpt3-13b", 4, 1, 2048);
                let reduced = |op| total(&w, Dim::Dp, Some(op));
                match zero {
                    0 => assert_eq!(reduced(CollectiveOp::AllReduce), n * 4, "{context}"),
                    _ => {
                        assert_eq!(reduced(CollectiveOp::ReduceScatter), n * 4, "{context}");
                        assert_eq!(reduced(CollectiveOp::AllGather), n * 2, "{context}");
                    }
                }
            }
        }
    }
}

#[test]
fn dualpipe_shortens_the_iteration_and_both_estimates_agree() {
    let model = Model::named("gpt3-13b").unwrap();
    let plain = Plain { free_communication: true };
    let base = Layout { pp: 4, global_batch: 16, ..layout() };
    let dual = Layout { schedule: PipelineSchedule::DualPipe, vpp: 2, overlap_p2p: true, ..base.clone() };
    let (one, other) = (evaluate(&model, &base, &machine(&plain)), evaluate(&model, &dual, &machine(&plain)));
    let (whole, dual) = (one.unwrap(), other.unwrap());
    assert!(dual.iteration < whole.iteration && dual.bubble < whole.bubble, "{dual:?} {whole:?}");
}

/// Gradients of the output matrix are computed after all passes of the last stage, each once, and are reduced after that.
#[test]
fn deferred_gradients_of_the_output_matrix_come_last() {
    for (vpp, overlap_grad) in [(1, false), (1, true), (5, true)] {
        let l = Layout { tp: 4, pp: 4, dp: 2, vpp, overlap_grad, global_batch: 16, ..layout() };
        let deferred = Layout { defer_embedding_wgrad: true, ..l.clone() };
        let (w, whole) = (graph("gpt3-13b", &deferred), graph("gpt3-13b", &l));
        assert_eq!(kernel_ps(&w), kernel_ps(&whole), "{vpp} {overlap_grad}");
        let last = &w.programs[3];
        let at: Vec<usize> = (0..last.ops.len()).filter(|&i| &w.names[last.ops[i].name] == "logits-weights").collect();
        assert_eq!(at.len(), 8, "{vpp} {overlap_grad}");
        let position = |name: &str| last.ops.iter().rposition(|op| &w.names[op.name] == name).unwrap();
        assert!(at[0] > position("attention") && at[7] < position("grads"), "{vpp} {overlap_grad}");
        let first = |p: usize| w.programs[p].ops.iter().any(|op| &w.names[op.name] == "logits-weights");
        assert!(!first(0) && !first(2));
    }
}
