//! `[base.workload]` with `kind = "model"`: what is trained, and its layout on GPUs.
//!
//! Layer: spec. The same words as `model::Layout`, which this layer may not import. Whether layers and heads divide is checked where the model is known.

use std::path::{Path, PathBuf};

use super::error::Conflict;
use super::experts::DispatcherChoice;
use super::key_id::KeyId;
use super::named::{Named, named};
use super::scale::{PPM, scaled};
use super::schedules::ScheduleChoice;
use super::value::Values;

/// One training configuration. Degrees are at least 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Training {
    /// Value of `workload.model`.
    pub model: Named,
    /// Value of `workload.framework`.
    pub framework: FrameworkChoice,
    /// Value of `workload.tp`.
    pub tp: u32,
    /// Value of `workload.pp`.
    pub pp: u32,
    /// Value of `workload.dp`.
    pub dp: u32,
    /// Value of `workload.ep`.
    pub ep: u32,
    /// Tensor parallelism of experts; 0: `tp`.
    pub etp: u32,
    /// Value of `workload.cp`.
    pub cp: u32,
    /// Virtual stages; 1 if the schedule has none.
    pub vpp: u32,
    /// Value of `workload.microbatch`.
    pub microbatch: u32,
    /// Value of `workload.global_batch`.
    pub global_batch: u32,
    /// Sequence length; `None`: the model's own.
    pub seq: Option<u32>,
    /// Whether activations between tensor-parallel parts are split by sequence too.
    pub sequence_parallel: bool,
    /// Value of `workload.schedule`.
    pub schedule: ScheduleChoice,
    /// Value of `workload.recompute`.
    pub recompute: RecomputeChoice,
    /// Modules for `RecomputeChoice::Selective`, each once.
    pub recompute_modules: Vec<RecomputeModule>,
    /// Layers of each virtual stage that are recomputed; 0: all.
    pub recompute_layers: u32,
    /// Value of `workload.zero`.
    pub zero: u8,
    /// Ranks over which state is sharded; 0: all data-parallel ranks.
    pub shard_ranks: u32,
    /// Value of `workload.param_bytes`: bytes of a parameter.
    pub param_bytes: u32,
    /// Value of `workload.grad_bytes`: bytes of a gradient.
    pub grad_bytes: u32,
    /// Value of `workload.activation_bytes`: bytes of an element of an activation.
    pub activation_bytes: u32,
    /// Value of `workload.optimizer_bytes`: bytes of optimizer state for a parameter.
    pub optimizer_bytes: u32,
    /// Value of `workload.precision`.
    pub precision: PrecisionChoice,
    /// Value of `workload.fp8_scaling`.
    pub fp8_scaling: Fp8ScalingChoice,
    /// Whether `workload.compile` is on.
    pub compile: bool,
    /// Time of the host for one operation, ps; `None`: as in the GPU's table.
    pub launch_ps: Option<u64>,
    /// Value of `workload.cuda_graph`.
    pub cuda_graph: CudaGraphChoice,
    /// Whether `workload.flash_attention` is on.
    pub flash_attention: bool,
    /// Whether `workload.unpad_attention` is on.
    pub unpad_attention: bool,
    /// Kernels of fused attention; `None`: the GPU's own.
    pub attention: Option<String>,
    /// Whether `workload.fused_loss` is on.
    pub fused_loss: bool,
    /// Whether `workload.fused_grouped_mlp` is on.
    pub fused_grouped_mlp: bool,
    /// Whether `workload.fused_permute` is on.
    pub fused_permute: bool,
    /// Whether `workload.fused_rope` is on.
    pub fused_rope: bool,
    /// Whether `workload.router_fp32` is on.
    pub router_fp32: bool,
    /// Value of `workload.loss_metrics`.
    pub loss_metrics: u32,
    /// Value of `workload.offload_layers`.
    pub offload_layers: u32,
    /// Whether `workload.fused_optimizer` is on.
    pub fused_optimizer: bool,
    /// Whether `workload.overlap_grad` is on.
    pub overlap_grad: bool,
    /// Whether `workload.overlap_param` is on.
    pub overlap_param: bool,
    /// Whether `workload.align_grad_reduce` is on.
    pub align_grad_reduce: bool,
    /// Whether `workload.defer_embedding_wgrad` is on.
    pub defer_embedding_wgrad: bool,
    /// Value of `workload.gather_ahead`.
    pub gather_ahead: u32,
    /// Value of `workload.unit_layers`.
    pub unit_layers: u32,
    /// Value of `workload.prefetch_mparams`, in parameters.
    pub prefetch_params: u64,
    /// Value of `workload.live_mparams`, in parameters.
    pub live_params: u64,
    /// Value of `workload.reuse_mparams`, in parameters.
    pub reuse_params: u64,
    /// Whether `workload.list_collectives` is on.
    pub list_collectives: bool,
    /// Value of `workload.tp_overlap_pieces`.
    pub tp_overlap_pieces: u32,
    /// Whether `workload.overlap_ep` is on.
    pub overlap_ep: bool,
    /// Whether `workload.overlap_shared_experts` is on.
    pub overlap_shared_experts: bool,
    /// Whether `workload.overlap_p2p` is on.
    pub overlap_p2p: bool,
    /// Whether `workload.scatter_gather` is on.
    pub scatter_gather: bool,
    /// Whether `workload.async_tp` is on.
    pub async_tp: bool,
    /// Whether `workload.fused_grad_accumulation` is on.
    pub fused_grad_accumulation: bool,
    /// Value of `workload.bucket_mb`, bytes.
    pub bucket_bytes: u64,
    /// Skew of the load of experts, millionths; a million is even.
    pub expert_skew_ppm: u64,
    /// Value of `workload.ep_dispatcher`; `None`: NCCL's all-to-all.
    pub dispatcher: Option<DispatcherChoice>,
    /// A permutation of `tp`, `cp`, `ep`, `dp`, `pp`, joined by `-`.
    pub rank_order: String,
    /// The user's measured kernels.
    pub kernels: Option<PathBuf>,
    /// Further bytes that the memory must hold, besides the model's arithmetic.
    pub memory: MemoryBudget,
}

/// The framework whose behaviour the training follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameworkChoice {
    /// Megatron-LM and Megatron Core.
    Megatron,
    /// DeepSpeed, with or without ZeRO.
    DeepSpeed,
    /// PyTorch's FullyShardedDataParallel.
    Fsdp,
    /// PyTorch's `fully_shard`.
    Fsdp2,
    /// PyTorch's DistributedDataParallel.
    Ddp,
}

/// Type of the operands of linear layers' matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecisionChoice {
    /// Number format bfloat16.
    Bf16,
    /// FP8 with a scaling factor for a tensor.
    Fp8,
    /// FP8 with a scaling factor for each 32 elements.
    Mxfp8,
    /// FP4 with a scaling factor for each 16 elements.
    Nvfp4,
    /// Weights of 4 bits, which kernels widen to 16 bit for their products. For inference alone.
    Int4,
}

impl PrecisionChoice {
    /// Returns the value of `workload.precision`.
    pub(super) fn new(v: &Values) -> PrecisionChoice {
        match v.text(KeyId::Precision) {
            "fp8" => PrecisionChoice::Fp8,
            "mxfp8" => PrecisionChoice::Mxfp8,
            "nvfp4" => PrecisionChoice::Nvfp4,
            "int4" => PrecisionChoice::Int4,
            _ => PrecisionChoice::Bf16,
        }
    }
}

/// What scaling factors of FP8 with one factor per tensor come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fp8ScalingChoice {
    /// Earlier passes, of which all ranks of a stage know.
    Delayed,
    /// Earlier passes, of which tensor- and context-parallel ranks know.
    DelayedTensor,
    /// The tensor itself.
    Current,
}

/// The parts that the host launches as CUDA graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CudaGraphChoice {
    /// No graph: each kernel is launched by itself.
    None,
    /// A graph for the attention of each layer.
    Attention,
    /// A graph for the whole iteration.
    Iteration,
}

/// The parts that the backward pass computes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecomputeChoice {
    /// All activations are kept.
    None,
    /// Chosen modules are computed again.
    Selective,
    /// Chosen operations are computed again.
    Operations,
    /// Whole layers are computed again.
    Full,
}

/// Modules of a layer, by Megatron's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecomputeModule {
    /// Attention without its projections.
    CoreAttn,
    /// Up-projections of multi-head latent attention.
    MlaUpProj,
    /// Norms before attention and feed-forward.
    Layernorm,
    /// The feed-forward part of dense layers.
    Mlp,
    /// The whole mixture of experts.
    Moe,
    /// Activation function of experts.
    MoeAct,
    /// The experts that every token visits.
    SharedExperts,
}

const RECOMPUTE_MODULES: [(&str, RecomputeModule); 7] = [
    ("core_attn", RecomputeModule::CoreAttn),
    ("mla_up_proj", RecomputeModule::MlaUpProj),
    ("layernorm", RecomputeModule::Layernorm),
    ("mlp", RecomputeModule::Mlp),
    ("moe", RecomputeModule::Moe),
    ("moe_act", RecomputeModule::MoeAct),
    ("shared_experts", RecomputeModule::SharedExperts),
];

/// Parses names of modules joined by commas.
fn recompute_modules(list: &str) -> Result<Vec<RecomputeModule>, Conflict> {
    let fail = |why: String| Conflict { job: None, key: KeyId::RecomputeModules, why };
    let mut modules = Vec::new();
    let find = |name: &str| RECOMPUTE_MODULES.iter().find(|(known, _)| *known == name).map(|(_, module)| *module);
    let names = || list.split(',').map(str::trim);
    let unknown: Vec<String> = names().filter(|name| find(name).is_none()).map(|name| format!("\"{name}\"")).collect();
    if !unknown.is_empty() {
        let known: Vec<&str> = RECOMPUTE_MODULES.iter().map(|m| m.0).collect();
        let are = if unknown.len() == 1 { "is no module" } else { "are no modules" };
        return Err(fail(format!(
            "{} {are}; it is a list, joined by commas, of {}",
            unknown.join(", "),
            known.join(", ")
        )));
    }
    for name in names() {
        let Some(module) = find(name) else { continue };
        if modules.contains(&module) {
            return Err(fail(format!("{name} is in it twice")));
        }
        modules.push(module);
    }
    Ok(modules)
}

/// Further bytes that a GPU's memory must hold, besides the model's arithmetic, and whether exceeding it is `oom`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Whether `workload.memory_check` is on.
    /// Whether exceeding a GPU's memory is `oom`.
    pub check: bool,
    /// Share of a GPU's memory by which the estimate may exceed it before that is `oom`, millionths.
    pub margin_ppm: u64,
    /// Memory of driver, CUDA and libraries, bytes.
    pub reserve_bytes: u64,
    /// Fragmentation as a share of activations and working memory, millionths.
    pub fragmentation_ppm: u64,
}

impl Training {
    /// Types the values. `dir`: folder to which paths are relative.
    pub(super) fn new(v: &Values, dir: &Path) -> Result<Training, Conflict> {
        if v.text(KeyId::Model).is_empty() {
            let why =
                "it is required with workload.kind = \"model\": a preset such as \"gpt3-13b\", a .toml file or a table"
                    .to_string();
            return Err(Conflict { job: None, key: KeyId::Model, why });
        }
        let u32_of = |key: KeyId| v.int(key) as u32;
        let schedule = ScheduleChoice::of(v);
        let memory = MemoryBudget {
            check: v.bool(KeyId::MemoryCheck),
            margin_ppm: scaled(v.float(KeyId::MemoryMargin), PPM),
            reserve_bytes: scaled(v.float(KeyId::MemoryReserveGib), (1u64 << 30) as f64),
            fragmentation_ppm: scaled(v.float(KeyId::MemoryFragmentation), PPM),
        };
        Ok(Training {
            model: named(v.text(KeyId::Model), dir),
            framework: match v.text(KeyId::Framework) {
                "deepspeed" => FrameworkChoice::DeepSpeed,
                "fsdp" => FrameworkChoice::Fsdp,
                "fsdp2" => FrameworkChoice::Fsdp2,
                "ddp" => FrameworkChoice::Ddp,
                _ => FrameworkChoice::Megatron,
            },
            tp: u32_of(KeyId::Tp),
            pp: u32_of(KeyId::Pp),
            dp: u32_of(KeyId::Dp),
            ep: u32_of(KeyId::Ep),
            etp: u32_of(KeyId::Etp),
            cp: u32_of(KeyId::Cp),
            vpp: match schedule {
                ScheduleChoice::OneFOneB if v.int(KeyId::Pp) > 1 => u32_of(KeyId::Vpp),
                ScheduleChoice::ZbV | ScheduleChoice::VHalf | ScheduleChoice::VMin | ScheduleChoice::DualPipe => 2,
                ScheduleChoice::OneFOneB | ScheduleChoice::GPipe | ScheduleChoice::ZbH1 => 1,
            },
            microbatch: u32_of(KeyId::Microbatch),
            global_batch: u32_of(KeyId::GlobalBatch),
            seq: (v.int(KeyId::Seq) > 0).then(|| u32_of(KeyId::Seq)),
            sequence_parallel: v.bool(KeyId::SequenceParallel) && v.int(KeyId::Tp) > 1,
            schedule,
            recompute: match v.text(KeyId::Recompute) {
                "selective" => RecomputeChoice::Selective,
                "operations" => RecomputeChoice::Operations,
                "full" => RecomputeChoice::Full,
                _ => RecomputeChoice::None,
            },
            recompute_modules: match v.is(KeyId::Recompute, "selective") {
                true => recompute_modules(v.text(KeyId::RecomputeModules))?,
                false => Vec::new(),
            },
            recompute_layers: if v.is(KeyId::Recompute, "none") { 0 } else { u32_of(KeyId::RecomputeLayers) },
            zero: v.int(KeyId::Zero) as u8,
            shard_ranks: u32_of(KeyId::ShardRanks),
            param_bytes: u32_of(KeyId::ParamBytes),
            grad_bytes: u32_of(KeyId::GradBytes),
            activation_bytes: u32_of(KeyId::ActivationBytes),
            optimizer_bytes: u32_of(KeyId::OptimizerBytes),
            precision: PrecisionChoice::new(v),
            fp8_scaling: match v.text(KeyId::Fp8Scaling) {
                "current" => Fp8ScalingChoice::Current,
                "delayed-tensor" => Fp8ScalingChoice::DelayedTensor,
                _ => Fp8ScalingChoice::Delayed,
            },
            compile: v.bool(KeyId::Compile),
            launch_ps: v.has(KeyId::LaunchUs).then(|| scaled(v.float(KeyId::LaunchUs), 1e6)),
            cuda_graph: match v.text(KeyId::CudaGraph) {
                "attention" => CudaGraphChoice::Attention,
                "iteration" => CudaGraphChoice::Iteration,
                _ => CudaGraphChoice::None,
            },
            flash_attention: v.bool(KeyId::FlashAttention),
            unpad_attention: v.bool(KeyId::UnpadAttention),
            attention: (v.bool(KeyId::FlashAttention) && !v.is(KeyId::Attention, "gpu"))
                .then(|| v.text(KeyId::Attention).to_string()),
            fused_loss: v.bool(KeyId::FusedLoss),
            fused_grouped_mlp: v.bool(KeyId::FusedGroupedMlp),
            fused_permute: v.bool(KeyId::FusedPermute),
            fused_rope: v.bool(KeyId::FusedRope),
            router_fp32: v.bool(KeyId::RouterFp32),
            loss_metrics: u32_of(KeyId::LossMetrics),
            offload_layers: u32_of(KeyId::OffloadLayers),
            fused_optimizer: v.bool(KeyId::FusedOptimizer),
            overlap_grad: v.bool(KeyId::OverlapGrad),
            overlap_param: v.bool(KeyId::OverlapParam),
            align_grad_reduce: v.bool(KeyId::AlignGradReduce),
            defer_embedding_wgrad: v.bool(KeyId::DeferEmbeddingWgrad),
            gather_ahead: u32_of(KeyId::GatherAhead),
            unit_layers: u32_of(KeyId::UnitLayers),
            prefetch_params: scaled(v.float(KeyId::PrefetchMparams), 1e6),
            live_params: scaled(v.float(KeyId::LiveMparams), 1e6),
            reuse_params: scaled(v.float(KeyId::ReuseMparams), 1e6),
            list_collectives: v.bool(KeyId::ListCollectives),
            tp_overlap_pieces: u32_of(KeyId::TpOverlapPieces),
            overlap_ep: v.bool(KeyId::OverlapEp),
            overlap_shared_experts: v.bool(KeyId::OverlapSharedExperts),
            overlap_p2p: v.bool(KeyId::OverlapP2p),
            scatter_gather: v.bool(KeyId::ScatterGather),
            async_tp: v.bool(KeyId::AsyncTp),
            fused_grad_accumulation: v.bool(KeyId::FusedGradAccumulation),
            bucket_bytes: scaled(v.float(KeyId::BucketMb), 1e6),
            expert_skew_ppm: scaled(v.float(KeyId::ExpertSkew), PPM),
            dispatcher: DispatcherChoice::new(v),
            rank_order: v.text(KeyId::RankOrder).to_string(),
            kernels: v.has(KeyId::Kernels).then(|| dir.join(v.text(KeyId::Kernels))),
            memory,
        })
    }

    /// Returns the number of GPUs.
    pub fn gpus(&self) -> u64 {
        [self.tp, self.pp, self.dp, self.cp].into_iter().fold(1, |n, d| n.saturating_mul(u64::from(d)))
    }

    /// Checks degrees against the cluster, and batches against each other.
    pub(super) fn check(&self, v: &Values, gpus: Option<u32>) -> Result<(), Conflict> {
        let fail = |key: KeyId, why: String| Err(Conflict { job: None, key, why });
        let mut order: Vec<&str> = self.rank_order.split('-').collect();
        order.sort_unstable();
        if order != ["cp", "dp", "ep", "pp", "tp"] {
            return fail(
                KeyId::RankOrder,
                "it must name each of tp, cp, ep, dp and pp once, joined by -, for example \"tp-cp-ep-dp-pp\""
                    .to_string(),
            );
        }
        if self.precision == PrecisionChoice::Int4 {
            return fail(
                KeyId::Precision,
                "weights of 4 bits that kernels widen are for workload.kind = \"inference\"; bf16, fp8, mxfp8 or nvfp4 would be right"
                    .to_string(),
            );
        }
        let product = format!("tp {} x pp {} x dp {} x cp {}", self.tp, self.pp, self.dp, self.cp);
        if let Some(gpus) = gpus {
            let gpus_per_replica =
                [self.tp, self.pp, self.cp].into_iter().fold(1u64, |n, d| n.saturating_mul(u64::from(d)));
            // Jobs smaller than a server leave the rest of it idle.
            let per_server = v.int(KeyId::GpusPerServer).max(1) as u64;
            if v.is_of_job() {
                let key = if v.given(KeyId::Dp) && v.int(KeyId::Dp) > 0 { KeyId::Dp } else { KeyId::JobGpus };
                let why = format!("{product} are {} GPUs, but the job has {gpus}", self.gpus());
                return if self.gpus() == u64::from(gpus) { self.check_batch() } else { fail(key, why) };
            }
            if !u64::from(gpus).is_multiple_of(per_server) {
                return fail(
                    KeyId::Gpus,
                    format!(
                        "{gpus} must be a multiple of cluster.gpus_per_server = {per_server}: servers are whole; for less than one set cluster.gpus_per_server = {gpus}"
                    ),
                );
            }
            if self.gpus().div_ceil(per_server).saturating_mul(per_server) != u64::from(gpus) {
                let fit = u64::from(gpus) / gpus_per_replica;
                let instead = if fit >= 1 && fit * gpus_per_replica == u64::from(gpus) {
                    format!("workload.dp = {fit} would fit")
                } else {
                    format!(
                        "cluster.gpus must be a multiple of tp x pp x cp = {gpus_per_replica}; or exclude such experiments by a constraint"
                    )
                };
                let key = if v.given(KeyId::Dp) && v.int(KeyId::Dp) > 0 { KeyId::Dp } else { KeyId::Gpus };
                return fail(key, format!("{product} are {} GPUs, but cluster.gpus = {gpus}; {instead}", self.gpus()));
            }
        }
        self.check_batch()
    }

    /// Checks that the global batch is a multiple of what one step of all replicas takes.
    fn check_batch(&self) -> Result<(), Conflict> {
        let step = u64::from(self.dp) * u64::from(self.microbatch);
        if !u64::from(self.global_batch).is_multiple_of(step) {
            let near = (u64::from(self.global_batch) / step).max(1) * step;
            let why = format!(
                "it must be a multiple of workload.dp {} x workload.microbatch {}, for example {near}",
                self.dp, self.microbatch
            );
            return Err(Conflict { job: None, key: KeyId::GlobalBatch, why });
        }
        Ok(())
    }
}
