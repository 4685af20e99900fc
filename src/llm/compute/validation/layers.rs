//! Layers and their halves: the converter and the timing together, with tensor-parallel communication as measured on one server.

use super::{ComputeValidationRow, number, records};
use crate::collective::CollectiveOp;
use crate::compute::{
    Among, Gpu, KernelFeatures, KernelRole, LayerKind, LayerStep, Pass, Site, Slowdown, Timing, layer_kernels,
    layer_steps, overlap_ratio,
};
use crate::model::{Layout, Recompute, Transformer};

const LAYER_TIMES: &str = include_str!("../../../../assets/reference/seqsel_table4_layer_times.csv");
const AIOB: &str = include_str!("../../../../assets/reference/aicb_aiob_a100_op_times.csv");

/// Times of an all-reduce over the 8 A100 of one server by NCCL: (bytes, us). Source: stas00/ml-engineering@744d01e network/README.md. Gathering and scattering
/// take half.
const ALL_REDUCE_US: [(f64, f64); 4] =
    [(16777216.0, 276.6), (33554432.0, 424.0), (67108864.0, 684.6), (134217728.0, 1327.6)];

/// All rows of `seqsel_table4_layer_times`, and the rows of `aicb_aiob_a100_op_times` that are half of a layer or an embedding.
pub fn layers() -> Vec<ComputeValidationRow> {
    let timing =
        Timing::new(&Gpu::named("a100").expect("an asset"), None).expect("without a user's database nothing can fail");
    let mut rows = layer_times(&timing);
    rows.extend(aiob(&timing));
    rows
}

/// A GPT layer with these sizes.
fn gpt(hidden: u32, heads: u32, ffn: u32, gated: bool) -> Transformer {
    Transformer {
        layers: 1,
        hidden,
        ffn,
        heads,
        kv_heads: heads,
        head_dim: hidden / heads,
        vocab: 51200,
        seq: 2048,
        gated,
        tied: true,
        learned_positions: !gated,
        causal: true,
        rms_norm: gated,
        attention_sink: false,
        activation_clamp: false,
        biases: !gated,
        dropout: !gated,
        moe: None,
        mla: None,
        window: 0,
        full_every: 0,
        mtp: 0,
    }
}

fn layout(tp: u32, microbatch: u32, sequence_parallel: bool) -> Layout {
    Layout { tp, microbatch, global_batch: microbatch, sequence_parallel, bucket_bytes: 1 << 30, ..Layout::one_gpu() }
}

/// Time of an all-reduce in ps: linear between the measured sizes, proportional below and above them.
fn all_reduce_ps(bytes: u64) -> u64 {
    let (bytes, points) = (bytes as f64, ALL_REDUCE_US);
    let last = points[points.len() - 1];
    let us = match points.iter().position(|p| bytes <= p.0) {
        Some(0) => points[0].1 * bytes / points[0].0,
        Some(i) => {
            let (a, b) = (points[i - 1], points[i]);
            a.1 + (b.1 - a.1) * (bytes - a.0) / (b.0 - a.0)
        }
        None => last.1 * bytes / last.0,
    };
    (us * 1e6) as u64
}

/// One rank's time for the steps in ps. Kernels run in order on one stream, exchanges on another; each waits as its step says. Kernels that overlap with an
/// exchange take longer.
fn span_ps(timing: &Timing, steps: &[LayerStep]) -> u64 {
    let (mut compute, mut exchange) = (0u64, 0u64);
    let slowdown = Slowdown::Own;
    let mut awaited = Vec::new();
    for step in steps {
        match *step {
            LayerStep::Kernel { part, ref kernel } => {
                awaited.retain(|(needed_by, done)| {
                    let wait = *needed_by == part;
                    if wait {
                        compute = compute.max(*done);
                    }
                    !wait
                });
                let alone = timing.ps(kernel);
                let overlap = overlap_ratio(alone, exchange.saturating_sub(compute));
                compute += slowdown.stretched_ps(
                    alone,
                    overlap,
                    &KernelFeatures::new(timing, kernel, CollectiveOp::AllReduce, 0),
                );
            }
            LayerStep::Exchange { op, bytes, needed_by, among } => {
                debug_assert_eq!(among, Among::Tp, "these layers have no other");
                let whole = all_reduce_ps(bytes);
                exchange = exchange.max(compute) + if op == CollectiveOp::AllReduce { whole } else { whole / 2 };
                match needed_by {
                    Some(part) => awaited.push((part, exchange)),
                    None => compute = compute.max(exchange),
                }
            }
        }
    }
    compute.max(exchange)
}

fn layer_times(timing: &Timing) -> Vec<ComputeValidationRow> {
    let model = gpt(6144, 64, 4 * 6144, false);
    let mut rows = Vec::new();
    for r in records(LAYER_TIMES) {
        let mut layout = layout(8, 4, r[0].contains("sequence"));
        layout.recompute = match r[0].as_str() {
            "full recompute" => Recompute::Full,
            name if name.starts_with("selective") => Recompute::CORE,
            _ => Recompute::None,
        };
        let span = |pass| span_ps(timing, &layer_steps(&model, &layout, LayerKind::Dense, pass)) as f64 / 1e9;
        let (forward, backward) = (span(Pass::Forward), span(Pass::Recompute) + span(Pass::Backward));
        let measured = [number(&r[1]), number(&r[2]), number(&r[3])];
        for (direction, measured, simulated) in [
            ("forward", measured[0], forward),
            ("backward", measured[1], backward),
            ("both", measured[2], forward + backward),
        ] {
            let note = "22B layer, 8 A100: kernels by roofline, exchanges as measured on one server".to_string();
            rows.push(ComputeValidationRow {
                name: format!("{}: {direction}", r[0]),
                unit: "ms",
                measured,
                simulated,
                note,
            });
        }
    }
    rows
}

fn aiob(timing: &Timing) -> Vec<ComputeValidationRow> {
    let mut rows = Vec::new();
    let mut config = String::new();
    for r in records(AIOB) {
        if r[1] != "same" {
            config = r[1].clone();
        }
        let (model, tp) = match r[0].as_str() {
            "GPT-13B" => (gpt(5120, 40, 20480, false), 8),
            "GPT-175B" => (gpt(12288, 96, 49152, false), 8),
            "Llama-65B" => (gpt(8192, 64, 22016, true), 8),
            "Llama-7B" => (gpt(4096, 32, 11008, true), 2),
            other => panic!("aicb_aiob_a100_op_times has no model {other}"),
        };
        let mut layout = layout(tp, 1, config.contains("+ SP"));
        layout.flash_attention = true;
        let attention = [Site::AttnNorm, Site::Qkv, Site::Rope, Site::Core, Site::Proj, Site::AttnResidual];
        let mlp = [Site::MlpNorm, Site::Up, Site::Activation, Site::Down, Site::MlpResidual];
        let (kind, sites): (LayerKind, &[Site]) = match r[2].as_str() {
            op if op.starts_with("attention block") => (LayerKind::Dense, &attention),
            "mlp block" => (LayerKind::Dense, &mlp),
            "attention qkv (column)" => (LayerKind::Dense, &attention[..4]),
            "attention out (row)" => (LayerKind::Dense, &attention[4..]),
            "mlp column" => (LayerKind::Dense, &mlp[..3]),
            "mlp row" => (LayerKind::Dense, &mlp[3..]),
            "embedding" => (LayerKind::Embedding, &[Site::Embedding]),
            // It is not documented whose parameters the optimizer's slots are.
            _ => continue,
        };
        let kernels = layer_kernels(&model, &layout, kind, Pass::Forward);
        let site_kernels =
            kernels.iter().filter(|(p, _)| p.role == KernelRole::Forward && sites.contains(&p.site)).map(|(_, k)| k);
        rows.push(ComputeValidationRow {
            name: format!("{} {config}: {}", r[0], r[2]),
            unit: "us",
            measured: number(&r[3]),
            simulated: timing.total_ps(site_kernels) as f64 / 1e6,
            note: "placed in a workload file, rounded and partly modelled by its authors: within 20 % at best; forward, FlashAttention assumed".to_string(),
        });
    }
    rows
}
