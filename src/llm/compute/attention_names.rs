//! Names of the implementations of fused attention, and what each multiplies.
//!
//! Layer: compute. Knows no GPU.

use super::Dtype;

/// Names of the implementations: the user's, and the database's.
pub(super) const NAMES: [(&str, &str); 7] = [
    ("flash1", "FlashAttention-1"),
    ("triton", "Triton"),
    ("flash2", "FlashAttention-2"),
    ("flash3", "FlashAttention-3"),
    ("cudnn", "cuDNN"),
    ("cudnn-fp8", "cuDNN-FP8"),
    ("cudnn-mxfp8", "cuDNN-MXFP8"),
];

/// Implementations in 16 bit, which a GPU's table may name. Those in FP8 are an option of the workload, which then adds conversions.
pub(super) fn named_in_tables() -> Vec<&'static str> {
    NAMES.iter().map(|n| n.1).filter(|variant| operands(variant) == Dtype::Bf16).collect()
}

/// The data type that an implementation multiplies.
pub(super) fn operands(variant: &str) -> Dtype {
    match variant {
        "cuDNN-FP8" => Dtype::Fp8,
        "cuDNN-MXFP8" => Dtype::Mxfp8,
        _ => Dtype::Bf16,
    }
}
