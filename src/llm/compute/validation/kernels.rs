//! Validation of single kernels: fused and unfused attention, matrix products.

use super::{ComputeValidationRow, number, records};
use crate::compute::database::{MeasuredKernel, Operation, UserDatabase};
use crate::compute::{Dtype, Gpu, Kernel, Timing};

const FLASH: &str = include_str!("../../../../assets/reference/flash_attention_tflops.csv");
const MAMF: &str = include_str!("../../../../assets/reference/gemm_mamf.csv");
const POINTS: &str = include_str!("../../../../assets/reference/gemm_points.csv");
const SUSTAINED: &str = include_str!("../../../../assets/reference/azure_gemm_cublaslt.csv");

/// GPUs grouped by architecture: (name in `gemm_mamf`, name in the assets). The assets lack two of them.
const FAMILIES: [&[(&str, &str)]; 4] = [
    &[("A100 SXM", "a100-80g-sxm"), ("A100 PCIe", "a100-80g-pcie")],
    &[("H100 SXM", "h100-sxm"), ("H200 SXM", "h200-sxm"), ("GH200 SXM", "gh200"), ("GH200", "gh200")],
    &[("B200 SXM", "b200-sxm"), ("B300 SXM", "b300-sxm"), ("GB200", "gb200")],
    &[("MI300X", "mi300x"), ("MI325X", ""), ("MI355X", "")],
];

/// All rows of `flash_attention_tflops`, `gemm_mamf`, `gemm_points` and `azure_gemm_cublaslt`.
pub fn kernels() -> Vec<ComputeValidationRow> {
    let database = UserDatabase::shipped().rows.clone();
    let mut rows = attention(&database);
    rows.extend(mamf(&database));
    rows.extend(points(&database));
    rows.extend(sustained());
    rows
}

fn gpu(name: &str) -> Gpu {
    Gpu::named(name).expect("validation names GPUs of the assets")
}

fn attention(database: &[MeasuredKernel]) -> Vec<ComputeValidationRow> {
    records(FLASH).iter().map(|r| attention_row(database, r)).collect()
}

fn attention_row(database: &[MeasuredKernel], record: &[String]) -> ComputeValidationRow {
    let [gpu_label, implementation, mode, head_dim, causal, seq, tflops] = record else {
        panic!("flash_attention_tflops has seven columns")
    };
    let (causal, both) = (causal == "1", mode == "fwd+bwd");
    let [head_dim, seq] = [head_dim, seq].map(|t| number(t) as u64);
    let (batch, heads) = (16384 / seq, 2048 / head_dim);
    let fused = |backward| Kernel::Attention {
        batch,
        heads,
        kv_heads: heads,
        seq_q: seq,
        seq_kv: seq,
        head_dim,
        causal,
        backward,
        dtype: Dtype::Bf16,
    };
    let mut gpu = gpu(if gpu_label.starts_with("A100") { "a100" } else { "h100" });
    let flops = fused(false).flops() as f64 * if both { 3.5 } else { 1.0 };
    let (ps, note) = if implementation == "PyTorch standard" {
        let timing = Timing::from_rows(&gpu, database);
        (timing.total_ps(&unfused(batch, heads, seq, head_dim, causal)), "roofline: separate kernels")
    } else {
        gpu.attention = implementation.clone();
        let operation = if both { Operation::Attention } else { Operation::AttentionForward };
        let own = |m: &MeasuredKernel| {
            m.gpu == gpu.name && m.variant == *implementation && m.operation == operation && m.kernel == fused(false)
        };
        let rest: Vec<MeasuredKernel> = database.iter().filter(|m| !own(m)).cloned().collect();
        let timing = Timing::from_rows(&gpu, &rest);
        let kernels = if both { vec![fused(false), fused(true)] } else { vec![fused(false)] };
        (timing.total_ps(&kernels), "a row of the database, which is left out")
    };
    ComputeValidationRow {
        name: format!(
            "{gpu_label} {implementation} {mode} head {head_dim} {} seq {seq}",
            if causal { "causal" } else { "full" }
        ),
        unit: "TFLOP/s",
        measured: number(tflops),
        simulated: flops / ps as f64,
        note: note.to_string(),
    }
}

/// Attention as PyTorch computes it without a fused kernel, forward and backward, as in the charts' benchmark: products, mask (added as a matrix), softmax, and
/// dropout of probability 0. Queries, keys, values and the output are changed from token-major to head-major order, their gradients back and into one tensor.
fn unfused(batch: u64, heads: u64, seq: u64, head_dim: u64, causal: bool) -> Vec<Kernel> {
    let scores = batch * heads * seq * seq;
    let gemm = |m, n, k| Kernel::Gemm { m, n, k, batch: batch * heads, kept: 0, apart: false, dtype: Dtype::Bf16 };
    let memory = |name, bytes| Kernel::Memory { name, bytes };
    let mut kernels = vec![
        gemm(seq, seq, head_dim),
        memory("softmax", scores * 4),
        memory("dropout", scores * 5),
        gemm(seq, head_dim, seq),
    ];
    kernels.extend([
        gemm(seq, seq, head_dim),
        gemm(seq, head_dim, seq),
        memory("dropout-backward", scores * 5),
        memory("softmax-backward", scores * 6),
    ]);
    kernels.extend([gemm(seq, head_dim, seq), gemm(seq, head_dim, seq)]);
    let element = batch * heads * seq * head_dim * 2;
    kernels.extend([memory("transpose", element * 2); 8]);
    kernels.push(memory("stack", element * 6));
    if causal {
        kernels.push(memory("mask-add", scores * 4));
    }
    kernels
}

/// Rows whose GPU is in the assets. The sustained share of each GPU is that of the other GPUs of its family; its own row is left out.
fn mamf(database: &[MeasuredKernel]) -> Vec<ComputeValidationRow> {
    let records = records(MAMF);
    let share = |r: &[String]| number(&r[2]) / number(&r[3]);
    let mut rows = Vec::new();
    for r in &records {
        let dtype: Dtype = r[1].parse().expect("assets/reference is read by a test");
        let family =
            FAMILIES.iter().find(|f| f.iter().any(|g| g.0 == r[0])).expect("every GPU of the table has a family");
        let name = family.iter().find(|g| g.0 == r[0]).map_or("", |g| g.1);
        if name.is_empty() {
            continue;
        }
        let others: Vec<f64> = records
            .iter()
            .filter(|o| o[0] != r[0] && o[1] == r[1] && family.iter().any(|g| g.0 == o[0]))
            .map(|o| share(o))
            .collect();
        let mut gpu = gpu(name);
        gpu.sustained[dtype as usize] = others.iter().sum::<f64>() / others.len() as f64;
        let shape = if r[4].contains('x') { r[4].as_str() } else { "2048x2048x13312" };
        let sizes: Vec<u64> = shape.split('x').map(|t| number(t) as u64).collect();
        let kernel = Kernel::gemm(sizes[0], sizes[1], sizes[2], dtype);
        let rest: Vec<MeasuredKernel> =
            database.iter().filter(|m| m.gpu != gpu.name || m.kernel != kernel).cloned().collect();
        rows.push(ComputeValidationRow {
            name: format!("{} {dtype} {shape}", r[0]),
            unit: "TFLOP/s",
            measured: number(&r[2]),
            simulated: kernel.flops() as f64 / Timing::from_rows(&gpu, &rest).ps(&kernel) as f64,
            note: "a row of the database, which is left out; sustained share from its family".to_string(),
        });
    }
    rows
}

fn points(database: &[MeasuredKernel]) -> Vec<ComputeValidationRow> {
    let row = |r: &Vec<String>| {
        let gpu = gpu(&r[0]);
        let dtype = if r[1].contains("fp8") { Dtype::Fp8 } else { Dtype::Bf16 };
        let [m, n, k] = [2, 3, 4].map(|i| number(&r[i]) as u64);
        let kernel = Kernel::gemm(m, n, k, dtype);
        let rest: Vec<MeasuredKernel> =
            database.iter().filter(|m| m.gpu != gpu.name || m.kernel != kernel).cloned().collect();
        ComputeValidationRow {
            name: format!("{} {} {m}x{n}x{k}", r[0], r[1]),
            unit: "TFLOP/s",
            measured: number(&r[5]),
            simulated: kernel.flops() as f64 / Timing::from_rows(&gpu, &rest).ps(&kernel) as f64,
            note: "a row of the database, which is left out".to_string(),
        }
    };
    records(POINTS).iter().map(row).collect()
}

/// Products that ran for seconds before they were timed. No row of the database has one of their shapes.
fn sustained() -> Vec<ComputeValidationRow> {
    let row = |r: &Vec<String>| {
        let name = match r[0].as_str() {
            "A100-80GB SXM" => "a100-80g-sxm",
            "H100 SXM" => "h100-sxm",
            "H200" => "h200-sxm",
            other => other,
        };
        let dtype = match r[1].as_str() {
            "FP4" => Dtype::Nvfp4,
            "FP8" => Dtype::Fp8,
            _ => Dtype::Fp16,
        };
        let [m, n, k] = [2, 3, 4].map(|i| number(&r[i]) as u64);
        let kernel = Kernel::gemm(m, n, k, dtype);
        ComputeValidationRow {
            name: format!("{} cuBLASLt {} {m}x{n}x{k}", r[0], r[1]),
            unit: "TFLOP/s",
            measured: number(&r[5]),
            simulated: kernel.flops() as f64 / Timing::shared(&gpu(name)).sustained_ps(&kernel) as f64,
            note: "after 10,000 iterations: roofline, or the energy of its arithmetic at the board's power".to_string(),
        }
    };
    records(SUSTAINED).iter().map(row).collect()
}
