//! Implementations of fused attention, and their curves on a GPU.
//!
//! Layer: compute. A curve is measured if there are rows for it. Otherwise it follows from that of another implementation or GPU by a published ratio.

use super::attention_names::{NAMES, operands};
use super::curves::AttentionCurves;
use super::database::{MeasuredKernel, Operation};
use super::{Dtype, Error, Gpu};

/// A GPU and the implementation whose directions were measured both separately and together on it. It shows how to divide combined measurements of others.
const DIVIDED: (&str, &str) = ("h100-sxm", "FlashAttention-2");

/// The GPU on which older implementations were measured, and the implementation that carries their rates to newer GPUs.
const OLDER: (&str, &str) = ("a100-80g-sxm", "FlashAttention-2");

/// FlashAttention of 2022 in Triton: its name, the implementation that it is compared with, and the factor by which it is slower. The paper of FlashAttention-2
/// (arXiv 2307.08691, Section 4.1) says 1.3 to 2.5 times on the A100, over lengths and head sizes; this is the geometric middle.
const TRITON: (&str, &str, f64) = ("Triton", "FlashAttention-2", 1.8);

/// Returns the GPU with the named implementation instead of its usual one.
///
/// # Errors
/// There is no such implementation, or it was never measured on this GPU or on the GPU that it is like.
pub fn with_attention(mut gpu: Gpu, name: &str) -> Result<Gpu, Error> {
    let rows = &super::UserDatabase::shipped().rows;
    let names = [&gpu.name, &gpu.attention_of, &gpu.baseline];
    let multiplies =
        |variant: &str| operands(variant) == Dtype::Bf16 || gpu.peak_flops[operands(variant) as usize] > 0.0;
    let known =
        |variant: &str| multiplies(variant) && names.iter().any(|g| !forward_curves(rows, g, variant).is_empty());
    match NAMES.iter().find(|n| n.0 == name && known(n.1)) {
        Some((_, variant)) => {
            gpu.attention = variant.to_string();
            Ok(gpu)
        }
        None => {
            let measured_names: Vec<&str> = NAMES.iter().filter(|n| known(n.1)).map(|n| n.0).collect();
            let message = format!(
                "workload.attention = {name:?} was not measured on it, or needs units that it lacks; {} were measured",
                measured_names.join(", ")
            );
            Err(Error::Gpu { name: gpu.name.clone(), message })
        }
    }
}

/// Forward curves of an implementation on a GPU.
pub(super) fn forward_curves(rows: &[MeasuredKernel], gpu: &str, variant: &str) -> AttentionCurves {
    curves(rows, gpu, variant, measured_forward)
}

/// Backward curves of an implementation on a GPU.
pub(super) fn backward_curves(rows: &[MeasuredKernel], gpu: &str, variant: &str) -> AttentionCurves {
    curves(rows, gpu, variant, measured_backward)
}

type Measured = fn(&[MeasuredKernel], &str, &str) -> AttentionCurves;

/// Curves that were measured, or that follow from measurements. Those of Triton follow by its ratio. Those of implementations measured only on the older GPU
/// follow from the speedup of the implementation of [`OLDER`] on this GPU.
fn curves(rows: &[MeasuredKernel], gpu: &str, variant: &str, measured: Measured) -> AttentionCurves {
    if variant == TRITON.0 {
        return measured(rows, gpu, TRITON.1).map(|_, _, _, value| Some(value * TRITON.2));
    }
    let own = measured(rows, gpu, variant);
    if !own.is_empty() {
        return own;
    }
    let (on_older, on_gpu) = (measured(rows, OLDER.0, OLDER.1), measured(rows, gpu, OLDER.1));
    measured(rows, OLDER.0, variant).map(|causal, d, s, value| {
        Some(value * on_gpu.ps_per_flop(causal, d, s)? / on_older.ps_per_flop(causal, d, s)?)
    })
}

/// Forward curves of an implementation. Rows of the forward direction count first, else combined measurements, divided as in [`DIVIDED`].
fn measured_forward(rows: &[MeasuredKernel], gpu: &str, variant: &str) -> AttentionCurves {
    let combined = AttentionCurves::collect(rows, gpu, Operation::Attention, variant);
    let known_forward = AttentionCurves::collect(rows, DIVIDED.0, Operation::AttentionForward, DIVIDED.1);
    let known_together = AttentionCurves::collect(rows, DIVIDED.0, Operation::Attention, DIVIDED.1);
    let divided = combined.map(|causal, d, s, value| {
        Some(value * known_forward.ps_per_flop(causal, d, s)? / known_together.ps_per_flop(causal, d, s)?)
    });
    divided.overlaid(AttentionCurves::collect(rows, gpu, Operation::AttentionForward, variant))
}

/// Backward curves of an implementation. They are the combined measurements minus the forward direction (3.5 = 1 + 2.5 times its FLOPs). If only forward was
/// measured, backward is as much faster than FlashAttention-2's backward as forward is.
fn measured_backward(rows: &[MeasuredKernel], gpu: &str, variant: &str) -> AttentionCurves {
    let forward = measured_forward(rows, gpu, variant);
    let backward_part = |rows: &[MeasuredKernel], gpu: &str, variant: &str| {
        let forward = measured_forward(rows, gpu, variant);
        let combined = AttentionCurves::collect(rows, gpu, Operation::Attention, variant);
        combined.map(|causal, d, s, value| Some((3.5 * value - forward.ps_per_flop(causal, d, s)?) / 2.5))
    };
    let (known_forward, known_backward) = (measured_forward(rows, gpu, DIVIDED.1), backward_part(rows, gpu, DIVIDED.1));
    let guessed = forward.map(|causal, d, s, value| {
        Some(value * known_backward.ps_per_flop(causal, d, s)? / known_forward.ps_per_flop(causal, d, s)?)
    });
    guessed.overlaid(backward_part(rows, gpu, variant)).overlaid(AttentionCurves::collect(
        rows,
        gpu,
        Operation::AttentionBackward,
        variant,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{Dtype, Kernel, Timing};
    use super::*;

    /// TFLOP/s of both directions at head size 128 with a causal mask.
    fn rate(gpu: &str, name: &str, seq: u64) -> Result<f64, Error> {
        let gpu = with_attention(Gpu::named(gpu)?, name)?;
        let timing = Timing::shared(&gpu);
        let kernel = |backward| Kernel::Attention {
            batch: 16,
            heads: 32,
            kv_heads: 32,
            seq_q: seq,
            seq_kv: seq,
            head_dim: 128,
            causal: true,
            backward,
            dtype: Dtype::Bf16,
        };
        let (forward, backward) = (kernel(false), kernel(true));
        Ok((forward.flops() + backward.flops()) as f64 / (timing.ps(&forward) + timing.ps(&backward)) as f64)
    }

    #[test]
    fn generations_have_their_published_rates() {
        // Labels of the published charts, at 8192 tokens.
        for (gpu, name, tflops) in [("a100", "flash1", 80.0), ("a100", "flash2", 182.0), ("h100", "flash2", 308.0)] {
            let rate = rate(gpu, name, 8192).unwrap();
            assert!((rate / tflops - 1.0).abs() < 0.01, "{gpu} {name}: {rate}");
        }
        let h100 = |name| rate("h100", name, 8192).unwrap();
        assert!((h100("flash2") / h100("triton") - 1.8).abs() < 0.01);
        assert!(h100("flash1") < h100("triton") && h100("flash2") < h100("cudnn") && h100("cudnn") < h100("flash3"));
        // A newer GPU has the implementations of the GPU that it is like.
        assert!(rate("b200", "flash2", 8192).unwrap() > 2.0 * h100("flash2"));
        // A GPU that is like another has the measured attention of that one. FP8 attention needs FP8 units.
        let own = |text: &str| Gpu::parse(&text.parse().unwrap());
        let of_gpu = |gpu: Gpu| {
            let timing = Timing::shared(&gpu);
            let kernel = |backward| Kernel::Attention {
                batch: 16,
                heads: 32,
                kv_heads: 32,
                seq_q: 8192,
                seq_kv: 8192,
                head_dim: 128,
                causal: true,
                backward,
                dtype: Dtype::Bf16,
            };
            timing.ps(&kernel(false)) + timing.ps(&kernel(true))
        };
        for (name, table) in
            [("h200", "like = \"h200\"\nname = \"mine\""), ("b200", "like = \"b200\"\nname = \"mine\"")]
        {
            assert_eq!(of_gpu(own(table).unwrap()), of_gpu(Gpu::named(name).unwrap()), "{name}");
        }
        assert!(rate("gb200", "cudnn-fp8", 8192).unwrap() > 1.1 * rate("gb200", "cudnn", 8192).unwrap());
        let without = own("like = \"b200\"\nname = \"narrow\"\nfp8_tflops = 0").unwrap();
        assert!(with_attention(without, "cudnn-fp8").is_err());
        let error = own("like = \"b200\"\nattention = \"garbage\"").unwrap_err().to_string();
        assert!(error.contains("FlashAttention-3, cuDNN would be right"), "{error}");
        let error = rate("a100", "cudnn", 8192).unwrap_err().to_string();
        assert!(error.contains("flash1, triton, flash2 were measured"), "{error}");
    }
}
