//! Tests of what FP8, MXFP8 and FP4 add to a layer, and of exchanges with experts, by hand-worked bytes.

use super::tests::{gpt, layout, moe, ring_bytes};
use super::*;
use crate::model::{Fp8Scaling, Framework, Precision};

/// Tokens of a micro-batch times the hidden size, of the tests' model and layout.
const TOKENS_TIMES_HIDDEN: u64 = 4 * 2048 * 6144;

fn bytes_named(kernels: &[(LayerPart, Kernel)], wanted: &str) -> u64 {
    let named = kernels.iter().filter(|(_, k)| matches!(k, Kernel::Memory { name, .. } if *name == wanted));
    named.map(|(_, k)| k.bytes() as u64).sum()
}

#[test]
fn operands_are_gathered_as_they_were_converted() {
    let th = TOKENS_TIMES_HIDDEN;
    // Two sums of 16 bit are scattered in each pass. An all-reduce of 4 bytes counts twice in a ring.
    let sums = 2 * 2 * th;
    let cases = [
        (Precision::Bf16, Fp8Scaling::Delayed, sums + 2 * 2 * th, sums + 4 * 2 * th),
        (Precision::Fp8, Fp8Scaling::Delayed, sums + 2 * th, sums + 4 * th),
        (Precision::Fp8, Fp8Scaling::Current, sums + 2 * th + 2 * 8, sums + 4 * th + 2 * 8),
        (Precision::Mxfp8, Fp8Scaling::Delayed, sums + 2 * th * 33 / 32, sums + (2 * 2 + 2) * th * 33 / 32),
        (Precision::Nvfp4, Fp8Scaling::Delayed, sums + 2 * th * 18 / 32 + 2 * 8, sums + 6 * th * 18 / 32 + 2 * 8),
    ];
    for (precision, fp8_scaling, forward, backward) in cases {
        let l = Layout { precision, fp8_scaling, ..layout(8, true) };
        let bytes = |kind, pass| ring_bytes(&layer_steps(&gpt(), &l, kind, pass), Among::Tp);
        assert_eq!(bytes(LayerKind::Dense, Pass::Forward), forward, "{precision:?} {fp8_scaling:?}");
        assert_eq!(bytes(LayerKind::Dense, Pass::Backward), backward, "{precision:?} {fp8_scaling:?}");
        // The logits are in 16 bit, and so is the gradient of the embedding.
        let wide = Layout { precision: Precision::Bf16, ..l.clone() };
        for kind in [LayerKind::Embedding, LayerKind::Logits] {
            for pass in [Pass::Forward, Pass::Backward] {
                assert_eq!(bytes(kind, pass), ring_bytes(&layer_steps(&gpt(), &wide, kind, pass), Among::Tp));
            }
        }
        // PyTorch's second generation gathers 16 bit.
        let torch = Layout { framework: Framework::Fsdp2, ..l.clone() };
        let torch_bytes = ring_bytes(&layer_steps(&gpt(), &torch, LayerKind::Dense, Pass::Forward), Among::Tp);
        assert_eq!(torch_bytes, sums + 2 * 2 * th);
    }
    // Without sequence parallelism nothing is gathered.
    let l = Layout { precision: Precision::Fp8, ..layout(8, false) };
    assert_eq!(ring_bytes(&layer_steps(&gpt(), &l, LayerKind::Dense, Pass::Forward), Among::Tp), 2 * 2 * 2 * th);
}

#[test]
fn shares_are_converted_and_turned_as_wholes() {
    let th = TOKENS_TIMES_HIDDEN;
    let bytes = |sequence, fp8_scaling, pass, name: &str| {
        let l = Layout { precision: Precision::Fp8, fp8_scaling, ..layout(8, sequence) };
        bytes_named(&layer_kernels(&gpt(), &l, LayerKind::Dense, pass), name)
    };
    let delayed = |sequence, pass, name| bytes(sequence, Fp8Scaling::Delayed, pass, name);
    // Inputs of row-parallel layers have h and 4 h columns over eight ranks. One order takes 2 bytes read and 1 written, both take 4.
    assert_eq!(delayed(true, Pass::Forward, "fp8-cast"), 5 * th / 8 * 3);
    assert_eq!(delayed(false, Pass::Forward, "fp8-cast"), 5 * th / 8 * 4);
    // Gradients of two outputs of h columns: a rank's tokens in one order, or all tokens in both. Those of column-parallel layers have 4 h and 3 h columns.
    assert_eq!(delayed(true, Pass::Backward, "fp8-cast"), 2 * th / 8 * 3 + 7 * th / 8 * 4);
    assert_eq!(delayed(false, Pass::Backward, "fp8-cast"), 2 * th * 4 + 7 * th / 8 * 4);
    // Results of two norms are turned; with sequence parallelism also two gradients of outputs, and both inputs of row-parallel layers.
    assert_eq!(delayed(true, Pass::Backward, "fp8-transpose"), (2 + 2) * th * 2 + 5 * th / 8 * 2);
    assert_eq!(delayed(false, Pass::Backward, "fp8-transpose"), 2 * th * 2);
    // A tensor is read once more for its largest element. A norm finds it itself, and another kernel converts its result: 2 bytes read, 1 written.
    let current = |pass| bytes(true, Fp8Scaling::Current, pass, "fp8-cast");
    assert_eq!(current(Pass::Forward), 5 * th / 8 * 5 + 2 * th / 8 * 3);
    assert_eq!(current(Pass::Backward), 2 * th / 8 * 5 + 7 * th / 8 * 6);
}

#[test]
fn products_that_take_either_order_need_one_copy() {
    let th = TOKENS_TIMES_HIDDEN;
    let bytes = |fp8_scaling, pass, name: &str| {
        let l = Layout { precision: Precision::Fp8, fp8_scaling, fp8_any_order: true, ..layout(8, true) };
        bytes_named(&layer_kernels(&gpt(), &l, LayerKind::Dense, pass), name)
    };
    // Both inputs of row-parallel layers, then two gradients of outputs and those of column-parallel layers: 2 bytes read and 1 written, or 4 read.
    for (scaling, touched) in [(Fp8Scaling::Delayed, 3), (Fp8Scaling::Current, 5)] {
        let norms = if scaling == Fp8Scaling::Current { 2 * th / 8 * 3 } else { 0 };
        assert_eq!(bytes(scaling, Pass::Forward, "fp8-cast"), 5 * th / 8 * touched + norms);
        assert_eq!(bytes(scaling, Pass::Backward, "fp8-cast"), (2 * th / 8 + 7 * th / 8) * touched);
        assert_eq!(bytes(scaling, Pass::Backward, "fp8-transpose"), 0);
    }
    let l = Layout { precision: Precision::Fp8, fp8_any_order: true, ..layout(8, true) };
    assert_eq!([l.orders_kept(), Layout { precision: Precision::Mxfp8, ..l }.orders_kept()], [1, 2]);
}

#[test]
fn the_ring_of_transformer_engine_moves_results_and_keys() {
    let model = Transformer { kv_heads: 16, ..gpt() };
    let bytes = |framework, cp, pass| {
        let l = Layout { framework, cp, flash_attention: true, ..layout(1, false) };
        let kernels = layer_kernels(&model, &l, LayerKind::Dense, pass);
        bytes_named(&kernels, "ring-merge") + bytes_named(&kernels, "ring-gradients")
    };
    for cp in [2, 4] {
        let steps = u64::from(cp);
        // 16-bit results of 64 heads of 96, and keys and values of 16 heads, of this rank's tokens.
        let results = 4 * 2048 / steps * 64 * 96 * 2;
        let kv = 4 * 2048 / steps * 16 * 96 * 2 * 2;
        // Two accesses of the first result, three of each later one; a copy joins keys and values, and half of those of each other rank is copied.
        let forward = results * (2 + 3 * (steps - 1)) + kv * (2 + (steps - 1));
        assert_eq!(bytes(Framework::Megatron, cp, Pass::Forward), forward);
        // A copy, then sums, of gradients of queries; keys and values are copied, and so are halves; gradients of both are joined (2) and added (3).
        let backward = results * (2 + 3 * (steps - 1)) + kv * (2 + 2 + 3) + kv / 2 * (steps - 1) * (2 + 2 + 3);
        assert_eq!(bytes(Framework::Megatron, cp, Pass::Backward), backward);
    }
    assert_eq!(bytes(Framework::Megatron, 1, Pass::Forward), 0);
}

/// Position of the first step that meets a condition.
fn position(steps: &[LayerStep], wanted: impl Fn(&LayerStep) -> bool) -> usize {
    steps.iter().position(wanted).expect("such a step is there")
}

#[test]
fn a_module_computes_both_gradients_before_tokens_go_back() {
    let model = Transformer { moe: Some(moe(8, 2, 4096)), ..gpt() };
    let up_weights = |s: &LayerStep| {
        let part = LayerPart { site: Site::Up, role: KernelRole::WeightGrad };
        matches!(s, LayerStep::Kernel { part: p, kernel: Kernel::Gemm { .. } } if *p == part)
    };
    let last_exchange = |steps: &[LayerStep], wanted: Among| {
        steps.len()
            - 1
            - position(
                &steps.iter().rev().copied().collect::<Vec<_>>(),
                |s| matches!(s, LayerStep::Exchange { among, .. } if *among == wanted),
            )
    };
    for (overlap_ep, before) in [(false, true), (true, false)] {
        let l = Layout { ep: 4, dp: 4, overlap_ep, ..layout(2, true) };
        let steps = layer_steps(&model, &l, LayerKind::Moe, Pass::Backward);
        let gradient = position(&steps, up_weights);
        assert_eq!(gradient < last_exchange(&steps, Among::Ep), before);
        assert_eq!(gradient < last_exchange(&steps, Among::ExpertTp), before);
    }
}

#[test]
fn ranks_that_share_experts_gather_16_bit() {
    let model = Transformer { moe: Some(moe(8, 2, 4096)), ..gpt() };
    for precision in [Precision::Bf16, Precision::Fp8] {
        let l = Layout { ep: 4, dp: 4, precision, ..layout(2, true) };
        let steps = layer_steps(&model, &l, LayerKind::Moe, Pass::Forward);
        // Each token goes to two experts. Ranks gather the tokens and scatter the sums.
        assert_eq!(ring_bytes(&steps, Among::ExpertTp), 2 * 2 * TOKENS_TIMES_HIDDEN * 2);
    }
}

#[test]
fn shared_experts_are_computed_after_the_others_unless_told_otherwise() {
    let model = Transformer { moe: Some(Moe { shared_experts: 1, ..moe(8, 2, 4096) }), ..gpt() };
    for overlap_shared_experts in [false, true] {
        let l = Layout { ep: 4, dp: 4, overlap_shared_experts, ..layout(1, false) };
        let steps = layer_steps(&model, &l, LayerKind::Moe, Pass::Forward);
        let shared = position(&steps, |s| matches!(s, LayerStep::Kernel { part, .. } if part.site == Site::SharedUp));
        let is_sum =
            |s: &LayerStep| matches!(s, LayerStep::Kernel { kernel: Kernel::Memory { name: "unpermute", .. }, .. });
        assert_eq!(shared < position(&steps, is_sum), overlap_shared_experts);
    }
}

#[test]
fn copies_of_tokens_may_be_single_operations() {
    let model = Transformer { moe: Some(moe(8, 2, 4096)), ..gpt() };
    let bytes = |fused_permute, pass| {
        let l = Layout { ep: 8, dp: 8, fused_permute, ..layout(1, false) };
        let is_order = |p: &LayerPart| matches!(p.site, Site::Permute | Site::Unpermute);
        let kernels = layer_kernels(&model, &l, LayerKind::Moe, pass);
        kernels.iter().filter(|(p, _)| is_order(p)).map(|(_, k)| k.bytes() as u64).sum::<u64>()
    };
    // Two copies of each token, of 2 bytes an element.
    let (local, sent) = (2 * TOKENS_TIMES_HIDDEN, 4 * TOKENS_TIMES_HIDDEN);
    assert_eq!(bytes(true, Pass::Forward), 2 * sent + sent + local);
    assert_eq!(bytes(true, Pass::Backward), 2 * sent + local + sent + local);
    // Accesses by index take 2.5 times as long as those of a copy.
    assert_eq!(bytes(false, Pass::Forward), 5 * sent + 2 * sent + local + 15 * sent / 2);
    assert_eq!(bytes(false, Pass::Backward), 5 * sent + 6 * sent + local + 15 * sent / 2);
}
