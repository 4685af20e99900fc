//! What a training job runs on, as far as its graph and its analytic evaluation need to know.
//!
//! Layer: workload. Kernels are timed by `compute`, communication alone on an idle system by whoever implements [`CommCost`].

use super::placement::ServerSpan;
use crate::collective::CollectiveOp;
use crate::compute::Kernel;

/// Time of kernels on one GPU.
pub trait KernelCost {
    /// Duration in ps, launch included.
    fn kernel_ps(&self, kernel: &Kernel) -> u64;

    /// Duration in ps of a kernel of `ps` alone, `ratio` (0 to 1) of which has communication beside it.
    fn stretched_ps(&self, kernel: &Kernel, ps: u64, beside: CollectiveOp, bytes: u64, ratio: f64) -> u64;
}

/// Time of communication on an otherwise idle system.
pub trait CommCost {
    /// A collective, `bytes` as nccl-tests counts them, in ps.
    fn collective_ps(&self, op: CollectiveOp, bytes: u64, span: ServerSpan) -> u64;

    /// One message between two GPUs, in ps.
    fn message_ps(&self, bytes: u64, same_server: bool) -> u64;
}

/// GPUs and what joins them.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    pub kernels: &'a dyn KernelCost,
    pub comm: &'a dyn CommCost,
    pub gpus_per_server: u32,
    /// Bytes/s between a GPU and its host's memory, each direction; 0: activations are never put there.
    pub host_bps: u64,
    /// Time of the host for one operation of the framework, ps; 0: it keeps up.
    pub host_op_ps: u64,
    /// Peak FLOP/s of one GPU that mfu is held against; 0: unknown.
    pub peak_flops: u64,
}
