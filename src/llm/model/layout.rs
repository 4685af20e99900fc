//! The layout of a model over GPUs and of its training: degrees of parallelism, schedule, and what is recomputed, sharded and overlapped.

use crate::collective::ExpertDispatcher;

/// The framework whose behaviour the training follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framework {
    /// Megatron-LM and Megatron Core.
    Megatron,
    /// DeepSpeed, with or without ZeRO.
    DeepSpeed,
    /// PyTorch's fully sharded data parallel: the first generation, with one flat parameter a layer.
    Fsdp,
    /// The second generation, `fully_shard`, with a shard of every parameter.
    Fsdp2,
    /// PyTorch's distributed data parallel.
    Ddp,
}

impl Framework {
    /// Name of the framework in files.
    pub const fn name(self) -> &'static str {
        match self {
            Framework::Megatron => "megatron",
            Framework::DeepSpeed => "deepspeed",
            Framework::Fsdp => "fsdp",
            Framework::Fsdp2 => "fsdp2",
            Framework::Ddp => "ddp",
        }
    }
}

/// The type of the operands of linear layers' matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// The activations' own type.
    Bf16,
    /// FP8 with one scaling factor per tensor.
    Fp8,
    /// FP8 with one 8-bit scaling factor per 32 elements (OCP Microscaling Formats 1.0).
    Mxfp8,
    /// FP4 with one FP8 scaling factor per 16 elements and one per tensor (arXiv 2509.25149, Section 2).
    Nvfp4,
}

impl Precision {
    /// Bytes of 32 elements including their scaling factors; 16-bit elements if nothing is quantised.
    pub const fn bytes_of_32(self) -> u64 {
        match self {
            Precision::Bf16 => 64,
            Precision::Fp8 => 32,
            Precision::Mxfp8 => 33,
            Precision::Nvfp4 => 18,
        }
    }
}

/// What the scaling factors of FP8 with one factor per tensor come from, in Transformer Engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fp8Scaling {
    /// The largest elements of earlier passes. All ranks of a pipeline stage agree on them after every pass.
    Delayed,
    /// The largest elements of earlier passes. Tensor- and context-parallel ranks alone agree on them (Megatron's `tp_only_amax_red`).
    DelayedTensor,
    /// The tensor as it is, which is read once more for its largest element. Ranks that gather a tensor agree on it before.
    Current,
}

/// The part that the host launches as CUDA graphs. A graph takes the host one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CudaGraph {
    /// Nothing: each kernel is launched by itself.
    None,
    /// Attention, norms and routers of each layer (Megatron's `cuda_graph_scope` of `attn`, `moe_router` and `moe_preprocess`).
    Attention,
    /// A whole iteration.
    Iteration,
}

/// Order of micro-batches on a pipeline. Interleaving is `OneFOneB` with `vpp > 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PipelineSchedule {
    /// All forwards, then all backwards.
    GPipe,
    /// One forward, one backward (1F1B).
    OneFOneB,
    /// ZB-H1: 1F1B whose backward passes are split, with the memory of 1F1B (Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241).
    ZbH1,
    /// V-ZB: split backward passes and two virtual stages a rank in the shape of a V, with the memory of 1F1B (Qi et al., "Pipeline Parallelism with
    /// Controllable Memory", arXiv 2405.15362).
    ZbV,
    /// V-Half of the same paper: about half of the memory of 1F1B.
    VHalf,
    /// V-Min of the same paper: about a third of the memory of 1F1B.
    VMin,
    /// DualPipe: micro-batches from both ends, two copies of the parameters (DeepSeek-V3, arXiv 2412.19437).
    DualPipe,
}

impl PipelineSchedule {
    /// Name of the schedule in files.
    pub const fn name(self) -> &'static str {
        match self {
            PipelineSchedule::GPipe => "gpipe",
            PipelineSchedule::OneFOneB => "1f1b",
            PipelineSchedule::ZbH1 => "zb-h1",
            PipelineSchedule::ZbV => "zb-v",
            PipelineSchedule::VHalf => "v-half",
            PipelineSchedule::VMin => "v-min",
            PipelineSchedule::DualPipe => "dualpipe",
        }
    }

    /// Whether backward passes, or some of them, are two: gradients of inputs, and later gradients of weights.
    pub const fn splits_backward(self) -> bool {
        !matches!(self, PipelineSchedule::GPipe | PipelineSchedule::OneFOneB)
    }

    /// Whether the second virtual stages of the ranks follow each other in the opposite order, so that the first rank has both ends of the model.
    pub const fn is_v_shaped(self) -> bool {
        matches!(self, PipelineSchedule::ZbV | PipelineSchedule::VHalf | PipelineSchedule::VMin) || self.is_fed_twice()
    }

    /// Whether the second virtual stages are a pipeline of their own, with copies of the first ones' layers and half of the micro-batches.
    pub const fn is_fed_twice(self) -> bool {
        matches!(self, PipelineSchedule::DualPipe)
    }
}

/// Bytes per element of each tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementBytes {
    /// Parameters in computation.
    pub params: u32,
    /// Gradients that a rank accumulates.
    pub grads: u32,
    /// Activations, and messages that carry them.
    pub activations: u32,
    /// Master weights and the optimizer's moments together (12: three in fp32).
    pub optimizer: u32,
}

/// How far ahead sharded parameters are gathered, and how long they stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Number of FSDP's units that are gathered before they are needed.
    pub units_ahead: u32,
    /// Number of layers of one of FSDP's units.
    pub unit_layers: u32,
    /// DeepSpeed prefetches until so many parameters are requested (`stage3_prefetch_bucket_size`).
    pub prefetch_params: u64,
    /// DeepSpeed does not prefetch while so many parameters are gathered (`stage3_max_live_parameters`).
    pub live_params: u64,
    /// DeepSpeed keeps parameters that are used again before so many others (`stage3_max_reuse_distance`).
    pub reuse_params: u64,
    /// Whether DeepSpeed's collectives of ZeRO-3 take lists of tensors, one a rank. The host makes them while the GPU waits.
    pub lists: bool,
}

impl Gathering {
    /// What frameworks do unless told otherwise.
    pub const DEFAULT: Gathering = Gathering {
        units_ahead: 1,
        unit_layers: 1,
        prefetch_params: 50_000_000,
        live_params: 1_000_000_000,
        reuse_params: 1_000_000_000,
        lists: false,
    };
}

/// A training configuration without the machine. INVARIANT (`Layout::check`): degrees are at least 1; there are `tp * pp * dp * cp` GPUs; `ep` divides
/// [`Layout::expert_ranks`]; every virtual stage except the first and the last has a layer ([`Layout::chunk_layers`]); `tp` divides the heads; `dp *
/// microbatch` divides `global_batch`.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Tensor-parallel degree.
    pub tp: u32,
    /// Pipeline stages.
    pub pp: u32,
    /// Data-parallel degree.
    pub dp: u32,
    /// Expert-parallel degree.
    pub ep: u32,
    /// Tensor-parallel degree of routed experts: `tp`, or 1, which also spreads experts over tensor-parallel ranks (Megatron-Core's parallel folding, arXiv
    /// 2504.14960). 0 stands for `tp`.
    pub etp: u32,
    /// Context-parallel degree.
    pub cp: u32,
    /// Number of virtual stages per pipeline rank.
    pub vpp: u32,
    /// Samples of one micro-batch.
    pub microbatch: u32,
    /// Samples of one iteration over all data-parallel ranks.
    pub global_batch: u32,
    /// Tokens of a sample.
    pub seq: u32,
    /// Whether activations between tensor-parallel parts are split by sequence too.
    pub sequence_parallel: bool,
    /// Order of micro-batches on the pipeline.
    pub schedule: PipelineSchedule,
    /// The parts of a layer that are computed again.
    pub recompute: super::Recompute,
    /// Number of layers of each virtual stage, from its first, that `recompute` applies to; the others keep everything (Megatron's `recompute_method` of
    /// `block`). 0 stands for all.
    pub recompute_layers: u32,
    /// ZeRO stage, 0 to 3; stage 1 is Megatron's distributed optimizer.
    pub zero: u8,
    /// Number of ranks that share one copy of FSDP's shards, consecutive in the order of ranks. Other such groups hold copies (hybrid sharding). 0 stands for
    /// all data-parallel ranks.
    pub shard_ranks: u32,
    /// Framework whose behaviour is followed.
    pub framework: Framework,
    /// Bytes of elements.
    pub bytes: ElementBytes,
    /// Precision of matrix products in linear layers. Activations follow `bytes`, and so does communication, but for operands that tensor-parallel ranks gather.
    pub precision: Precision,
    /// What scaling factors come from, if `precision` has one per tensor.
    pub fp8_scaling: Fp8Scaling,
    /// Whether the GPU's products take FP8 operands in either order, so that operands with one factor a tensor are kept in one.
    pub fp8_any_order: bool,
    /// Whether norms, gates and rotary embeddings are one kernel each. Otherwise they are the single operations of PyTorch's eager mode. Megatron has its own
    /// kernels for them.
    pub compiled: bool,
    /// Whether the kernels of activation functions convert their results for the next product, as serving engines do. Otherwise a separate pass converts
    /// (Transformer Engine).
    pub fused_activation_cast: bool,
    /// Whether the products of a rank's experts are one kernel that also includes the activation function and the conversion of its results (Transformer
    /// Engine's fused grouped MLP).
    pub fused_grouped_mlp: bool,
    /// Whether a kernel each writes and sums the copies of tokens that go to experts. Otherwise PyTorch's single operations do.
    pub fused_permute: bool,
    /// Whether Megatron's rotary embedding is one kernel. Otherwise it is PyTorch's single operations.
    pub fused_rope: bool,
    /// Whether the router's weights of a token's experts are in FP32. Otherwise they have the activations' type.
    pub router_fp32: bool,
    /// The kernels that exchange tokens with experts; `None`: NCCL's all-to-all.
    pub expert_dispatcher: Option<ExpertDispatcher>,
    /// Time in ps of the host for one operation of the framework; 0 if graphs of kernels are launched as one; `None` if the machine decides.
    pub launch_ps: Option<u64>,
    /// The parts that the host launches as CUDA graphs.
    pub cuda_graph: CudaGraph,
    /// Whether attention is fused, so that it keeps no s x s matrix.
    pub flash_attention: bool,
    /// Whether fused attention removes padding from queries, keys and values, and puts it back into its results, in each layer.
    pub unpad_attention: bool,
    /// Whether the queries, keys and values of fused attention are converted to FP8, and so are gradients of its results.
    pub fp8_attention: bool,
    /// Whether the loss reads 16-bit logits and keeps nothing else of their size.
    pub fused_loss: bool,
    /// Number of metrics that compute the loss of every micro-batch's logits again.
    pub loss_metrics: u32,
    /// Whether gradients are reduced during the backward pass.
    pub overlap_grad: bool,
    /// Whether the stages of Megatron's pipelines reduce gradients at the same time, if that overlaps with backward passes.
    pub align_grad_reduce: bool,
    /// Whether the last stage computes the gradients of the output matrix after all other passes, while the pipeline drains.
    pub defer_embedding_wgrad: bool,
    /// Whether parameters are gathered during the next forward pass.
    pub overlap_param: bool,
    /// Number of pieces in which tensor-parallel communication is pipelined with its matrix product; 1 if it is not.
    pub tp_overlap_pieces: u32,
    /// Whether the all-to-all of experts overlaps with the computation of another micro-batch.
    pub overlap_ep: bool,
    /// Whether the experts that every token visits are computed while tokens come back from the others. Otherwise they are computed afterwards.
    pub overlap_shared_experts: bool,
    /// Whether pipeline sends and receives have a stream of their own.
    pub overlap_p2p: bool,
    /// Whether each tensor-parallel rank sends only a share of a stage's output, which is gathered after the network. Without sequence parallelism every such
    /// rank has the whole output. Megatron's first versions sent shares (Narayanan et al., Section 4.1); later ones send it whole.
    pub scatter_gather: bool,
    /// Whether tensor-parallel communication of the backward pass overlaps with the gradients of weights.
    pub async_tp: bool,
    /// Whether matrix products add to the accumulated gradients. Otherwise separate kernels do.
    pub fused_grad_accumulation: bool,
    /// Number of layers of a pipeline rank whose activations stay in the host's memory until the backward pass.
    pub offload_layers: u32,
    /// Whether the optimizer's step is one kernel. Otherwise it is a loop of PyTorch's operations.
    pub fused_optimizer: bool,
    /// Bytes of one bucket of gradients (or gathered parameters).
    pub bucket_bytes: u64,
    /// How far ahead sharded parameters are gathered.
    pub gathering: Gathering,
    /// How unevenly tokens choose experts: the busiest expert's load divided by the mean; 1 is even.
    pub expert_skew: f64,
    /// Order in which ranks are numbered, fastest dimension first, for example "tp-cp-ep-dp-pp".
    pub order: String,
}

impl Layout {
    /// Number of GPUs.
    pub fn gpus(&self) -> u64 {
        self.tp as u64 * self.pp as u64 * self.dp as u64 * self.cp as u64
    }

    /// Number of micro-batches per pipeline and iteration.
    pub fn microbatches(&self) -> u32 {
        self.global_batch / (self.dp * self.microbatch).max(1)
    }

    /// The virtual stage, counted in the model's order, that is number `chunk` of pipeline rank `rank`.
    pub fn virtual_stage(&self, rank: u32, chunk: u32) -> u32 {
        match self.schedule.is_v_shaped() && chunk == 1 {
            true => 2 * self.pp - 1 - rank,
            false => chunk * self.pp + rank,
        }
    }

    /// The pipeline rank of a virtual stage.
    pub fn rank_of_stage(&self, stage: u32) -> u32 {
        match self.schedule.is_v_shaped() && stage >= self.pp {
            true => 2 * self.pp - 1 - stage,
            false => stage % self.pp,
        }
    }

    /// Number of virtual stages that one micro-batch passes.
    pub fn stages_of_microbatch(&self) -> u32 {
        if self.schedule.is_fed_twice() { self.pp } else { self.pp * self.vpp.max(1) }
    }

    /// Number of micro-batches that pass a virtual stage.
    pub fn passes_of_chunk(&self) -> u32 {
        if self.schedule.is_fed_twice() { self.microbatches() / 2 } else { self.microbatches() }
    }

    /// The virtual stage before another one on the way of a micro-batch.
    pub fn stage_before(&self, stage: u32) -> Option<u32> {
        (!stage.is_multiple_of(self.stages_of_microbatch())).then(|| stage - 1)
    }

    /// The virtual stage after another one on the way of a micro-batch.
    pub fn stage_after(&self, stage: u32) -> Option<u32> {
        (!(stage + 1).is_multiple_of(self.stages_of_microbatch())).then(|| stage + 1)
    }

    /// A rank's virtual stages in an order that ranks with copies of each other share: by their layers.
    pub fn chunks_by_layers(&self, rank: u32) -> Vec<u32> {
        let mut chunks: Vec<u32> = (0..self.vpp.max(1)).collect();
        if self.schedule.is_fed_twice() {
            chunks.sort_by_key(|&chunk| self.virtual_stage(rank, chunk) % self.pp);
        }
        chunks
    }

    /// Whether a pipeline rank computes gradients of the output matrix after all other passes.
    pub fn defers_on(&self, rank: u32) -> bool {
        self.defer_embedding_wgrad && rank + 1 == self.pp
    }

    /// Whether one rank has both the embedding and the output matrix.
    pub fn ends_on_one_rank(&self) -> bool {
        self.pp == 1 || self.schedule.is_v_shaped()
    }

    /// Number of layers of each virtual stage, in the model's order; [`Layout::rank_of_stage`] has their ranks.
    ///
    /// They are equal if `pp * vpp` divides the layers. Otherwise the last and the first stage have one layer less, then the ones next to them, and so on,
    /// because the ends also have the output matrix and the embedding (Llama 3 405B trains its 126 layers on 16 ranks that way). So there may be two stages
    /// more than layers. Then the first has only the embedding and the last only the output matrix, as with Megatron's
    /// `account_for_embedding_in_pipeline_split` and `account_for_loss_in_pipeline_split`.
    ///
    /// The `mtp` modules that predict further tokens are all on the last stage. Each counts as two layers there: its own and its logits.
    pub fn chunk_layers(&self, layers: u32, mtp: u32) -> Vec<u32> {
        if self.schedule.is_fed_twice() {
            let once = Layout { schedule: PipelineSchedule::OneFOneB, vpp: 1, ..self.clone() };
            return once.chunk_layers(layers, mtp).repeat(2);
        }
        let chunks = (self.pp * self.vpp).max(1);
        let layers_per_module = if layers.div_ceil(chunks) > 1 { 2 } else { 1 };
        let mut module_layers = layers_per_module * mtp;
        let all = layers + module_layers;
        let max_layers = all.div_ceil(chunks);
        let mut counts = vec![max_layers; chunks as usize];
        for k in 0..max_layers * chunks - all {
            let chunk = if k.is_multiple_of(2) { chunks - 1 - k / 2 } else { k / 2 };
            counts[chunk as usize] -= 1;
        }
        for count in counts.iter_mut().rev() {
            let taken = module_layers.min(*count);
            (*count, module_layers) = (*count - taken, module_layers - taken);
        }
        counts
    }

    /// Whether the norm before attention, and the norm before the feed-forward part, are separate kernels whose results are kept. Megatron fuses a norm with
    /// the product after it if there is one such product. There is not before latent attention, which has two, nor before experts and their router.
    pub fn norms_alone(&self, model: &super::Transformer, moe: bool) -> [bool; 2] {
        let separate = self.framework != Framework::Megatron;
        [separate || model.mla.is_some(), separate || moe]
    }

    /// How many of a virtual stage's `layers` layers `recompute` applies to; they are the first ones.
    pub fn recomputed_of(&self, layers: u32) -> u32 {
        if self.recompute_layers == 0 { layers } else { layers.min(self.recompute_layers) }
    }

    /// One GPU and one sample at a time, in Megatron's mixed precision, with nothing recomputed, sharded or overlapped. Other layouts are changes of this one.
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
            fp8_scaling: Fp8Scaling::Delayed,
            fp8_any_order: false,
            compiled: true,
            fused_activation_cast: false,
            fused_grouped_mlp: false,
            fused_permute: true,
            fused_rope: true,
            router_fp32: false,
            expert_dispatcher: None,
            launch_ps: None,
            cuda_graph: CudaGraph::None,
            flash_attention: false,
            unpad_attention: false,
            fp8_attention: false,
            fused_loss: false,
            loss_metrics: 0,
            overlap_grad: false,
            align_grad_reduce: true,
            defer_embedding_wgrad: false,
            overlap_param: false,
            tp_overlap_pieces: 1,
            overlap_ep: false,
            overlap_shared_experts: false,
            overlap_p2p: false,
            scatter_gather: false,
            async_tp: true,
            fused_grad_accumulation: true,
            offload_layers: 0,
            fused_optimizer: true,
            bucket_bytes: 25 << 20,
            gathering: Gathering::DEFAULT,
            expert_skew: 1.0,
            order: "tp-cp-ep-dp-pp".to_string(),
        }
    }

    /// Whether linear layers multiply fewer bits than activations have.
    pub fn quantised(&self) -> bool {
        self.precision != Precision::Bf16
    }

    /// Number of orders in which a converted operand is kept for the forward and the backward product: 2, or 1 where products take FP8 in either.
    pub fn orders_kept(&self) -> u64 {
        if self.precision == Precision::Fp8 && self.fp8_any_order { 1 } else { 2 }
    }

    /// The ranks that agree on the largest elements of FP8 tensors after each pass of a virtual stage, as (tensor-parallel, context-parallel, data-parallel)
    /// degrees. `None` if none do.
    pub fn scaling_ranks(&self) -> Option<[u32; 3]> {
        if self.precision != Precision::Fp8 || self.framework != Framework::Megatron {
            return None;
        }
        match self.fp8_scaling {
            Fp8Scaling::Delayed => Some([self.tp, self.cp, self.dp]),
            Fp8Scaling::DelayedTensor => Some([self.tp, self.cp, 1]),
            Fp8Scaling::Current => None,
        }
    }

    /// Whether operations between matrix products are PyTorch's single ones.
    pub fn eager(&self) -> bool {
        !self.compiled && self.framework != Framework::Megatron
    }

    /// Whether the framework is PyTorch's FSDP, of either generation.
    pub fn fsdp(&self) -> bool {
        matches!(self.framework, Framework::Fsdp | Framework::Fsdp2)
    }

    /// Number of ranks that hold the same dense parameters and share their optimizer state under ZeRO.
    pub fn dense_replicas(&self) -> u32 {
        self.dp * self.cp * self.copies_in_pipeline()
    }

    /// Number of copies of the parameters in one pipeline.
    pub fn copies_in_pipeline(&self) -> u32 {
        if self.schedule.is_fed_twice() { 2 } else { 1 }
    }

    /// Number of ranks over which FSDP shards parameters. With hybrid sharding it is smaller than [`Layout::dense_replicas`].
    pub fn shards(&self) -> u32 {
        if self.fsdp() && self.shard_ranks > 0 { self.shard_ranks } else { self.dense_replicas() }
    }

    /// Whether sharded parameters are gathered module by module, as DeepSpeed does.
    pub fn gathers_by_module(&self) -> bool {
        self.framework == Framework::DeepSpeed && self.zero == 3
    }

    /// Whether sharding is hybrid: shards are copied over groups of ranks.
    pub fn hybrid(&self) -> bool {
        self.shards() < self.dense_replicas()
    }

    /// Number of ranks that hold the same routed experts.
    pub fn expert_replicas(&self) -> u32 {
        self.expert_ranks() / self.ep * self.copies_in_pipeline()
    }

    /// Tensor-parallel degree of routed experts.
    pub fn expert_tp(&self) -> u32 {
        if self.etp == 0 { self.tp } else { self.etp }
    }

    /// Whether experts are also spread over tensor-parallel ranks.
    pub fn folded_experts(&self) -> bool {
        self.expert_tp() != self.tp
    }

    /// Number of ranks of a stage over which the experts, or one slice of each, are spread and copied.
    pub fn expert_ranks(&self) -> u32 {
        self.dp * self.cp * (self.tp / self.expert_tp())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One GPU and one sample. Tests change what they need.
    pub(crate) fn layout() -> Layout {
        Layout::one_gpu()
    }

    #[test]
    fn layers_that_do_not_divide_leave_the_ends_lighter() {
        let chunks_with_mtp = |pp, vpp, layers, mtp| Layout { pp, vpp, ..layout() }.chunk_layers(layers, mtp);
        let chunks_of = |pp, vpp, layers| chunks_with_mtp(pp, vpp, layers, 0);
        assert_eq!(chunks_of(4, 2, 40), [5; 8]);
        assert_eq!(chunks_of(4, 1, 14), [3, 4, 4, 3]);
        assert_eq!(chunks_of(4, 1, 5), [1, 2, 1, 1]);
        // The embedding and the loss alone; then DeepSeek-V3's 61 layers and its module, placed as in Megatron-Bridge.
        assert_eq!(chunks_of(4, 2, 6), [0, 1, 1, 1, 1, 1, 1, 0]);
        assert_eq!(chunks_with_mtp(4, 4, 61, 1), [[4; 15].as_slice(), &[1]].concat());
        assert_eq!(chunks_with_mtp(1, 1, 61, 1), [61]);
        assert_eq!(chunks_with_mtp(4, 1, 4, 1).iter().sum::<u32>(), 4);
        for (pp, vpp, layers) in [(16, 1, 126), (64, 1, 96), (16, 1, 61), (7, 3, 64)] {
            let chunks = chunks_of(pp, vpp, layers);
            assert_eq!(chunks.iter().sum::<u32>(), layers);
            assert!(chunks.iter().all(|&n| n >= layers / (pp * vpp)));
        }
    }
}
