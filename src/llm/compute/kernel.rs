//! Kernels by the parameters that determine their duration, and their floating-point operations and bytes.
//!
//! Layer: compute. Knows no GPU.

use std::fmt;
use std::str::FromStr;

use super::Error;
use crate::model::Precision;

/// Data types of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dtype {
    /// IEEE single precision.
    Fp32,
    /// TensorFloat-32: FP32's range with 10 bits of mantissa.
    Tf32,
    /// Number format bfloat16.
    Bf16,
    /// IEEE half precision.
    Fp16,
    /// FP8 with a scaling factor for a tensor.
    Fp8,
    /// FP8 with a scaling factor per 32 elements.
    Mxfp8,
    /// FP4 with a scaling factor per 16 elements.
    Nvfp4,
}

impl Dtype {
    /// All types in order.
    pub const ALL: [Dtype; 7] =
        [Dtype::Fp32, Dtype::Tf32, Dtype::Bf16, Dtype::Fp16, Dtype::Fp8, Dtype::Mxfp8, Dtype::Nvfp4];

    /// The type that linear layers multiply. `unquantised` is the activations' type.
    pub const fn of(precision: Precision, unquantised: Dtype) -> Dtype {
        match precision {
            Precision::Bf16 => unquantised,
            Precision::Fp8 => Dtype::Fp8,
            Precision::Mxfp8 => Dtype::Mxfp8,
            Precision::Nvfp4 => Dtype::Nvfp4,
        }
    }

    /// Bytes of 32 elements in memory, including their scaling factors.
    pub const fn bytes_of_32(self) -> u64 {
        match self {
            Dtype::Fp32 | Dtype::Tf32 => 128,
            Dtype::Bf16 | Dtype::Fp16 => Precision::Bf16.bytes_of_32(),
            Dtype::Fp8 => Precision::Fp8.bytes_of_32(),
            Dtype::Mxfp8 => Precision::Mxfp8.bytes_of_32(),
            Dtype::Nvfp4 => Precision::Nvfp4.bytes_of_32(),
        }
    }

    /// Bytes of one element, rounded up, without scaling factors.
    pub const fn bytes(self) -> u64 {
        match self {
            Dtype::Fp32 | Dtype::Tf32 => 4,
            Dtype::Bf16 | Dtype::Fp16 => 2,
            Dtype::Fp8 | Dtype::Mxfp8 | Dtype::Nvfp4 => 1,
        }
    }

    /// Name of the type in files.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::Fp32 => "fp32",
            Dtype::Tf32 => "tf32",
            Dtype::Bf16 => "bf16",
            Dtype::Fp16 => "fp16",
            Dtype::Fp8 => "fp8",
            Dtype::Mxfp8 => "mxfp8",
            Dtype::Nvfp4 => "nvfp4",
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dtype {
    type Err = Error;

    fn from_str(text: &str) -> Result<Dtype, Error> {
        Dtype::ALL.into_iter().find(|d| d.name() == text).ok_or_else(|| Error::Dtype { value: text.to_string() })
    }
}

/// One kernel, described by the parameters that determine its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kernel {
    /// `batch` products of an m x k by a k x n matrix. `kept` is the size in bytes of an element to which the result is added in place (gradients of weights
    /// over micro-batches), or 0 if the result is only written. With `apart` each product is a kernel of its own, one after the other; else all are one kernel.
    Gemm {
        /// Rows of the result.
        m: u64,
        /// Columns of the result.
        n: u64,
        /// Length of the sums.
        k: u64,
        /// Number of products.
        batch: u64,
        /// Bytes of an element of the sum that the result is added to, or 0.
        kept: u64,
        /// Whether each of the `batch` products is a kernel of its own.
        apart: bool,
        /// Type of the operands.
        dtype: Dtype,
    },
    /// Fused attention (FlashAttention) of one layer on one rank. `causal` halves the pairs of queries and keys, even if `seq_q` is a context-parallel share of
    /// `seq_kv`: ranks hold early and late pieces, so each has half of its rectangle. `head_dim` is the mean of the sizes of queries and values.
    Attention {
        /// Number of samples.
        batch: u64,
        /// Number of query heads.
        heads: u64,
        /// Number of key and value heads.
        kv_heads: u64,
        /// Number of queries of a sample.
        seq_q: u64,
        /// Number of keys of a sample.
        seq_kv: u64,
        /// Mean of the sizes of a head's queries and values.
        head_dim: u64,
        /// Whether queries see earlier keys only.
        causal: bool,
        /// Whether it is the backward kernel.
        backward: bool,
        /// Type of the operands.
        dtype: Dtype,
    },
    /// A kernel bound by memory. `bytes` are read and written; `name` is its name in the database ("layernorm", "gelu", "dropout-add", "softmax", "rope",
    /// "adam" ...).
    Memory {
        /// Name in the database.
        name: &'static str,
        /// Bytes that are read and written.
        bytes: u64,
    },
    /// A kernel known only by its totals (a convolution, a layer of a CNN).
    Work {
        /// Floating-point operations.
        flops: u64,
        /// Bytes that are read and written.
        bytes: u64,
        /// Type of the operands.
        dtype: Dtype,
    },
}

/// Class of a kernel by the resources that it uses, for the slowdown during communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Matrix products.
    Gemm,
    /// Fused attention.
    Attention,
    /// Kernels bound by memory.
    Memory,
}

impl Class {
    /// Name of the class in files.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Gemm => "gemm",
            Class::Attention => "attention",
            Class::Memory => "memory",
        }
    }
}

impl Kernel {
    /// A product of two matrices.
    pub const fn gemm(m: u64, n: u64, k: u64, dtype: Dtype) -> Kernel {
        Kernel::Gemm { m, n, k, batch: 1, kept: 0, apart: false, dtype }
    }

    /// Floating-point operations, counting 2 per multiply-add. Attention is counted as its authors do: 4 for each pair of query and key and element of the
    /// head, half of the pairs if causal, and 2.5 times that backward (five products instead of two). 0 for kernels bound by memory.
    pub fn flops(&self) -> u128 {
        match *self {
            Kernel::Gemm { m, n, k, batch, .. } => 2 * m as u128 * n as u128 * k as u128 * batch as u128,
            Kernel::Attention { batch, heads, seq_q, seq_kv, head_dim, causal, backward, .. } => {
                let forward = 4 * batch as u128 * heads as u128 * seq_q as u128 * seq_kv as u128 * head_dim as u128
                    / if causal { 2 } else { 1 };
                if backward { forward * 5 / 2 } else { forward }
            }
            Kernel::Memory { .. } => 0,
            Kernel::Work { flops, .. } => flops as u128,
        }
    }

    /// Minimum number of bytes that cross the memory interface: each operand once, each result once.
    pub fn bytes(&self) -> u128 {
        match *self {
            Kernel::Gemm { m, n, k, batch, dtype, .. } => {
                let (m, n, k) = (m as u128, n as u128, k as u128);
                batch as u128 * (m * k + k * n) * dtype.bytes_of_32() as u128 / 32 + self.result_bytes()
            }
            Kernel::Attention { batch, heads, kv_heads, seq_q, seq_kv, head_dim, backward, dtype, .. } => {
                let q = batch as u128 * heads as u128 * seq_q as u128 * head_dim as u128;
                let kv = 2 * batch as u128 * kv_heads as u128 * seq_kv as u128 * head_dim as u128;
                // Forward reads Q, K, V and writes O. Backward also reads these and dO, and writes dQ, dK, dV.
                let elements = if backward { 4 * q + 2 * kv } else { 2 * q + kv };
                elements * dtype.bytes().max(2) as u128
            }
            Kernel::Memory { bytes, .. } => bytes as u128,
            Kernel::Work { bytes, .. } => bytes as u128,
        }
    }

    /// Bytes that a matrix product reads and writes when its sums are complete: its result, and the matrix that it is added to. FP8 and FP4 products write
    /// 16-bit results. 0 for other kernels.
    pub fn result_bytes(&self) -> u128 {
        match *self {
            Kernel::Gemm { m, n, batch, kept, dtype, .. } => {
                let element = if kept > 0 { 2 * kept } else { dtype.bytes().max(2) };
                m as u128 * n as u128 * batch as u128 * element as u128
            }
            Kernel::Attention { .. } | Kernel::Memory { .. } | Kernel::Work { .. } => 0,
        }
    }

    /// Data type of the arithmetic; `None` for kernels bound by memory.
    pub fn dtype(&self) -> Option<Dtype> {
        match *self {
            Kernel::Gemm { dtype, .. } | Kernel::Attention { dtype, .. } | Kernel::Work { dtype, .. } => Some(dtype),
            Kernel::Memory { .. } => None,
        }
    }

    /// Class of the kernel.
    pub fn class(&self) -> Class {
        match self {
            Kernel::Gemm { .. } | Kernel::Work { .. } => Class::Gemm,
            Kernel::Attention { .. } => Class::Attention,
            Kernel::Memory { .. } => Class::Memory,
        }
    }
}
