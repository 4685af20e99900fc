//! Tests of the converter against closed forms.

use super::*;
use crate::collective::{CollectiveOp, ExpertDispatcher};
use crate::model::{ElementBytes, Framework, Mla, Model, Moe, Precision};

pub(super) fn gpt() -> Transformer {
    Transformer {
        layers: 48,
        hidden: 6144,
        ffn: 4 * 6144,
        heads: 64,
        kv_heads: 64,
        head_dim: 96,
        vocab: 51200,
        seq: 2048,
        gated: false,
        tied: true,
        learned_positions: true,
        causal: true,
        biases: true,
        rms_norm: false,
        attention_sink: false,
        activation_clamp: false,
        dropout: true,
        moe: None,
        mla: None,
        window: 0,
        full_every: 0,
        mtp: 0,
    }
}

pub(super) fn layout(tp: u32, sequence_parallel: bool) -> Layout {
    Layout { tp, microbatch: 4, global_batch: 4, sequence_parallel, bucket_bytes: 1 << 30, ..Layout::one_gpu() }
}

fn flops(model: &Transformer, layout: &Layout, kind: LayerKind, pass: Pass) -> u128 {
    layer_kernels(model, layout, kind, pass).iter().map(|(_, k)| k.flops()).sum()
}

/// Bytes of exchanges among these ranks as a ring sends them: an all-reduce counts twice as much as gathering or scattering.
pub(super) fn ring_bytes(steps: &[LayerStep], wanted: Among) -> u64 {
    let weigh = |step: &LayerStep| match *step {
        LayerStep::Exchange { among, op, bytes, .. } if among == wanted => {
            bytes * if op == CollectiveOp::AllReduce { 2 } else { 1 }
        }
        _ => 0,
    };
    steps.iter().map(weigh).sum()
}

/// Experts in every layer, evenly chosen, without shared ones and biases.
pub(super) fn moe(experts: u32, top_k: u32, expert_ffn: u32) -> Moe {
    Moe {
        experts,
        top_k,
        groups: 1,
        top_groups: 1,
        expert_ffn,
        shared_experts: 0,
        dense_layers: 0,
        every: 1,
        biases: false,
    }
}

#[test]
fn dense_layers_have_the_flops_of_the_closed_form() {
    let model = gpt();
    for tp in [1, 2, 8] {
        let layout = layout(tp, tp > 1);
        let (b, s, h) = (4u128, 2048u128, 6144u128);
        // 24 b s h^2 + 4 b s^2 h forward, and twice that backward.
        let forward = (24 * b * s * h * h + 4 * b * s * s * h) / tp as u128;
        assert_eq!(flops(&model, &layout, LayerKind::Dense, Pass::Forward), forward);
        assert_eq!(flops(&model, &layout, LayerKind::Dense, Pass::Backward), 2 * forward);
        let logits = 2 * b * s * h * 51200 / tp as u128;
        assert_eq!(flops(&model, &layout, LayerKind::Logits, Pass::Forward), logits);
        assert_eq!(flops(&model, &layout, LayerKind::Logits, Pass::Backward), 2 * logits);
    }
}

#[test]
fn recomputation_is_what_the_layout_says() {
    let (model, mut layout) = (gpt(), layout(8, true));
    let count = |layout: &Layout| layer_steps(&model, layout, LayerKind::Dense, Pass::Recompute).len();
    assert_eq!(count(&layout), 0);
    layout.recompute = Recompute::CORE;
    let core = flops(&model, &layout, LayerKind::Dense, Pass::Recompute);
    assert_eq!(core, 4 * 4 * 2048 * 2048 * 6144 / 8);
    layout.recompute = Recompute::Full;
    assert_eq!(count(&layout), layer_steps(&model, &layout, LayerKind::Dense, Pass::Forward).len());
    assert_eq!(layer_steps(&model, &layout, LayerKind::Logits, Pass::Recompute), Vec::new());
}

/// DeepSeek-V3's layers on one GPU with 4,096 tokens; modules have Megatron's names.
#[test]
fn modules_are_computed_again_each_from_its_own_input() {
    let deepseek = Model::named("deepseek-v3").unwrap();
    let model = deepseek.transformer().unwrap();
    let layout = |modules| Layout {
        seq: 4096,
        recompute: Recompute::Selective(modules),
        flash_attention: true,
        ..Layout::one_gpu()
    };
    let again = |modules, kind| layer_kernels(model, &layout(modules), kind, Pass::Recompute);
    let flops = |modules, kind| again(modules, kind).iter().map(|(_, k)| k.flops()).sum::<u128>();
    let names = |modules, kind| again(modules, kind).iter().map(|(part, _)| part.site).collect::<Vec<_>>();
    let none = RecomputeModules::NONE;
    let (up, dense, shared) = (
        RecomputeModules { mla_up_proj: true, ..none },
        RecomputeModules { mlp: true, ..none },
        RecomputeModules { shared_experts: true, ..none },
    );
    // For each of 128 heads: queries and keys of 128 + 64 elements from 1,536; keys and values of 128 each from 512.
    assert_eq!(flops(up, LayerKind::Moe), 2 * 4096 * 128 * (192 * 1536 + 256 * 512));
    assert_eq!(names(up, LayerKind::Moe), [Site::Qkv, Site::Qkv, Site::Rope]);
    assert_eq!(flops(dense, LayerKind::Dense), 2 * 4096 * 3 * 7168 * 18432);
    assert_eq!(again(dense, LayerKind::Moe), []);
    assert_eq!(flops(shared, LayerKind::Moe), 2 * 4096 * 3 * 7168 * 2048);
    assert_eq!(again(shared, LayerKind::Dense), []);
    let moe = RecomputeModules { moe: true, ..none };
    // Eight experts of 256 for each token, the shared expert, and the router.
    assert_eq!(flops(moe, LayerKind::Moe), 2 * 4096 * 7168 * (9 * 3 * 2048 + 256));
    assert_eq!(flops(RecomputeModules { shared_experts: true, ..moe }, LayerKind::Moe), flops(moe, LayerKind::Moe));
    let act = RecomputeModules { moe_act: true, ..none };
    assert_eq!(names(act, LayerKind::Moe), [Site::Activation]);
    // Both norms are separate kernels here, except the second norm of a dense layer, which is part of the product after it.
    let norms = RecomputeModules { layernorm: true, ..none };
    assert_eq!(names(norms, LayerKind::Moe), [Site::AttnNorm, Site::MlpNorm]);
    assert_eq!(names(norms, LayerKind::Dense), [Site::AttnNorm]);
}

#[test]
fn fused_attention_counts_half_of_the_pairs() {
    let (model, mut layout) = (gpt(), layout(8, true));
    layout.flash_attention = true;
    let (b, s, h) = (4u128, 2048u128, 6144u128);
    assert_eq!(flops(&model, &layout, LayerKind::Dense, Pass::Forward), (24 * b * s * h * h + 2 * b * s * s * h) / 8);
    // Context parallelism divides the work evenly.
    let whole = flops(&model, &layout, LayerKind::Dense, Pass::Forward);
    layout.cp = 2;
    assert_eq!(flops(&model, &layout, LayerKind::Dense, Pass::Forward) * 2, whole);
}

#[test]
fn tensor_parallel_traffic_is_megatrons() {
    let (model, s) = (gpt(), 4 * 2048 * 6144 * 2u64);
    for sequence in [false, true] {
        let layout = layout(8, sequence);
        let bytes = |pass| ring_bytes(&layer_steps(&model, &layout, LayerKind::Dense, pass), Among::Tp);
        assert_eq!(bytes(Pass::Forward), 4 * s);
        // Sequence parallelism gathers the inputs of two layers once more for their weights' gradients.
        assert_eq!(bytes(Pass::Backward), if sequence { 6 * s } else { 4 * s });
    }
    assert_eq!(ring_bytes(&layer_steps(&model, &layout(1, true), LayerKind::Dense, Pass::Forward), Among::Tp), 0);
}

#[test]
fn exchanges_are_awaited_by_a_kernel_that_follows() {
    let mut model = gpt();
    model.moe = Some(Moe { shared_experts: 1, ..moe(8, 2, 4096) });
    for (kind, pass) in [LayerKind::Embedding, LayerKind::Dense, LayerKind::Moe, LayerKind::Logits]
        .into_iter()
        .flat_map(|k| [Pass::Forward, Pass::Backward, Pass::Recompute].map(|p| (k, p)))
    {
        for sequence in [false, true] {
            let mut layout = layout(4, sequence);
            (layout.ep, layout.dp, layout.cp, layout.recompute) = (4, 2, 2, Recompute::Full);
            let steps = layer_steps(&model, &layout, kind, pass);
            for (i, step) in steps.iter().enumerate() {
                if let LayerStep::Exchange { needed_by: Some(part), bytes, .. } = step {
                    assert!(*bytes > 0);
                    let waits = |s: &LayerStep| matches!(s, LayerStep::Kernel { part: p, .. } if p == part);
                    assert!(steps[i..].iter().any(waits), "{kind:?} {pass:?}: nobody waits as {part:?}");
                }
            }
        }
    }
}

#[test]
fn experts_do_the_work_of_the_tokens_sent_to_them() {
    let mut model = gpt();
    let moe = moe(8, 2, 4096);
    model.moe = Some(moe);
    let mut layout = layout(1, false);
    layout.ep = 4;
    layout.dp = 4;
    let experts = |layout: &Layout| -> u128 {
        let kernels = layer_kernels(&model, layout, LayerKind::Moe, Pass::Forward);
        kernels.iter().filter(|(p, _)| matches!(p.site, Site::Up | Site::Down)).map(|(_, k)| k.flops()).sum()
    };
    let even = experts(&layout);
    assert_eq!(even, 2 * 2 * 8192 * 2 * 6144 * 4096);
    layout.expert_skew = 2.0;
    // The busiest expert has twice the mean load, its neighbour on the rank six sevenths of it.
    let ratio = experts(&layout) as f64 / even as f64;
    assert!((ratio - (2.0 + 6.0 / 7.0) / 2.0).abs() < 1e-3, "{ratio}");
    let loads = expert_loads(&moe, &layout, 1_000_003);
    assert_eq!(loads.iter().sum::<u64>(), 1_000_003);
    assert!(loads[0] > loads[1] && loads[1].abs_diff(loads[3]) <= 1);
}

#[test]
fn latent_attention_has_its_projections() {
    let mut model = gpt();
    (model.hidden, model.heads, model.kv_heads, model.head_dim) = (7168, 128, 128, 128);
    model.mla = Some(Mla { q_rank: 1536, kv_rank: 512, rope_dim: 64, nope_dim: 128, v_dim: 128 });
    let layout = layout(1, false);
    let kernels = layer_kernels(&model, &layout, LayerKind::Dense, Pass::Forward);
    let weights: u64 = kernels
        .iter()
        .filter(|(p, _)| matches!(p.site, Site::Qkv | Site::Proj))
        .map(|(_, k)| if let Kernel::Gemm { n, k, .. } = k { n * k } else { 0 })
        .sum();
    assert_eq!(weights, 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168);
    let forward = flops(&model, &layout, LayerKind::Dense, Pass::Forward);
    assert_eq!(flops(&model, &layout, LayerKind::Dense, Pass::Backward), 2 * forward);
}

#[test]
fn fp8_changes_linear_layers_only_and_converts() {
    let (model, mut layout) = (gpt(), layout(8, true));
    let before = layer_kernels(&model, &layout, LayerKind::Dense, Pass::Forward);
    layout.precision = Precision::Fp8;
    let after = layer_kernels(&model, &layout, LayerKind::Dense, Pass::Forward);
    let fp8 = |kernels: &[(LayerPart, Kernel)]| {
        kernels
            .iter()
            .filter(|(_, k)| k.dtype() == Some(super::super::Dtype::Fp8))
            .map(|(p, _)| p.site)
            .collect::<Vec<_>>()
    };
    assert!(fp8(&before).is_empty());
    assert_eq!(fp8(&after), [Site::Qkv, Site::Proj, Site::Up, Site::Down]);
    assert!(after.iter().any(|(_, k)| matches!(k, Kernel::Memory { name: "fp8-cast", .. })));
    assert!(fp8(&layer_kernels(&model, &layout, LayerKind::Logits, Pass::Backward)).is_empty());
}

#[test]
fn factors_by_block_are_written_in_both_orders_at_once() {
    let (model, mut layout) = (gpt(), layout(1, false));
    let mut bytes_of = |precision, name: &str| {
        layout.precision = precision;
        let passes = [Pass::Forward, Pass::Backward];
        let kernels = passes.map(|p| layer_kernels(&model, &layout, LayerKind::Dense, p)).concat();
        let named = kernels.iter().filter(|(_, k)| matches!(k, Kernel::Memory { name: n, .. } if *n == name));
        named.map(|(_, k)| k.bytes()).sum::<u128>()
    };
    // FP8: 2 bytes are read, 2 written, of 14 h elements a token. A factor for 32 elements adds a byte per 32, and results of both norms have a kernel too.
    let (fp8, mxfp8) = (bytes_of(Precision::Fp8, "fp8-cast"), bytes_of(Precision::Mxfp8, "mxfp8-cast"));
    assert_eq!(mxfp8 * 14 * 64, fp8 * 16 * 65);
    assert!(bytes_of(Precision::Fp8, "fp8-transpose") > 0);
    assert_eq!(bytes_of(Precision::Mxfp8, "fp8-transpose"), 0);
    // FP4 converts every operand of forward products and of gradients by inputs. Each is read twice; 9 of 16 bytes are written in each order.
    let (m, h) = (bytes_of(Precision::Nvfp4, "quantise"), model.hidden as u128);
    let tokens = (layout.microbatch * layout.seq) as u128;
    // Inputs are h, h, h, 4 h; output gradients are 3 h, h, 4 h, h.
    assert_eq!(m, tokens * h * 16 * (4 * 16 + 18) / 16);
}

#[test]
fn eager_mode_runs_single_operations() {
    let llama =
        Transformer { gated: true, rms_norm: true, biases: false, learned_positions: false, dropout: false, ..gpt() };
    let layout = |framework, compiled| Layout { framework, compiled, ..layout(1, false) };
    let bytes = |model: &Transformer, layout: &Layout, site: Site, pass| -> u128 {
        layer_kernels(model, layout, LayerKind::Dense, pass)
            .iter()
            .filter(|(p, k)| p.site == site && k.dtype().is_none())
            .map(|(_, k)| k.bytes())
            .sum()
    };
    let (eager, compiled) = (layout(Framework::Fsdp2, false), layout(Framework::Fsdp2, true));
    let hidden = (eager.microbatch * eager.seq) as u128 * llama.hidden as u128;
    let norm = |l: &Layout, pass| bytes(&llama, l, Site::AttnNorm, pass) / hidden;
    // Activations have 2 bytes; intermediate results are FP32.
    assert_eq!((norm(&compiled, Pass::Forward), norm(&eager, Pass::Forward)), (4, 40));
    assert_eq!((norm(&compiled, Pass::Backward), norm(&eager, Pass::Backward)), (16, 88 + 16 + 6));
    for (site, fused, single) in [(Site::Rope, 4, 20), (Site::Activation, 6, 10)] {
        let site_bytes = |l: &Layout| bytes(&llama, l, site, Pass::Forward);
        assert_eq!(site_bytes(&eager) * fused, site_bytes(&compiled) * single, "{site:?}");
    }
    // Megatron has its own kernels, and LayerNorm is one kernel in PyTorch.
    let megatron =
        |compiled| layer_kernels(&llama, &layout(Framework::Megatron, compiled), LayerKind::Dense, Pass::Forward);
    assert_eq!(megatron(true), megatron(false));
    let of_gpt = |l: &Layout| bytes(&gpt(), l, Site::AttnNorm, Pass::Forward);
    assert_eq!(of_gpt(&eager), of_gpt(&compiled));
}

#[test]
fn ranks_with_several_experts_sort_what_they_got() {
    let moe = moe(16, 2, 512);
    let model = Transformer { moe: Some(moe), ..gpt() };
    let sorts = |ep, pass| {
        let layout = Layout { ep, dp: 16, global_batch: 16, ..layout(1, false) };
        let is_sort = |k: &(LayerPart, Kernel)| matches!(k.1, Kernel::Memory { name: "sort-by-expert", .. });
        layer_kernels(&model, &layout, LayerKind::Moe, pass).into_iter().filter(is_sort).count()
    };
    assert_eq!([1, 8, 16].map(|ep| sorts(ep, Pass::Forward)), [0, 2, 0]);
    assert_eq!(sorts(8, Pass::Backward), 2);
}

/// NCCL's all-to-all needs copies at both ends. DeepEP's normal kernels send a token once, so copies are written where experts are; its low-latency kernels
/// order tokens themselves.
#[test]
fn who_orders_tokens_follows_from_the_dispatcher() {
    let moe = moe(16, 4, 512);
    let model = Transformer { moe: Some(moe), ..gpt() };
    let order = |expert_dispatcher, pass| -> Vec<(&'static str, u64)> {
        let layout = Layout { ep: 8, dp: 16, global_batch: 16, expert_dispatcher, ..layout(1, false) };
        let sites = [Site::Permute, Site::Unpermute];
        let kernels = layer_kernels(&model, &layout, LayerKind::Moe, pass).into_iter();
        kernels
            .filter(|(part, _)| sites.contains(&part.site))
            .map(|(_, kernel)| match kernel {
                Kernel::Memory { name, bytes } => (name, bytes),
                other => panic!("{other:?} orders nothing"),
            })
            .collect()
    };
    for pass in [Pass::Forward, Pass::Backward] {
        let nccl = order(None, pass);
        assert_eq!(nccl.len(), 4, "{pass:?}: {nccl:?}");
        let deepep = order(Some(ExpertDispatcher::DeepEp), pass);
        assert_eq!(deepep.iter().map(|k| k.0).collect::<Vec<_>>(), ["permute-arrived"; 2], "{pass:?}");
        // A rank has two of 16 experts. A token with four of them arrives with the probability 1 - 14 x 13 x 12 x 11 / (16 x 15 x 14 x 13) = 0.45, for 0.5 copies.
        let sorted = nccl.iter().find(|k| k.0 == "sort-by-expert").unwrap().1;
        assert!(deepep[0].1.abs_diff((sorted as f64 * (1.0 + 0.9) / 2.0) as u64) < sorted / 10_000, "{pass:?}");
        assert_eq!(order(Some(ExpertDispatcher::DeepEpLowLatency), pass), [], "{pass:?}");
    }
}

/// An expert folded over tensor-parallel ranks is whole and works on a rank's own share of tokens. The products are the same in total, and tensor-parallel
/// ranks exchange nothing for them.
#[test]
fn folded_experts_are_whole_and_gather_nothing() {
    let moe = moe(16, 2, 512);
    let model = Transformer { moe: Some(moe), ..gpt() };
    let split = Layout { ep: 4, dp: 16, global_batch: 64, ..layout(4, true) };
    let folded = Layout { etp: 1, ..split.clone() };
    for pass in [Pass::Forward, Pass::Backward] {
        assert_eq!(flops(&model, &split, LayerKind::Moe, pass), flops(&model, &folded, LayerKind::Moe, pass));
        let up = |l: &Layout| {
            let is_up = |k: &(LayerPart, Kernel)| k.0.site == Site::Up;
            layer_kernels(&model, l, LayerKind::Moe, pass).into_iter().find(is_up).unwrap().1
        };
        let (Kernel::Gemm { m, n, k, .. }, Kernel::Gemm { m: fm, n: fn_, k: fk, .. }) = (up(&split), up(&folded))
        else {
            panic!("products of experts are matrix products")
        };
        assert_eq!((m, n * k * 4), (4 * fm, fn_ * fk));
        let bytes = |l: &Layout, among| ring_bytes(&layer_steps(&model, l, LayerKind::Moe, pass), among);
        assert_eq!(bytes(&split, Among::Ep), bytes(&folded, Among::Ep));
        assert!(bytes(&split, Among::ExpertTp) > 0 && bytes(&folded, Among::ExpertTp) == 0);
        assert_eq!(bytes(&split, Among::Tp), bytes(&folded, Among::Tp));
    }
}

#[test]
fn windows_shorten_fused_attention_alone() {
    let model = Transformer { window: 128, full_every: 2, ..gpt() };
    assert_eq!(
        [0, 1, 2].map(|l| kind_of(&model, l)),
        [LayerKind::WindowedDense, LayerKind::Dense, LayerKind::WindowedDense]
    );
    assert_eq!(model.windowed_layers(), 24);
    let layout = Layout { flash_attention: true, ..layout(1, false) };
    let core = |kind, pass| {
        let is_core = |k: &(LayerPart, Kernel)| k.0.site == Site::Core;
        layer_kernels(&model, &layout, kind, pass).into_iter().filter(is_core).map(|k| k.1.flops()).sum::<u128>()
    };
    let rest = |kind, pass| flops(&model, &layout, kind, pass) - core(kind, pass);
    for pass in [Pass::Forward, Pass::Backward] {
        // 256 keys for each query, instead of 1,024 on average with the causal mask.
        assert_eq!(core(LayerKind::Dense, pass), 4 * core(LayerKind::WindowedDense, pass));
        assert_eq!(rest(LayerKind::Dense, pass), rest(LayerKind::WindowedDense, pass));
    }
    // A window as wide as half the sequence saves nothing.
    let wide = Transformer { window: 1024, ..model.clone() };
    assert_eq!(
        layer_steps(&wide, &layout, LayerKind::WindowedDense, Pass::Forward),
        layer_steps(&wide, &layout, LayerKind::Dense, Pass::Forward)
    );
}

#[test]
fn a_further_token_costs_a_layer_a_projection_and_the_logits() {
    let model = Transformer { mtp: 1, ..gpt() };
    let layout = layout(1, false);
    for (pass, times) in [(Pass::Forward, 1), (Pass::Backward, 2)] {
        let kind_flops = |kind| flops(&model, &layout, kind, pass);
        let projection = times * 2 * 2 * u128::from(model.hidden).pow(2) * 4 * 2048;
        assert_eq!(
            kind_flops(LayerKind::Prediction),
            kind_flops(LayerKind::Dense) + kind_flops(LayerKind::Logits) + projection
        );
    }
}

#[test]
fn every_knob_that_reaches_here_changes_kernels() {
    let model = gpt();
    let base = layout(8, true);
    let all = |l: &Layout| {
        let passes = [Pass::Forward, Pass::Backward, Pass::Recompute];
        passes.map(|p| layer_steps(&model, l, LayerKind::Dense, p)).concat()
    };
    let change: [fn(&mut Layout); 12] = [
        |l| l.tp = 4,
        |l| l.cp = 2,
        |l| l.microbatch = 2,
        |l| l.seq = 1024,
        |l| l.sequence_parallel = false,
        |l| l.recompute = Recompute::Full,
        |l| l.framework = Framework::DeepSpeed,
        |l| l.bytes.activations = 4,
        |l| l.precision = Precision::Fp8,
        |l| l.precision = Precision::Mxfp8,
        |l| l.precision = Precision::Nvfp4,
        |l| l.flash_attention = true,
    ];
    for (i, change) in change.into_iter().enumerate() {
        let mut other = base.clone();
        change(&mut other);
        assert_ne!(all(&base), all(&other), "change {i}");
    }
}

#[test]
fn the_optimizer_touches_what_is_sharded() {
    let base = layout(1, false);
    let bytes = |shard| optimizer_kernels(1000, shard, &base).iter().map(|(_, k)| k.bytes()).sum::<u128>();
    // Per sharded parameter: norm 4, clip 8, Adam 28, weights 6 bytes. Per parameter: 4 bytes to clear its gradient.
    assert_eq!(bytes(1000), 1000 * (4 + 8 + 28 + 6) + 4000);
    assert_eq!(bytes(125), 125 * 46 + 4000);
}

/// A model with gpt-oss's special features, and one without them.
fn gpt_oss() -> [Transformer; 2] {
    let moe = Moe { biases: true, ..moe(16, 4, 512) };
    let own = Transformer {
        gated: true,
        learned_positions: false,
        dropout: false,
        rms_norm: true,
        attention_sink: true,
        activation_clamp: true,
        heads: 8,
        kv_heads: 2,
        hidden: 512,
        head_dim: 64,
        moe: Some(moe),
        ..gpt()
    };
    let plain = Transformer {
        attention_sink: false,
        activation_clamp: false,
        moe: Some(Moe { biases: false, ..moe }),
        ..own.clone()
    };
    [own, plain]
}

/// Bytes and number of the memory-bound kernels of a layer.
fn memory_kernels(model: &Transformer, layout: &Layout, pass: Pass) -> (u64, u64) {
    let bytes_of = |kernels: Vec<(LayerPart, Kernel)>| {
        kernels.into_iter().filter_map(|(_, k)| if let Kernel::Memory { bytes, .. } = k { Some(bytes) } else { None })
    };
    let bytes: Vec<u64> = bytes_of(layer_kernels(model, layout, LayerKind::Moe, pass)).collect();
    (bytes.iter().sum(), bytes.len() as u64)
}

#[test]
fn clamps_and_weighted_biases_are_operations_of_their_own() {
    let [own, plain] = gpt_oss();
    let (tokens, hidden, inner) = (4 * 2048u64, 512u64, 512u64);
    let routed = 4 * tokens;
    let base = Layout {
        flash_attention: true,
        ep: 4,
        dp: 4,
        bytes: ElementBytes { grads: 2, ..Layout::one_gpu().bytes },
        ..layout(1, false)
    };
    // Four experts on a rank. The numbers are differences to the model without these features.
    for (router_fp32, forward, backward) in [(false, 12, 16), (true, 28, 40)] {
        let l = Layout { router_fp32, ..base.clone() };
        let more = |pass| {
            let ((bytes, n), (without, n_without)) = (memory_kernels(&own, &l, pass), memory_kernels(&plain, &l, pass));
            (bytes as i64 - without as i64, n as i64 - n_without as i64)
        };
        // Clamps take 16 bytes per element of the inner size. Biases depend on their type. The bias of the projection and the copied number are added.
        let wider = i64::from(router_fp32);
        let bytes = 16 * routed * inner + forward * routed * hidden + 4 * tokens * hidden + 2;
        assert_eq!(more(Pass::Forward), (bytes as i64, 4 + 4 * 2 + 1 + wider + 1));
        // Clamps take 30 bytes. Gradients of both biases of each expert are added to the accumulated ones, and not summed by separate kernels.
        let kept = 4 * (hidden + 2 * inner) * (2 + 2 * 2);
        let summed = 2 * routed * (hidden + 2 * inner);
        let bytes = 30 * routed * inner + backward * routed * hidden + kept;
        let n = 7 + (4 * (4 + wider) + 1 + wider) + 4 * 2 - 2;
        assert_eq!(more(Pass::Backward), (bytes as i64 - summed as i64, n));
    }
    // The fused kernel includes clamps and biases. The projection's bias and the accumulation of gradients remain.
    let fused = Layout { fused_grouped_mlp: true, precision: Precision::Mxfp8, ..base.clone() };
    let more = |pass| memory_kernels(&own, &fused, pass).0 as i64 - memory_kernels(&plain, &fused, pass).0 as i64;
    assert_eq!(more(Pass::Forward), 4 * (tokens * hidden) as i64);
    assert_eq!(more(Pass::Backward), (2 * tokens * hidden + 4 * (hidden + 2 * inner) * 6) as i64);
    // torch.compile fuses the clamps. With fused attention the sink costs nothing anywhere.
    let compiled = Layout { framework: Framework::Fsdp2, ..base.clone() };
    assert_eq!(memory_kernels(&own, &compiled, Pass::Forward), memory_kernels(&plain, &compiled, Pass::Forward));
    let eager = Layout { compiled: false, ..compiled };
    let more = memory_kernels(&own, &eager, Pass::Forward).0 - memory_kernels(&plain, &eager, Pass::Forward).0;
    assert_eq!(more, 11 * 2 * routed * inner);
}

#[test]
fn a_sink_without_fused_attention_costs_single_operations_in_fp32() {
    let [own, _] = gpt_oss();
    let without = Transformer { attention_sink: false, ..own.clone() };
    let l = layout(1, false);
    let scores = 4 * 8 * 2048 * 2048u64;
    for (pass, single, fused) in [(Pass::Forward, 36, 4), (Pass::Backward, 44, 6)] {
        let more = memory_kernels(&own, &l, pass).0 - memory_kernels(&without, &l, pass).0;
        assert_eq!(more, (single - fused) * scores);
    }
}

#[test]
fn rotary_embedding_may_be_single_operations() {
    let [own, _] = gpt_oss();
    let fused = Layout { flash_attention: true, ..layout(1, false) };
    let single = Layout { fused_rope: false, ..fused.clone() };
    // Queries and keys of ten heads. Cosines and sines of 2,048 positions are computed twice, with 22 bytes each.
    let turned = 4 * 2048 * 10 * 64 * 2u64;
    let tables = 2 * 2 * 2048 * 64 * 22;
    for (pass, operations, tables, n) in [(Pass::Forward, 12, tables, 24), (Pass::Backward, 14, 0, 14)] {
        let ((bytes, kernels), (before, one)) =
            (memory_kernels(&own, &single, pass), memory_kernels(&own, &fused, pass));
        assert_eq!(bytes - before, (operations - 2) * turned + tables);
        assert_eq!(kernels - one, n - 1);
    }
    let other = Layout { framework: Framework::Fsdp2, ..single.clone() };
    let as_before = Layout { framework: Framework::Fsdp2, ..fused };
    assert_eq!(memory_kernels(&own, &other, Pass::Forward), memory_kernels(&own, &as_before, Pass::Forward));
}

#[test]
fn padding_is_removed_and_returned_by_indexed_copies() {
    let [own, _] = gpt_oss();
    let padded = Layout { flash_attention: true, framework: Framework::Fsdp, ..layout(1, false) };
    let unpadded = Layout { unpad_attention: true, ..padded.clone() };
    // Queries of eight heads, keys and values of two, results of eight, of 64 elements each, for 4 x 2,048 tokens. An indexed copy takes the time of 2.5 copies
    // of two bytes a byte.
    let (inputs, results) = (4 * 2048 * (8 + 2 + 2) * 64 * 2u64, 4 * 2048 * 8 * 64 * 2u64);
    // Forward, only the results are cleared first; backward, only the gradients of the inputs are.
    for (pass, expected) in [(Pass::Forward, 5 * inputs + 6 * results), (Pass::Backward, 6 * inputs + 5 * results)] {
        let ((bytes, kernels), (before, n)) =
            (memory_kernels(&own, &unpadded, pass), memory_kernels(&own, &padded, pass));
        assert_eq!((bytes - before, kernels - n), (expected, 4), "{pass:?}");
    }
    let names =
        layer_kernels(&own, &unpadded, LayerKind::Moe, Pass::Forward).into_iter().filter_map(|(_, k)| match k {
            Kernel::Memory { name, .. } if name.contains("pad") => Some(name),
            _ => None,
        });
    assert_eq!(names.collect::<Vec<_>>(), ["unpad", "unpad", "unpad", "pad"]);
    // Attention that keeps its scores has nothing to remove.
    let unfused = |unpad_attention| Layout { flash_attention: false, unpad_attention, ..padded.clone() };
    assert_eq!(
        memory_kernels(&own, &unfused(true), Pass::Forward),
        memory_kernels(&own, &unfused(false), Pass::Forward)
    );
}

#[test]
fn eager_mode_puts_gradients_of_queries_keys_and_values_together() {
    let [own, _] = gpt_oss();
    let eager = Layout { flash_attention: true, framework: Framework::Fsdp, compiled: false, ..layout(1, false) };
    let copies = |l: &Layout, pass| {
        let of_copy = |(part, k): (LayerPart, Kernel)| match k {
            Kernel::Memory { name: "concatenate", bytes }
                if (part.site, part.role) == (Site::Rope, KernelRole::InputGrad) =>
            {
                Some(bytes)
            }
            _ => None,
        };
        layer_kernels(&own, l, LayerKind::Moe, pass).into_iter().filter_map(of_copy).collect::<Vec<u64>>()
    };
    // Queries of eight heads, keys and values of two, of 64 elements each, are read and written.
    assert_eq!(copies(&eager, Pass::Backward), [4 * 2048 * (8 + 2 + 2) * 64 * 2 * 2]);
    assert!(copies(&eager, Pass::Forward).is_empty());
    for other in [Layout { compiled: true, ..eager.clone() }, Layout { framework: Framework::Megatron, ..eager }] {
        assert!(copies(&other, Pass::Backward).is_empty());
    }
}
