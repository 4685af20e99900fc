//! How a model is laid out over GPUs and trained: degrees of parallelism, schedule, what is recomputed, sharded, overlapped.

/// Whose habits the training follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framework {
    Megatron,
    DeepSpeed,
    /// PyTorch's fully sharded data parallel.
    Fsdp,
    /// PyTorch's distributed data parallel.
    Ddp,
}

/// What the backward pass computes again instead of keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recompute {
    None,
    /// The attention core.
    Selective,
    /// Everything from each layer's input.
    Full,
}

/// Order of micro-batches on a pipeline. Interleaving is `vpp > 1` with `OneFOneB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PipelineSchedule {
    GPipe,
    OneFOneB,
}

/// Bytes an element of each tensor takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementBytes {
    pub params: u32,
    pub grads: u32,
    pub activations: u32,
    /// Master weights and the optimizer's moments, all together (12: three in fp32).
    pub optimizer: u32,
}

/// A training configuration but for the machine. INVARIANT (checked by `Layout::check`, to be written in `model`): degrees are at least 1, `tp * pp * dp * cp` GPUs in all, `ep` divides
/// `dp * cp` (experts are spread over data-parallel ranks), layers divide by `pp * vpp`, heads by `tp`, `global_batch` by `dp * microbatch`.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    pub tp: u32,
    pub pp: u32,
    pub dp: u32,
    pub ep: u32,
    pub cp: u32,
    /// Virtual stages a pipeline rank holds.
    pub vpp: u32,
    /// Samples of one micro-batch; samples of one iteration over all data-parallel ranks.
    pub microbatch: u32,
    pub global_batch: u32,
    pub seq: u32,
    pub sequence_parallel: bool,
    pub schedule: PipelineSchedule,
    pub recompute: Recompute,
    /// ZeRO stage, 0 to 3; 1 is Megatron's distributed optimizer.
    pub zero: u8,
    pub framework: Framework,
    pub bytes: ElementBytes,
    /// Matrix products in FP8 (communication and activations stay as `bytes` says).
    pub fp8: bool,
    /// Fused attention, which keeps no s x s matrix.
    pub flash_attention: bool,
    /// Gradient reduction during the backward pass; parameter gathering during the next forward pass.
    pub overlap_grad: bool,
    pub overlap_param: bool,
    /// Tensor-parallel communication split and pipelined with its matrix product, in this many pieces; 1: not.
    pub tp_overlap_pieces: u32,
    /// Pipeline sends and receives on their own stream.
    pub overlap_p2p: bool,
    /// Bytes of one bucket of gradients (or gathered parameters).
    pub bucket_bytes: u64,
    /// How unevenly tokens choose experts: the busiest expert's load over the mean; 1: even.
    pub expert_skew: f64,
    /// Order in which ranks are numbered, fastest first, for example "tp-cp-ep-dp-pp".
    pub order: String,
}

impl Layout {
    /// GPUs in all.
    pub fn gpus(&self) -> u64 {
        self.tp as u64 * self.pp as u64 * self.dp as u64 * self.cp as u64
    }

    /// Micro-batches of one pipeline and iteration.
    pub fn microbatches(&self) -> u32 {
        self.global_batch / (self.dp * self.microbatch).max(1)
    }
}
