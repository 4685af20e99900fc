//! Facts about the machine for the graph of a training job and its analytic evaluation.
//!
//! Layer: workload. `compute` gives the times of kernels. An implementation of [`CommCost`] gives those of communication alone on an idle system.

use super::placement::ServerSpan;
use crate::collective::CollectiveOp;
use crate::compute::Kernel;

/// Times of kernels on one GPU.
pub trait KernelCost {
    /// Duration in ps of a kernel, launch included.
    fn kernel_ps(&self, kernel: &Kernel) -> u64;

    /// Duration in ps of a kernel that takes `ps` alone, if a share `ratio` (0 to 1) of it overlaps with a collective of this kind and size.
    fn stretched_ps(&self, kernel: &Kernel, ps: u64, comm_op: CollectiveOp, bytes: u64, ratio: f64) -> u64;
}

/// Times of communication on an otherwise idle system.
pub trait CommCost {
    /// Duration in ps of a collective. `bytes` is counted as in nccl-tests.
    fn collective_ps(&self, op: CollectiveOp, bytes: u64, span: ServerSpan) -> u64;

    /// Duration in ps of one message between two GPUs.
    fn message_ps(&self, bytes: u64, same_server: bool) -> u64;
}

/// GPUs and their interconnect, as cost models.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    /// Times of kernels.
    pub kernels: &'a dyn KernelCost,
    /// Times of communication.
    pub comm: &'a dyn CommCost,
    /// Number of GPUs of a server.
    pub gpus_per_server: u32,
    /// Bytes/s between a GPU and its host's memory in each direction; 0 if activations are never put there.
    pub host_bps: u64,
    /// Host time in ps for one operation of the framework; 0 if the host never delays the GPU.
    pub host_op_ps: u64,
    /// Peak FLOP/s of one GPU, the reference of mfu; 0 if unknown.
    pub peak_flops: u64,
}
