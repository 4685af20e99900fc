//! Memory estimates against closed forms, and every choice that must show in them.

use proptest::prelude::*;

use hyperfold_llm::memory::{MemoryOptions, estimate, layer_activations, timeline};
use hyperfold_llm::model::{
    CudaGraph, ElementBytes, Fp8Scaling, Framework, Gathering, Layout, Model, PipelineSchedule, Precision, Recompute,
    RecomputeModules, hardware_flops, model_flops, parameters,
};

fn layout() -> Layout {
    Layout {
        tp: 1,
        pp: 1,
        dp: 1,
        ep: 1,
        etp: 0,
        cp: 1,
        vpp: 1,
        microbatch: 1,
        global_batch: 64,
        seq: 2048,
        sequence_parallel: false,
        schedule: PipelineSchedule::OneFOneB,
        recompute: Recompute::None,
        recompute_layers: 0,
        zero: 0,
        shard_ranks: 0,
        framework: Framework::Megatron,
        bytes: ElementBytes { params: 2, grads: 4, activations: 2, optimizer: 12 },
        precision: Precision::Bf16,
        fp8_scaling: Fp8Scaling::Delayed,
        fp8_any_order: false,
        compiled: true,
        fused_activation_cast: false,
        fused_grouped_mlp: false,
        fused_permute: true,
        fused_rope: true,
        router_fp32: false,
        launch_ps: None,
        cuda_graph: CudaGraph::None,
        flash_attention: false,
        unpad_attention: false,
        fp8_attention: false,
        fused_loss: false,
        loss_metrics: 0,
        offload_layers: 0,
        fused_optimizer: true,
        align_grad_reduce: true,
        defer_embedding_wgrad: false,
        gathering: Gathering::DEFAULT,
        overlap_grad: false,
        overlap_param: false,
        tp_overlap_pieces: 1,
        overlap_ep: false,
        overlap_shared_experts: false,
        overlap_p2p: false,
        scatter_gather: false,
        async_tp: true,
        fused_grad_accumulation: true,
        bucket_bytes: 100 << 20,
        expert_skew: 1.0,
        expert_dispatcher: None,
        order: "tp-cp-ep-dp-pp".into(),
    }
}

/// s, b, h, a, L, t, p, m of a GPT and its layout, as Korthikanti et al. name them.
fn letters(model: &Model, l: &Layout) -> [f64; 8] {
    let t = model.transformer().unwrap();
    [l.seq, l.microbatch, t.hidden, t.heads, t.layers, l.tp, l.pp, l.vpp].map(f64::from)
}

fn near(ours: u64, formula: f64, what: &str) {
    assert!((ours as f64 / formula - 1.0).abs() < 1e-6, "{what}: {ours} against {formula}");
}

const MODELS: [&str; 4] = ["gpt3-6.7b", "gpt3-22b", "gpt3-175b", "gpt3-1t"];

/// Korthikanti et al. 2022 (arXiv 2205.05198), Table 2, and the totals of Section 4.2.3.
#[test]
fn activations_are_the_papers_formulas() {
    let (none, selective, full) = (Recompute::None, Recompute::CORE, Recompute::Full);
    for name in MODELS {
        let model = Model::named(name).unwrap();
        for (tp, microbatch) in [(1, 1), (2, 4), (8, 1), (8, 4)] {
            let l = Layout { tp, microbatch, ..layout() };
            let [s, b, h, a, _, t, ..] = letters(&model, &l);
            let sbh = s * b * h;
            let cases = [
                (false, none, sbh * (10.0 + 24.0 / t + 5.0 * a * s / (h * t))),
                (true, none, sbh / t * (34.0 + 5.0 * a * s / h)),
                (false, selective, sbh * (10.0 + 24.0 / t)),
                (true, selective, 34.0 * sbh / t),
                (false, full, 2.0 * sbh),
            ];
            for (sequence_parallel, recompute, formula) in cases {
                let l = Layout { sequence_parallel, recompute, ..l.clone() };
                near(
                    layer_activations(&model, &l, 0).unwrap().kept,
                    formula,
                    &format!("{name} tp {tp} {sequence_parallel} {recompute:?}"),
                );
            }
        }
    }
}

/// DeepSeek-V3's layers, a sample of 4,096 tokens: what each of Megatron's modules saves, in elements of two bytes a token.
#[test]
fn modules_that_are_computed_again_are_not_kept() {
    let model = Model::named("deepseek-v3").unwrap();
    let none = RecomputeModules::NONE;
    let kept = |recompute, layer| {
        let l = Layout { seq: 4096, flash_attention: true, recompute, ..layout() };
        layer_activations(&model, &l, layer).unwrap().kept
    };
    let saved = |modules, layer| (kept(Recompute::None, layer) - kept(Recompute::Selective(modules), layer)) / 4096 / 2;
    let (dense, experts) = (0, 60);
    let up = RecomputeModules { mla_up_proj: true, ..none };
    // Queries, keys and values of 128 heads, and the compressed vectors after their norms.
    assert_eq!(saved(up, experts), 128 * (2 * 192 + 128) + 1536 + 512);
    assert_eq!(saved(RecomputeModules { moe_act: true, ..none }, experts), 8 * 2048);
    assert_eq!(saved(RecomputeModules { shared_experts: true, ..none }, experts), 3 * 2048);
    assert_eq!(saved(RecomputeModules { layernorm: true, ..none }, experts), 2 * 7168);
    assert_eq!(saved(RecomputeModules { layernorm: true, ..none }, dense), 7168);
    // The router's scores are in 32 bit, twice.
    let routed = 8 * 7168 + 8 * 3 * 2048 + 3 * 2048 + 2 * 2 * 256;
    assert_eq!(saved(RecomputeModules { moe: true, ..none }, experts), routed);
    assert_eq!(saved(RecomputeModules { mlp: true, ..none }, dense), 7168 + 3 * 18432);
    assert_eq!(saved(RecomputeModules { mlp: true, moe: true, ..none }, experts), routed);
    // Together they save what each does.
    let all = RecomputeModules { moe_act: true, layernorm: true, shared_experts: true, ..up };
    assert_eq!(saved(all, experts), saved(up, experts) + 8 * 2048 + 3 * 2048 + 2 * 7168);
}

#[test]
fn the_first_stage_holds_p_micro_batches_and_more_if_interleaved() {
    let model = Model::named("gpt3-175b").unwrap();
    for (pp, vpp) in [(1, 1), (4, 1), (8, 1), (8, 3), (4, 6), (8, 12)] {
        let l = Layout { tp: 8, pp, vpp, sequence_parallel: true, recompute: Recompute::CORE, ..layout() };
        let [s, b, h, _, layers, t, p, m] = letters(&model, &l);
        let stages = estimate(&model, &l, &MemoryOptions::default()).stages;
        let interleaved = if m > 1.0 { 1.0 + (p - 1.0) / (p * m) } else { 1.0 };
        near(stages[0].activations, 34.0 * s * b * h / t * layers * interleaved, &format!("pp {pp} vpp {vpp}"));
        let last = stages.last().unwrap();
        let logits = 4.0 * s * b * 51200.0 / t + 2.0 * 2.0 * s * b * h / t;
        let dropout = if pp == 1 { s * b * h / t } else { 0.0 };
        near(last.ends, logits + dropout, "beside the layers");
        if vpp == 1 {
            let in_flight: Vec<u64> = stages.iter().map(|s| s.in_flight).collect();
            assert_eq!(in_flight, (1..=pp as u64).rev().collect::<Vec<_>>());
        }
    }
}

#[test]
fn gpipe_holds_all_micro_batches_and_few_ones_bound_the_rest() {
    let model = Model::named("gpt3-13b").unwrap();
    let in_flight = |l: Layout| {
        estimate(&model, &l, &MemoryOptions::default()).stages.iter().map(|s| s.in_flight).collect::<Vec<_>>()
    };
    let l = Layout { pp: 4, global_batch: 16, ..layout() };
    assert_eq!(in_flight(Layout { schedule: PipelineSchedule::GPipe, ..l.clone() }), [16; 4]);
    assert_eq!(in_flight(l.clone()), [4, 3, 2, 1]);
    assert_eq!(in_flight(Layout { global_batch: 2, ..l.clone() }), [2, 2, 2, 1]);
    assert_eq!(in_flight(Layout { vpp: 2, ..l.clone() }), [11, 9, 7, 5]);
    assert_eq!(in_flight(Layout { vpp: 2, global_batch: 4, ..l })[0], 8);
}

/// Activations of the fullest stage, by schedule, and how many passes it holds.
fn fullest(name: &str, l: &Layout) -> (u64, u64) {
    let model = Model::named(name).unwrap();
    l.check(&model, l.gpus()).unwrap();
    let stages = estimate(&model, l, &MemoryOptions::default()).stages;
    let most = stages.iter().max_by_key(|s| s.activations).unwrap();
    (most.activations, stages.iter().map(|s| s.in_flight).max().unwrap())
}

#[test]
fn split_backward_passes_hold_what_their_papers_say() {
    let l = |schedule: PipelineSchedule, pp| {
        let vpp = if schedule.is_v_shaped() { 2 } else { 1 };
        Layout { tp: 1, pp, vpp, schedule, global_batch: 6 * pp, flash_attention: true, ..layout() }
    };
    for pp in [4, 8, 16] {
        let whole = fullest("gpt3-175b", &l(PipelineSchedule::OneFOneB, pp)).0 as f64;
        let share = |schedule| {
            let (bytes, passes) = fullest("gpt3-175b", &l(schedule, pp));
            (bytes as f64 / whole, passes as f64 / if schedule.is_v_shaped() { 2.0 } else { 1.0 })
        };
        let p = f64::from(pp);
        // Gradients of weights need a little less than the activations: 32 of the 34 elements of arXiv 2401.10241, Table 1.
        let (h1, held) = share(PipelineSchedule::ZbH1);
        assert!(held == p && h1 > 0.94 && h1 <= 1.0, "p {p}: {h1} {held}");
        let (v, held) = share(PipelineSchedule::ZbV);
        assert!(held == p && v > 0.9 && v <= 1.0, "p {p}: {v} {held}");
        // Half, and one micro-batch more.
        let (half, held) = share(PipelineSchedule::VHalf);
        assert!(held == p / 2.0 + 1.0 && half <= (p / 2.0 + 1.0) / p && half > 0.45, "p {p}: {half} {held}");
        let (third, held) = share(PipelineSchedule::VMin);
        assert!(held <= p / 3.0 + 2.0 && third < half && third > 0.33, "p {p}: {third} {held}");
    }
}

/// Elements of two bytes a token that the products of a layer's weights' gradients read: inputs and gradients of results.
#[test]
fn gradients_of_weights_keep_the_operands_of_their_products() {
    let weights = |name: &str, tp: u32, sequence_parallel, layer| {
        let l = Layout { tp, sequence_parallel, seq: 2048, flash_attention: true, ..layout() };
        layer_activations(&Model::named(name).unwrap(), &l, layer).unwrap().weights / 2048 / 2
    };
    // GPT: inputs of 1, 1, 1 and 4 hidden sizes, gradients of 3, 1, 4 and 1: the paper's 32 bytes.
    assert_eq!(weights("gpt3-175b", 1, false, 0), 16 * 12288);
    // Over tensor-parallel ranks inputs of both first products and gradients of both last ones are whole; shares of sequences leave the gradients whole.
    assert_eq!(weights("gpt3-175b", 8, false, 0), 4 * 12288 + 12 * 12288 / 8);
    assert_eq!(weights("gpt3-175b", 8, true, 0), 2 * 12288 + 14 * 12288 / 8);
    let moe = weights("mixtral-8x7b", 1, false, 0);
    let (h, f, attention) = (4096, 14336, 4096 + (32 + 16) * 128 + 4096 + 4096);
    // Two experts a token: input, both halves of the first product, the second one's input and result; the router.
    assert_eq!(moe, attention + 2 * (2 * h + 3 * f) + h + 8);
}

#[test]
fn recomputation_saves_less_where_backward_passes_are_split() {
    let l = |schedule, recompute| Layout {
        pp: 8,
        schedule,
        recompute,
        flash_attention: true,
        global_batch: 64,
        ..layout()
    };
    let kept = |schedule, recompute| fullest("gpt3-175b", &l(schedule, recompute)).0;
    let (none, full) = (Recompute::None, Recompute::Full);
    assert!(kept(PipelineSchedule::OneFOneB, full) * 10 < kept(PipelineSchedule::OneFOneB, none));
    // What gradients of weights need was computed again, and waits for them.
    assert!(kept(PipelineSchedule::ZbH1, full) * 3 > kept(PipelineSchedule::ZbH1, none));
}

#[test]
fn the_timelines_greatest_moment_is_the_peak() {
    let options = MemoryOptions { keep_stage_outputs: true, ..MemoryOptions::default() };
    for (name, tp, pp, vpp, schedule, batch) in [
        ("gpt3-13b", 2, 1, 1, PipelineSchedule::OneFOneB, 16),
        ("gpt3-13b", 2, 4, 1, PipelineSchedule::OneFOneB, 16),
        ("gpt3-13b", 2, 4, 1, PipelineSchedule::GPipe, 16),
        ("gpt3-13b", 2, 4, 2, PipelineSchedule::OneFOneB, 32),
        ("gpt3-13b", 2, 4, 1, PipelineSchedule::ZbH1, 16),
        ("deepseek-v3", 1, 8, 2, PipelineSchedule::ZbV, 19),
        ("gpt3-13b", 2, 4, 2, PipelineSchedule::VHalf, 16),
        ("gpt3-13b", 2, 4, 2, PipelineSchedule::VMin, 3),
        ("gpt3-175b", 8, 8, 12, PipelineSchedule::OneFOneB, 64),
        ("llama3-405b", 8, 16, 2, PipelineSchedule::OneFOneB, 64),
        ("llama3-405b", 8, 16, 1, PipelineSchedule::OneFOneB, 8),
        ("deepseek-v3", 1, 16, 1, PipelineSchedule::OneFOneB, 64),
        ("deepseek-v3", 1, 4, 3, PipelineSchedule::OneFOneB, 8),
        ("vgg19", 1, 1, 1, PipelineSchedule::OneFOneB, 4),
        ("dlrm", 1, 1, 1, PipelineSchedule::OneFOneB, 4),
    ] {
        let model = Model::named(name).unwrap();
        for recompute in [Recompute::None, Recompute::Full] {
            let recompute = if model.transformer().is_some() { recompute } else { Recompute::None };
            let l = Layout { tp, pp, vpp, schedule, recompute, global_batch: batch, ..layout() };
            l.check(&model, (tp * pp) as u64).unwrap();
            for stage in estimate(&model, &l, &options).stages {
                let moments = timeline(&model, &l, &options, stage.stage);
                let greatest = moments.iter().map(|m| m.total).max().unwrap();
                assert_eq!(greatest, stage.peak(), "{name} {l:?} {stage:?}");
                let each = if schedule.splits_backward() { 3 } else { 2 };
                assert_eq!(moments.len(), each * (batch * vpp) as usize + 1);
                assert!(
                    moments.iter().all(|m| m.activations > 0)
                        ^ moments.last().is_some_and(|m| m.activations == 0 && m.in_flight == 0)
                );
            }
        }
    }
}

#[test]
fn the_peak_is_found_for_every_depth_and_rank() {
    // 61 and 32 layers, the first three of the former dense: unequal virtual stages at most depths.
    for (name, batch) in [("deepseek-v3", 1), ("deepseek-v3", 4), ("gpt3-6.7b", 3)] {
        let model = Model::named(name).unwrap();
        for (pp, vpp) in (1..=6).flat_map(|pp| (1..=5).map(move |vpp| (pp, vpp))) {
            let l = Layout {
                pp,
                vpp: if pp == 1 { 1 } else { vpp },
                global_batch: batch * pp,
                recompute: Recompute::Full,
                ..layout()
            };
            l.check(&model, pp as u64).unwrap();
            for stage in estimate(&model, &l, &MemoryOptions::default()).stages {
                let moments = timeline(&model, &l, &MemoryOptions::default(), stage.stage);
                assert_eq!(
                    moments.iter().map(|m| m.total).max(),
                    Some(stage.peak()),
                    "{name} pp {pp} vpp {vpp} stage {}",
                    stage.stage
                );
            }
        }
    }
}

/// Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054), Figure 1: 7.5 billion parameters over 64 ranks, K = 12, 16-bit gradients: 120, 31.4, 16.6 and 1.9 GB.
#[test]
fn zero_divides_states_as_its_paper_says() {
    let model = Model::named("gpt3-7.5b").unwrap();
    let params = parameters(&model).total() as f64;
    for (zero, published) in [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)] {
        let bytes = ElementBytes { params: 2, grads: 2, activations: 2, optimizer: 12 };
        let l = Layout { dp: 64, zero, bytes, framework: Framework::DeepSpeed, ..layout() };
        let states = estimate(&model, &l, &MemoryOptions::default()).stages[0].states() as f64 / 1e9 * 7.5e9 / params;
        assert!((states / published - 1.0).abs() < 0.02, "ZeRO-{zero}: {states}");
    }
}

#[test]
fn experts_are_spread_and_sharded_over_fewer_ranks() {
    let model = Model::named("mixtral-8x7b").unwrap();
    let stage =
        |ep| estimate(&model, &Layout { dp: 8, ep, zero: 1, ..layout() }, &MemoryOptions::default()).stages[0].clone();
    let (whole, spread) = (stage(1), stage(8));
    let experts = parameters(&model).layers.experts;
    assert_eq!(whole.params - spread.params, 2 * experts / 8 * 7);
    // Divided over eight ranks either way: by ZeRO, or because each expert is on one of them.
    assert_eq!(whole.optimizer, spread.optimizer);
}

#[test]
fn every_choice_changes_the_estimate() {
    let peak = |name: &str, change: &dyn Fn(&mut Layout)| {
        let mut l = Layout { tp: 2, pp: 2, dp: 4, ..layout() };
        change(&mut l);
        let model = Model::named(name).unwrap();
        l.check(&model, l.gpus()).unwrap();
        estimate(&model, &l, &MemoryOptions::default()).peak_bytes()
    };
    type Change = fn(&mut Layout);
    let changes: [(&str, Change, bool); 18] = [
        ("tp", |l| l.tp = 4, true),
        ("pp", |l| l.pp = 4, true),
        ("cp", |l| l.cp = 2, true),
        ("ep", |l| l.ep = 4, true),
        ("vpp", |l| l.vpp = 2, false),
        ("microbatch", |l| l.microbatch = 2, false),
        ("seq", |l| l.seq = 4096, false),
        ("sequence parallel", |l| l.sequence_parallel = true, true),
        ("gpipe", |l| l.schedule = PipelineSchedule::GPipe, false),
        ("selective", |l| l.recompute = Recompute::CORE, true),
        ("full", |l| l.recompute = Recompute::Full, true),
        ("zero 1", |l| l.zero = 1, true),
        ("fp8", |l| l.precision = Precision::Fp8, false),
        ("mxfp8", |l| l.precision = Precision::Mxfp8, false),
        ("nvfp4", |l| l.precision = Precision::Nvfp4, false),
        ("flash attention", |l| l.flash_attention = true, true),
        ("expert skew", |l| l.expert_skew = 2.0, false),
        ("activations", |l| l.bytes.activations = 4, false),
    ];
    for (what, change, less) in changes {
        let (before, after) = (peak("mixtral-8x7b", &|_| {}), peak("mixtral-8x7b", &change));
        assert!(if less { after < before } else { after > before }, "{what}: {before} {after}");
    }
    let fsdp = |l: &mut Layout| (l.tp, l.pp, l.zero, l.framework) = (1, 1, 3, Framework::Fsdp);
    let overlapped =
        |l: &mut Layout| (l.tp, l.pp, l.zero, l.framework, l.overlap_param) = (1, 1, 3, Framework::Fsdp, true);
    assert!(peak("llama3-8b", &overlapped) > peak("llama3-8b", &fsdp));
    // Copies of shards hold more than shards alone.
    let hybrid = |l: &mut Layout| {
        fsdp(l);
        l.shard_ranks = 2;
    };
    assert!(peak("llama3-8b", &hybrid) > peak("llama3-8b", &fsdp));
    // Half of the layers in the host's memory are nearly half of the activations.
    let base = peak("llama3-8b", &|_| {});
    let offloaded = |l: &mut Layout| l.offload_layers = 16;
    assert!(peak("llama3-8b", &offloaded) < base);
}

/// Nothing but what the arithmetic says.
const ALONE: MemoryOptions = MemoryOptions {
    nccl_channels: 0,
    nccl_channel_bytes: 0,
    context_bytes: 0,
    fragmentation: 0.0,
    keep_stage_outputs: false,
};

/// Two stages of FSDP, four ranks each: the stage's parameters and the sums of its gradients are whole, all else is sharded.
#[test]
fn a_pipeline_of_fsdp_holds_whole_parameters_and_gradients() {
    let model = Model::named("llama3-8b").unwrap();
    let l = Layout { dp: 4, pp: 2, framework: Framework::Fsdp2, zero: 2, flash_attention: true, ..layout() };
    let stages = estimate(&model, &l, &ALONE).stages;
    let params = |stage: usize| stages[stage].optimizer / 12 * 4;
    assert!(params(0).abs_diff(model_params(&model) / 2) < model_params(&model) / 50);
    for (stage, memory) in stages.iter().enumerate() {
        // Sums of gradients take four bytes, shards of the masters' gradients as well.
        let messages = 4 * 2 * u64::from(l.seq) * 4096;
        assert_eq!(memory.buffers - messages, params(stage) * (2 + 4), "{memory:?}");
        assert_eq!((memory.params, memory.grads), (0, params(stage)));
    }
    // What a forward pass frees is there after a backward pass all the same.
    assert_eq!(estimate(&model, &Layout { zero: 3, overlap_param: true, ..l }, &ALONE).stages, stages);
}

fn model_params(model: &Model) -> u64 {
    hyperfold_llm::model::parameters(model).total()
}

/// Sixteen layers of a stage, of which four are computed again: these keep their input, the others all.
#[test]
fn layers_that_are_not_computed_again_are_kept() {
    let model = Model::named("llama3-8b").unwrap();
    let of = |recompute, recompute_layers| {
        let l = Layout { pp: 2, flash_attention: true, recompute, recompute_layers, ..layout() };
        estimate(&model, &l, &ALONE).stages.remove(0)
    };
    let (none, full, some) = (of(Recompute::None, 0), of(Recompute::Full, 0), of(Recompute::Full, 4));
    assert_eq!(some.activations * 16, none.activations * 12 + full.activations * 4);
    assert_eq!(of(Recompute::Full, 16), full);
    // What is computed again is as much for a while, whether of one layer or of all.
    assert_eq!(some.working, full.working);
}

#[test]
fn options_count() {
    let (model, l) = (Model::named("gpt3-13b").unwrap(), Layout { tp: 2, pp: 2, ..layout() });
    let peak = |options: MemoryOptions| estimate(&model, &l, &options).peak_bytes();
    let default = MemoryOptions::default();
    let base = peak(default);
    for more in [
        MemoryOptions { nccl_channels: 32, ..default },
        MemoryOptions { nccl_channel_bytes: 16 << 20, ..default },
        MemoryOptions { context_bytes: 2 << 30, ..default },
        MemoryOptions { fragmentation: 0.2, ..default },
        MemoryOptions { keep_stage_outputs: true, ..default },
    ] {
        assert!(peak(more) > base, "{more:?}");
    }
}

#[test]
fn over_capacity_says_which_stage_and_of_what() {
    let model = Model::named("gpt3-175b").unwrap();
    let l = Layout { tp: 8, pp: 8, ..layout() };
    let e = estimate(&model, &l, &MemoryOptions::default());
    assert_eq!(e.fits(e.peak_bytes(), 0), Ok(None));
    // A GPU with ten elevenths of it is enough with a margin of a tenth, and a warning says so.
    let above = e.fits(e.peak_bytes() / 11 * 10 + 100, 100_000).unwrap().unwrap();
    assert!(above.contains("memory_margin"), "{above}");
    let text = e.fits(80 << 30, 0).unwrap_err().to_string();
    assert!(text.starts_with("out of memory: pipeline stage 0 of 8 needs "), "{text}");
    assert!(
        text.contains("GiB of 80.00 GiB at its peak with 8 micro-batch passes in flight: parameters 5.2"),
        "{text}"
    );
    assert!(text.contains("activations of layers 51.75"), "{text}");
}

/// Sizes from 1 to large ones, most of them small.
fn size(bits: u32) -> impl Strategy<Value = u32> {
    (0..bits, any::<u32>()).prop_map(|(b, r)| (1 << b) + (r & ((1 << b) - 1)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is accepted is counted without overflow (the tests' profile panics on it), and nothing is refused by a panic.
    #[test]
    fn any_sizes_are_refused_or_counted(
        (layers, hidden, heads, dim, ffn) in (size(13), size(20), size(8), size(11), size(19)),
        (vocab, seq, experts, top_k, expert_ffn) in (size(24), size(21), size(14), size(3), size(19)),
        (tp, pp, dp, ep, cp, vpp) in (size(4), size(4), size(6), size(4), size(3), size(3)),
        (microbatch, groups, flash, gated) in (size(8), size(16), any::<bool>(), any::<bool>()),
    ) {
        // Multiples, so that most layouts go with their models and get as far as being counted.
        let (heads, ffn, expert_ffn, experts, seq, dp) = (heads * tp, ffn * tp, expert_ffn * tp, experts * ep, seq * 2 * cp, dp * ep);
        let batch = (dp * microbatch * pp).saturating_mul(groups);
        let text = format!(
            "name = \"any\"\n[transformer]\nlayers = {layers}\nhidden = {hidden}\nheads = {heads}\nhead_dim = {dim}\nffn = {ffn}\nvocab = {vocab}\nseq = {seq}\n\
             gated = {gated}\nmoe = {{ experts = {experts}, top_k = {top_k}, expert_ffn = {expert_ffn} }}\n"
        );
        if let Ok(model) = Model::parse(&text, "any.toml") {
            let l = Layout { tp, pp, dp, ep, cp, vpp, microbatch, seq, flash_attention: flash, global_batch: batch, ..layout() };
            prop_assert!(parameters(&model).active() <= parameters(&model).total());
            prop_assert!(hardware_flops(&model, batch, seq, Recompute::Full) > model_flops(&model, batch, seq));
            if l.check(&model, l.gpus()).is_ok() {
                let e = estimate(&model, &l, &MemoryOptions::default());
                prop_assert_eq!(e.stages.len(), pp as usize);
                prop_assert!(e.peak_bytes() > e.stages[0].states());
            }
        }
    }
}
