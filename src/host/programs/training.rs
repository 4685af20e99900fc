//! Sets up training for the layers below: the model, its layout, the GPU, and the memory that they need.
//!
//! Layer: host. The only place that converts types of `spec` to those of `model`, `compute` and `memory`. Generates no workload.

use std::sync::Arc;

use hyperfold_base::input;
use hyperfold_config::spec::{self, Config, KeyId, Named, Training};
use hyperfold_llm::collective::ExpertDispatcher;
use hyperfold_llm::compute::{self, Dtype, Gpu, Slowdown, SlowdownTable, Trees, UserDatabase, with_attention};
use hyperfold_llm::memory::{self, Estimate, MemoryOptions};
use hyperfold_llm::model::{
    CudaGraph, ElementBytes, Fp8Scaling, Framework, Gathering, Layout, Model, ModelError, PipelineSchedule, Precision,
    Recompute, RecomputeModules,
};

use crate::setup::error::{PrepareError, SetupError};

/// The model that is trained, its layout, and its hardware.
#[derive(Clone, Debug)]
pub struct TrainingSetup {
    /// The model that is trained.
    pub model: Arc<Model>,
    /// The layout, checked against the model.
    pub layout: Layout,
    /// The GPU that trains it.
    pub gpu: Gpu,
    /// Memory of its fullest rank by an estimate, by what holds it.
    pub memory: Estimate,
    /// A warning if the estimate is slightly above a GPU's memory.
    pub tight: Option<String>,
}

impl TrainingSetup {
    /// Resolves a configuration, and checks that it fits the GPU's memory unless that is switched off.
    ///
    /// # Errors
    /// A model, GPU or file does not exist or is not valid; the model cannot have the layout; the memory exceeds a GPU's.
    pub fn new(config: &Config, training: &Training) -> Result<TrainingSetup, PrepareError> {
        let model = model(&training.model)?;
        let mut gpu = gpu(&config.cluster.gpu)?;
        let layout = Layout { fp8_any_order: gpu.fp8_any_order, ..layout(training, &model) };
        layout.check(&model, layout.gpus()).map_err(|e| SetupError::Model(with_recipe(e, config)))?;
        if let Some(name) = &training.attention {
            gpu = with_attention(gpu, name).map_err(SetupError::from)?;
        }
        let dtype = Dtype::of(layout.precision, Dtype::Bf16);
        if layout.quantised() && !gpu.supports(dtype) {
            return Err(SetupError::Units {
                precision: dtype,
                gpu: gpu.name.clone(),
                alternatives: gpus_with(dtype).join(", "),
            }
            .into());
        }
        let memory = memory::estimate(&model, &layout, &memory_options(training));
        let mut tight = None;
        if training.memory.check {
            let capacity = config.cluster.gpu_memory_bytes.unwrap_or(gpu.capacity_bytes);
            tight = memory.fits(capacity, training.memory.margin_ppm).map_err(|excess| PrepareError::Oom {
                peak_bytes: memory.peak_bytes(),
                breakdown: excess.to_string(),
            })?;
        }
        Ok(TrainingSetup { model, layout, gpu, memory, tight })
    }
}

/// Names the recipe in an error about a key that names the framework, if the recipe chose the framework.
fn with_recipe(error: ModelError, config: &Config) -> ModelError {
    let v = &config.values;
    let (recipe, framework) = (v.text(KeyId::Recipe), v.text(KeyId::Framework));
    let chose = !recipe.is_empty() && !v.given(KeyId::Framework);
    match error {
        ModelError::Layout { key, value, expected } if chose && expected.contains(&format!("\"{framework}\"")) => {
            let recipe = format!("; workload.recipe = \"{recipe}\" sets workload.framework = \"{framework}\"");
            ModelError::Layout { key, value, expected: expected + &recipe }
        }
        other => other,
    }
}

/// Loads a model from its preset, file or table.
pub fn model(named: &Named) -> Result<Arc<Model>, SetupError> {
    match named {
        Named::Asset(name) => Ok(Model::named(name)?),
        Named::Table(text) => Ok(Arc::new(Model::parse(&unrolled(text)?, "workload.model")?)),
        Named::File(path) => {
            Ok(Arc::new(Model::parse(&read(path, input::read_small_tree)?, &path.display().to_string())?))
        }
    }
}

/// Loads a GPU from its name, file or table of specifications.
pub fn gpu(named: &Named) -> Result<Gpu, SetupError> {
    let table = match named {
        Named::Asset(name) => return Ok(Gpu::named(name)?),
        Named::Table(text) => table(text)?,
        Named::File(path) => {
            let text = read(path, input::read_small_tree)?;
            let table = text.parse::<toml::Table>().map_err(|e| file_error(path, &input::toml_problem(&e, &text)))?;
            return Gpu::parse(&table).map_err(|e| match e {
                compute::Error::Gpu { message, .. } => file_error(path, &message),
                other => other.into(),
            });
        }
    };
    Ok(Gpu::parse(&table)?)
}

/// Returns the names of preset GPUs that compute in a data type.
pub(crate) fn gpus_with(dtype: Dtype) -> Vec<String> {
    Gpu::names().into_iter().filter(|name| Gpu::named(name).is_ok_and(|g| g.supports(dtype))).collect()
}

/// Loads a user's database of kernels.
pub fn kernels(path: &std::path::Path) -> Result<UserDatabase, SetupError> {
    Ok(UserDatabase::parse(&path.display().to_string(), &read(path, input::read_table)?)?)
}

/// Loads the model of how much communication slows kernels down that run at the same time.
pub fn slowdown(choice: &spec::SlowdownChoice) -> Result<Slowdown, SetupError> {
    Ok(match choice {
        spec::SlowdownChoice::None => Slowdown::None,
        spec::SlowdownChoice::Own => Slowdown::Own,
        spec::SlowdownChoice::Table(path) => {
            Slowdown::Table(SlowdownTable::parse(&path.display().to_string(), &read(path, input::read_table)?)?)
        }
        spec::SlowdownChoice::Trees(path) => {
            Slowdown::Trees(Trees::parse(&path.display().to_string(), &read(path, input::read_tree)?)?)
        }
    })
}

fn file_error(path: &std::path::Path, why: &str) -> SetupError {
    SetupError::File { file: path.display().to_string(), why: why.to_string() }
}

fn read(
    path: &std::path::Path,
    read_file: fn(&std::path::Path) -> std::io::Result<String>,
) -> Result<String, SetupError> {
    read_file(path).map_err(|e| file_error(path, &format!("cannot read it: {e}")))
}

/// Parses an inline table. It was valid TOML when the sweep was read.
fn table(text: &str) -> Result<toml::Table, SetupError> {
    let mut outer: toml::Table = format!("table = {text}").parse().map_err(|e: toml::de::Error| SetupError::File {
        file: "inline table".to_string(),
        why: e.message().to_string(),
    })?;
    match outer.remove("table") {
        Some(toml::Value::Table(t)) => Ok(t),
        _ => Ok(toml::Table::new()),
    }
}

/// Rewrites an inline table as a TOML document.
fn unrolled(text: &str) -> Result<String, SetupError> {
    Ok(table(text)?.to_string())
}

/// Converts the chosen modules to the type of `model`.
fn modules(chosen: &[spec::RecomputeModule]) -> RecomputeModules {
    let has = |module| chosen.contains(&module);
    RecomputeModules {
        core_attn: has(spec::RecomputeModule::CoreAttn),
        mla_up_proj: has(spec::RecomputeModule::MlaUpProj),
        layernorm: has(spec::RecomputeModule::Layernorm),
        mlp: has(spec::RecomputeModule::Mlp),
        moe: has(spec::RecomputeModule::Moe),
        moe_act: has(spec::RecomputeModule::MoeAct),
        shared_experts: has(spec::RecomputeModule::SharedExperts),
    }
}

/// Returns the type of the operands of layers' products. Weights of 4 bits that kernels widen are multiplied in 16 bit.
pub(crate) fn precision(choice: spec::PrecisionChoice) -> Precision {
    match choice {
        spec::PrecisionChoice::Bf16 | spec::PrecisionChoice::Int4 => Precision::Bf16,
        spec::PrecisionChoice::Fp8 => Precision::Fp8,
        spec::PrecisionChoice::Mxfp8 => Precision::Mxfp8,
        spec::PrecisionChoice::Nvfp4 => Precision::Nvfp4,
    }
}

/// Converts the kernels that exchange tokens with experts to the type of `collective`.
pub(crate) fn dispatcher(choice: spec::DispatcherChoice) -> ExpertDispatcher {
    match choice {
        spec::DispatcherChoice::DeepEp => ExpertDispatcher::DeepEp,
        spec::DispatcherChoice::DeepEpV2 => ExpertDispatcher::DeepEpV2,
        spec::DispatcherChoice::DeepEpLowLatency => ExpertDispatcher::DeepEpLowLatency,
    }
}

/// Converts the layout to the type of `model`.
pub fn layout(t: &Training, model: &Model) -> Layout {
    Layout {
        tp: t.tp,
        pp: t.pp,
        dp: t.dp,
        ep: t.ep,
        etp: t.etp,
        cp: t.cp,
        vpp: t.vpp,
        microbatch: t.microbatch,
        global_batch: t.global_batch,
        seq: t.seq.unwrap_or_else(|| model.transformer().map_or(1, |m| m.seq)),
        sequence_parallel: t.sequence_parallel,
        schedule: match t.schedule {
            spec::ScheduleChoice::GPipe => PipelineSchedule::GPipe,
            spec::ScheduleChoice::OneFOneB => PipelineSchedule::OneFOneB,
            spec::ScheduleChoice::ZbH1 => PipelineSchedule::ZbH1,
            spec::ScheduleChoice::ZbV => PipelineSchedule::ZbV,
            spec::ScheduleChoice::VHalf => PipelineSchedule::VHalf,
            spec::ScheduleChoice::VMin => PipelineSchedule::VMin,
            spec::ScheduleChoice::DualPipe => PipelineSchedule::DualPipe,
        },
        recompute: match t.recompute {
            spec::RecomputeChoice::None => Recompute::None,
            spec::RecomputeChoice::Selective => Recompute::Selective(modules(&t.recompute_modules)),
            spec::RecomputeChoice::Operations => Recompute::Operations,
            spec::RecomputeChoice::Full => Recompute::Full,
        },
        recompute_layers: t.recompute_layers,
        zero: t.zero,
        shard_ranks: t.shard_ranks,
        framework: match t.framework {
            spec::FrameworkChoice::Megatron => Framework::Megatron,
            spec::FrameworkChoice::DeepSpeed => Framework::DeepSpeed,
            spec::FrameworkChoice::Fsdp => Framework::Fsdp,
            spec::FrameworkChoice::Fsdp2 => Framework::Fsdp2,
            spec::FrameworkChoice::Ddp => Framework::Ddp,
        },
        bytes: ElementBytes {
            params: t.param_bytes,
            grads: t.grad_bytes,
            activations: t.activation_bytes,
            optimizer: t.optimizer_bytes,
        },
        precision: precision(t.precision),
        fp8_scaling: match t.fp8_scaling {
            spec::Fp8ScalingChoice::Delayed => Fp8Scaling::Delayed,
            spec::Fp8ScalingChoice::DelayedTensor => Fp8Scaling::DelayedTensor,
            spec::Fp8ScalingChoice::Current => Fp8Scaling::Current,
        },
        fp8_any_order: false,
        compiled: t.compile,
        fused_activation_cast: false,
        fused_grouped_mlp: t.fused_grouped_mlp,
        fused_permute: t.fused_permute,
        fused_rope: t.fused_rope,
        router_fp32: t.router_fp32,
        cuda_graph: match t.cuda_graph {
            spec::CudaGraphChoice::None => CudaGraph::None,
            spec::CudaGraphChoice::Attention => CudaGraph::Attention,
            spec::CudaGraphChoice::Iteration => CudaGraph::Iteration,
        },
        launch_ps: t.launch_ps,
        flash_attention: t.flash_attention,
        unpad_attention: t.unpad_attention,
        fp8_attention: t.attention.as_ref().is_some_and(|name| name.ends_with("fp8")),
        fused_loss: t.fused_loss,
        loss_metrics: t.loss_metrics,
        offload_layers: t.offload_layers,
        fused_optimizer: t.fused_optimizer,
        overlap_grad: t.overlap_grad,
        align_grad_reduce: t.align_grad_reduce,
        defer_embedding_wgrad: t.defer_embedding_wgrad,
        overlap_param: t.overlap_param,
        tp_overlap_pieces: t.tp_overlap_pieces,
        overlap_ep: t.overlap_ep,
        overlap_shared_experts: t.overlap_shared_experts,
        overlap_p2p: t.overlap_p2p,
        scatter_gather: t.scatter_gather,
        async_tp: t.async_tp,
        fused_grad_accumulation: t.fused_grad_accumulation,
        bucket_bytes: t.bucket_bytes,
        gathering: Gathering {
            units_ahead: t.gather_ahead,
            unit_layers: t.unit_layers,
            prefetch_params: t.prefetch_params,
            live_params: t.live_params,
            reuse_params: t.reuse_params,
            lists: t.list_collectives,
        },
        expert_skew: t.expert_skew_ppm as f64 / 1e6,
        expert_dispatcher: t.dispatcher.map(dispatcher),
        order: t.rank_order.clone(),
    }
}

/// Returns the memory that runtime and libraries take.
pub fn memory_options(t: &Training) -> MemoryOptions {
    MemoryOptions {
        context_bytes: t.memory.reserve_bytes,
        fragmentation: t.memory.fragmentation_ppm as f64 / 1e6,
        ..MemoryOptions::default()
    }
}
