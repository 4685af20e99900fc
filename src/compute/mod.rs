//! Compute: kernels, what submodules become as kernels, and how long a kernel takes on a GPU: measured, else by a roofline.
//!
//! Layer: compute. Host-side floats through one libm; results are whole ps. Knows no parallel schedule, no network.

/// Data types of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dtype {
    Fp32,
    Tf32,
    Bf16,
    Fp16,
    Fp8,
}

/// One kernel, by what decides its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kernel {
    /// `batch` products of an m x k by a k x n matrix.
    Gemm { m: u64, n: u64, k: u64, batch: u64, dtype: Dtype },
    /// Fused attention (FlashAttention) of one layer on one rank.
    Attention { batch: u64, heads: u64, kv_heads: u64, seq_q: u64, seq_kv: u64, head_dim: u64, causal: bool, backward: bool, dtype: Dtype },
    /// Bound by memory: bytes read and written; `name` for the database ("layernorm", "gelu", "dropout-add", "softmax", "rope", "adam" ...).
    Memory { name: &'static str, bytes: u64 },
}
