//! How a model is laid out over GPUs and trained: degrees of parallelism, schedule, what is recomputed, sharded, overlapped.

/// Whose habits the training follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framework {
    Megatron,
    DeepSpeed,
    /// PyTorch's fully sharded data parallel: the first generation, with one flat parameter a layer.
    Fsdp,
    /// Its second generation, `fully_shard`, with a shard of every parameter.
    Fsdp2,
    /// PyTorch's distributed data parallel.
    Ddp,
}

/// What the operands of linear layers' matrix products are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// The activations' own type.
    Bf16,
    /// FP8, one scaling factor a tensor.
    Fp8,
    /// FP8, one 8-bit scaling factor for 32 elements (OCP Microscaling Formats 1.0).
    Mxfp8,
    /// FP4, one FP8 scaling factor for 16 elements and one a tensor (arXiv 2509.25149, Section 2).
    Nvfp4,
}

impl Precision {
    /// Bytes of 32 elements with their scaling factors; 16-bit elements where nothing is quantised.
    pub const fn bytes_of_32(self) -> u64 {
        match self {
            Precision::Bf16 => 64,
            Precision::Fp8 => 32,
            Precision::Mxfp8 => 33,
            Precision::Nvfp4 => 18,
        }
    }
}

/// What the host launches as CUDA graphs, each of which takes it one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CudaGraph {
    None,
    /// Attention, norms and routers of each layer (Megatron's `cuda_graph_scope` of `attn`, `moe_router` and `moe_preprocess`).
    Attention,
    /// All of an iteration.
    Iteration,
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

/// A training configuration but for the machine. INVARIANT (`Layout::check`): degrees are at least 1, `tp * pp * dp * cp` GPUs in all, `ep` divides [`Layout::expert_ranks`],
/// every virtual stage but the first and the last has a layer ([`Layout::chunk_layers`]), heads divide by `tp`, `global_batch` by `dp * microbatch`.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    pub tp: u32,
    pub pp: u32,
    pub dp: u32,
    pub ep: u32,
    /// Tensor-parallel degree of routed experts: `tp`, or 1, which spreads experts over tensor-parallel ranks as well (Megatron-Core's parallel folding, arXiv 2504.14960).
    /// 0: `tp`.
    pub etp: u32,
    pub cp: u32,
    /// Virtual stages a pipeline rank holds.
    pub vpp: u32,
    /// Samples of one micro-batch; samples of one iteration over all data-parallel ranks.
    pub microbatch: u32,
    pub global_batch: u32,
    pub seq: u32,
    pub sequence_parallel: bool,
    pub schedule: PipelineSchedule,
    pub recompute: super::Recompute,
    /// Layers of each virtual stage, from its first, that `recompute` is about; the others keep everything (Megatron's `recompute_method` of `block`). 0: all.
    pub recompute_layers: u32,
    /// ZeRO stage, 0 to 3; 1 is Megatron's distributed optimizer.
    pub zero: u8,
    /// Ranks that share out one copy of FSDP's shards, neighbours in the order of ranks; other such groups hold copies (hybrid sharding). 0: all data-parallel ranks.
    pub shard_ranks: u32,
    pub framework: Framework,
    pub bytes: ElementBytes,
    /// Of matrix products in linear layers (communication and activations stay as `bytes` says).
    pub precision: Precision,
    /// Norms, gates and rotary embeddings are one kernel each; else the single operations of PyTorch's eager mode. Megatron has kernels of its own for them.
    pub compiled: bool,
    /// The kernels of activation functions convert what they produce for the next product, as engines that serve do; else a pass of its own does (Transformer Engine).
    pub fused_activation_cast: bool,
    /// The products of a rank's experts are one kernel, which has the activation function and the conversion of its results, too (Transformer Engine's fused grouped MLP).
    pub fused_grouped_mlp: bool,
    /// Megatron's rotary embedding is one kernel; else PyTorch's single operations.
    pub fused_rope: bool,
    /// Weights that the router gives a token's experts are in FP32; else in the activations' type.
    pub router_fp32: bool,
    /// Time of the host for one operation of the framework, ps; 0: graphs of kernels are launched as one. `None`: as the machine says.
    pub launch_ps: Option<u64>,
    pub cuda_graph: CudaGraph,
    /// Fused attention, which keeps no s x s matrix.
    pub flash_attention: bool,
    /// Its queries, keys and values are in FP8, converted before it; so are gradients of its results.
    pub fp8_attention: bool,
    /// The loss reads 16-bit logits and keeps nothing else of their size.
    pub fused_loss: bool,
    /// Metrics that compute the loss of every micro-batch's logits again.
    pub loss_metrics: u32,
    /// Gradient reduction during the backward pass; parameter gathering during the next forward pass.
    pub overlap_grad: bool,
    pub overlap_param: bool,
    /// Tensor-parallel communication split and pipelined with its matrix product, in this many pieces; 1: not.
    pub tp_overlap_pieces: u32,
    /// All-to-all of experts runs beside the computation of another micro-batch.
    pub overlap_ep: bool,
    /// Pipeline sends and receives on their own stream.
    pub overlap_p2p: bool,
    /// Without sequence parallelism every tensor-parallel rank has a stage's whole output. Megatron's first versions sent a share each and gathered it behind the network
    /// (Narayanan et al., Section 4.1); later ones send it whole.
    pub scatter_gather: bool,
    /// Tensor-parallel communication of the backward pass runs beside the gradients of weights.
    pub async_tp: bool,
    /// Matrix products add to the kept gradients; else kernels of their own do.
    pub fused_grad_accumulation: bool,
    /// Layers of a pipeline rank whose activations wait in the host's memory for the backward pass.
    pub offload_layers: u32,
    /// The optimizer's step is one kernel; else a loop of PyTorch's operations.
    pub fused_optimizer: bool,
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

    /// Layers of each virtual stage, in the model's order; stage `c` of them is on pipeline rank `c % pp`. Equal where `pp * vpp` divides the layers. Else the
    /// last and the first hold one less, then the ones next to them, and so on: the ends have the output matrix and the embedding to do as well (Llama 3 405B
    /// trains its 126 layers on 16 ranks that way). So there may be two stages more than layers: the first has the embedding alone then, and the last the output matrix, as with
    /// Megatron's `account_for_embedding_in_pipeline_split` and `account_for_loss_in_pipeline_split`.
    /// The `mtp` modules that predict further tokens are all on the last stage, where each counts as two layers: its own and its logits.
    pub fn chunk_layers(&self, layers: u32, mtp: u32) -> Vec<u32> {
        let chunks = (self.pp * self.vpp).max(1);
        let each = if layers.div_ceil(chunks) > 1 { 2 } else { 1 };
        let mut behind = each * mtp;
        let all = layers + behind;
        let most = all.div_ceil(chunks);
        let mut counts = vec![most; chunks as usize];
        for k in 0..most * chunks - all {
            let at = if k.is_multiple_of(2) { chunks - 1 - k / 2 } else { k / 2 };
            counts[at as usize] -= 1;
        }
        for count in counts.iter_mut().rev() {
            let taken = behind.min(*count);
            (*count, behind) = (*count - taken, behind - taken);
        }
        counts
    }

    /// Of a virtual stage's `layers`, how many `recompute` is about: the first ones.
    pub fn recomputed_of(&self, layers: u32) -> u32 {
        if self.recompute_layers == 0 { layers } else { layers.min(self.recompute_layers) }
    }

    /// One GPU and one sample at a time, in Megatron's mixed precision, nothing recomputed, sharded or overlapped: what other layouts are changes of.
    pub fn one_gpu() -> Layout {
        Layout {
            tp: 1,
            pp: 1,
            dp: 1,
            ep: 1,
            etp: 0,
            cp: 1,
            vpp: 1,
            microbatch: 1,
            global_batch: 1,
            seq: 2048,
            sequence_parallel: false,
            schedule: PipelineSchedule::OneFOneB,
            recompute: super::Recompute::None,
            recompute_layers: 0,
            zero: 0,
            shard_ranks: 0,
            framework: Framework::Megatron,
            bytes: ElementBytes { params: 2, grads: 4, activations: 2, optimizer: 12 },
            precision: Precision::Bf16,
            compiled: true,
            fused_activation_cast: false,
            fused_grouped_mlp: false,
            fused_rope: true,
            router_fp32: false,
            launch_ps: None,
            cuda_graph: CudaGraph::None,
            flash_attention: false,
            fp8_attention: false,
            fused_loss: false,
            loss_metrics: 0,
            overlap_grad: false,
            overlap_param: false,
            tp_overlap_pieces: 1,
            overlap_ep: false,
            overlap_p2p: false,
            scatter_gather: false,
            async_tp: true,
            fused_grad_accumulation: true,
            offload_layers: 0,
            fused_optimizer: true,
            bucket_bytes: 25 << 20,
            expert_skew: 1.0,
            order: "tp-cp-ep-dp-pp".to_string(),
        }
    }

    /// Linear layers multiply fewer bits than activations have.
    pub fn quantised(&self) -> bool {
        self.precision != Precision::Bf16
    }

    /// Operations between matrix products are PyTorch's single ones.
    pub fn eager(&self) -> bool {
        !self.compiled && self.framework != Framework::Megatron
    }

    /// PyTorch's FSDP, of either generation.
    pub fn fsdp(&self) -> bool {
        matches!(self.framework, Framework::Fsdp | Framework::Fsdp2)
    }

    /// Ranks that hold the same dense parameters and share their optimizer state under ZeRO.
    pub fn dense_replicas(&self) -> u32 {
        self.dp * self.cp
    }

    /// Ranks over which FSDP shards parameters: fewer than hold the same where sharding is hybrid.
    pub fn shards(&self) -> u32 {
        if self.fsdp() && self.shard_ranks > 0 { self.shard_ranks } else { self.dense_replicas() }
    }

    /// Shards are copied over groups of ranks.
    pub fn hybrid(&self) -> bool {
        self.shards() < self.dense_replicas()
    }

    /// The same for routed experts.
    pub fn expert_replicas(&self) -> u32 {
        self.expert_ranks() / self.ep
    }

    /// Tensor-parallel degree of routed experts.
    pub fn expert_tp(&self) -> u32 {
        if self.etp == 0 { self.tp } else { self.etp }
    }

    /// Experts are spread over tensor-parallel ranks, too.
    pub fn folded_experts(&self) -> bool {
        self.expert_tp() != self.tp
    }

    /// Ranks of a stage over which the experts, or one slice of each, are spread and copied.
    pub fn expert_ranks(&self) -> u32 {
        self.dp * self.cp * (self.tp / self.expert_tp())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One GPU, one sample; tests change what they are about.
    pub(crate) fn layout() -> Layout {
        Layout::one_gpu()
    }

    #[test]
    fn layers_that_do_not_divide_leave_the_ends_lighter() {
        let with = |pp, vpp, layers, mtp| Layout { pp, vpp, ..layout() }.chunk_layers(layers, mtp);
        let of = |pp, vpp, layers| with(pp, vpp, layers, 0);
        assert_eq!(of(4, 2, 40), [5; 8]);
        assert_eq!(of(4, 1, 14), [3, 4, 4, 3]);
        assert_eq!(of(4, 1, 5), [1, 2, 1, 1]);
        // The embedding and the loss alone; DeepSeek-V3's 61 layers and its module, as Megatron-Bridge places them.
        assert_eq!(of(4, 2, 6), [0, 1, 1, 1, 1, 1, 1, 0]);
        assert_eq!(with(4, 4, 61, 1), [[4; 15].as_slice(), &[1]].concat());
        assert_eq!(with(1, 1, 61, 1), [61]);
        assert_eq!(with(4, 1, 4, 1).iter().sum::<u32>(), 4);
        for (pp, vpp, layers) in [(16, 1, 126), (64, 1, 96), (16, 1, 61), (7, 3, 64)] {
            let chunks = of(pp, vpp, layers);
            assert_eq!(chunks.iter().sum::<u32>(), layers);
            assert!(chunks.iter().all(|&n| n >= layers / (pp * vpp)));
        }
    }
}
