//! Parameters of the estimate that neither the model nor its layout gives.
//!
//! Layer: memory.

/// Memory of the runtime and of libraries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryOptions {
    /// Number of channels of each NCCL communicator. 16: our choice, NCCL's default on servers with eight NICs.
    pub nccl_channels: u32,
    /// Bytes of buffers of one channel. NCCL 2.30.7: 4 MiB for Simple, 512 KiB for LL, 4,915,200 for LL128 (`NCCL_BUFFSIZE` and similar variables).
    pub nccl_channel_bytes: u64,
    /// Bytes of the CUDA context, loaded kernels and library workspaces. 1 GiB: our choice.
    pub context_bytes: u64,
    /// Memory that the caching allocator cannot use, as a share of activations and working memory (which are allocated and freed all the time). 0.05: our choice.
    pub fragmentation: f64,
    /// Whether each stage's output is kept until its backward pass instead of being dropped when it is sent (Megatron-LM's `--no-deallocate-pipeline-outputs`).
    pub keep_stage_outputs: bool,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        MemoryOptions {
            nccl_channels: 16,
            nccl_channel_bytes: (4 << 20) + (512 << 10) + 4_915_200,
            context_bytes: 1 << 30,
            fragmentation: 0.05,
            keep_stage_outputs: false,
        }
    }
}

impl MemoryOptions {
    /// Bytes lost to fragmentation, given `dynamic` bytes that are allocated and freed.
    pub(super) fn fragmented(&self, dynamic: u64) -> u64 {
        (dynamic as f64 * self.fragmentation) as u64
    }
}
