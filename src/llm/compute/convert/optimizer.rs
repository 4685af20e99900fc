//! The optimizer's step over one rank's parameters.

use crate::model::{Framework, Layout, Precision};

use super::super::Kernel;
use super::part::{KernelRole, LayerPart, Site};

/// Kernels of the step. `params` is the number of parameters that this rank computes gradients of. `shard` is the number that it updates (fewer with ZeRO or a
/// distributed optimizer).
///
/// Adam reads the gradient, the master weights and both moments. It writes all but the gradient, and the copy of the weights that is computed with. Before it,
/// the gradients' norm is read and gradients are clipped. After it, gradients are set to zero.
pub fn optimizer_kernels(params: u64, shard: u64, layout: &Layout) -> Vec<(LayerPart, Kernel)> {
    let (grads, state, copy) = (layout.bytes.grads as u64, layout.bytes.optimizer as u64, layout.bytes.params as u64);
    let part = LayerPart { site: Site::Optimizer, role: KernelRole::Forward };
    let mut kernels = Vec::new();
    let mut memory = |name, bytes| {
        if bytes > 0 {
            kernels.push((part, Kernel::Memory { name, bytes }));
        }
    };
    memory("gradient-norm", shard * grads);
    memory("gradient-clip", shard * 2 * grads);
    // If the weights themselves are FP32, the state has no copy of them.
    let mut adam = shard * (grads + 2 * state) + if copy < 4 { 0 } else { shard * 2 * copy };
    if !layout.fused_optimizer {
        // Weight decay; both moments are scaled and updated; root, quotient and sum of the denominator; the update (torch/optim/adamw.py, single tensors).
        adam = shard * (20 * state / 3 + 2 * grads);
    }
    memory("adam", adam);
    if copy < 4 {
        // Frameworks write the weights for computing in a separate pass.
        memory("weights-copy", shard * (4 + copy));
    }
    // Weights are converted once per iteration and kept in the orders that products read (Transformer Engine, which is told the first micro-batch). FP4 first
    // reads them to find the largest.
    let written = layout.orders_kept() * params * layout.precision.bytes_of_32() / 32;
    match layout.precision {
        Precision::Bf16 => {}
        Precision::Fp8 | Precision::Mxfp8 => memory("fp8-weight-cast", params * copy + written),
        Precision::Nvfp4 => memory("fp4-weight-cast", 2 * params * copy + written),
    }
    // PyTorch's optimizers free gradients instead.
    if layout.framework != Framework::Ddp && !layout.fsdp() {
        memory("zero-gradients", params * grads);
    }
    kernels
}
