//! The kernels with which FSDP's ranks copy and convert the parameters of a unit around its passes, besides gathering and reducing them.
//!
//! Part of compute. The workload decides when a unit is gathered.

use crate::model::{Framework, Layout};

use super::super::Kernel;

/// Kernels around the passes of a unit of `params` parameters, all of which are on this rank while they are gathered: (before a pass that gathers them, after a
/// backward pass). Both are empty if nothing is sharded.
///
/// - Flat parameters are gathered in place. Their gradient is assembled from the gradients of its views, converted to the type of the reduction, and divided before it (torch/distributed/fsdp/_runtime_utils.py: `_reduce_grad`, `_div_if_needed`).
/// - Single parameters are copied out of the gathered buffer, and their gradients into the reduction's buffer, with a conversion on the way (`_fsdp_collectives.py`: `foreach_all_gather_copy_out`, `foreach_reduce_scatter_copy_in`).
/// - From the second micro-batch on, shards of gradients are added in fp32. On a pipeline, gradients are added before they are sharded.
pub fn shard_kernels(params: u64, layout: &Layout) -> (Vec<Kernel>, Vec<Kernel>) {
    let ranks = layout.shards() as u64;
    if !layout.fsdp() || ranks == 1 || params == 0 {
        return (Vec::new(), Vec::new());
    }
    let (copy, reduced) = (layout.bytes.params as u64, layout.bytes.grads as u64);
    let convert = if reduced == copy { 0 } else { copy + reduced };
    let (gather, reduce) = match layout.framework {
        Framework::Fsdp2 => (2 * copy, copy + reduced),
        _ => (0, 2 * copy + convert + 2 * reduced),
    };
    let memory = |name, bytes: u64| if bytes > 0 { vec![Kernel::Memory { name, bytes }] } else { Vec::new() };
    let mut after = memory("gradient-to-shards", params * reduce);
    if layout.microbatches() > 1 && layout.pp == 1 {
        after.extend(memory("gradient-accumulate", params.div_ceil(ranks) * 12));
    }
    (memory("gather-copy", params * gather), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_generation_touches_what_its_code_does() {
        let layout = |framework| Layout { framework, zero: 3, dp: 8, global_batch: 8, ..Layout::one_gpu() };
        let bytes = |layout: &Layout| {
            let sum = |list: &[Kernel]| list.iter().map(Kernel::bytes).sum::<u128>();
            let (before, after) = shard_kernels(800, layout);
            (sum(&before), sum(&after))
        };
        // Views have 4, conversion 6, division 8 bytes per parameter; copies have 4 out and 6 in.
        assert_eq!(bytes(&layout(Framework::Fsdp)), (0, 800 * 18));
        assert_eq!(bytes(&layout(Framework::Fsdp2)), (800 * 4, 800 * 6));
        assert_eq!(bytes(&layout(Framework::Megatron)), (0, 0));
        // Two micro-batches add shards of an eighth.
        let twice = Layout { global_batch: 16, ..layout(Framework::Fsdp2) };
        assert_eq!(bytes(&twice), (800 * 4, 800 * 6 + 100 * 12));
        assert_eq!(bytes(&Layout { pp: 2, ..twice }), (800 * 4, 800 * 6));
        assert_eq!(bytes(&Layout { dp: 1, global_batch: 1, ..layout(Framework::Fsdp2) }), (0, 0));
    }
}
