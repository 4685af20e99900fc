//! Makes a plan of a model, its layout and a machine, and a graph or an estimate of the plan.
//!
//! Layer: workload. This is the entry point of training jobs. Inputs are checked here, and everything below relies on that.

use super::aligned::is_aligned;
use super::compose::compose;
use super::error::TrainingError;
use super::evaluate::{IterationBreakdown, breakdown};
use super::graph::JobGraph;
use super::machine::Machine;
use super::other::{dlrm_plan, list_plan};
use super::placement::RankPlacement;
use super::plan::{GradSync, Held, JobPlan, LayerPlan, Sync, metric_steps, operation_ps, scaling_steps};
use super::shard;
use super::sharded::{BesideKernels, ShardedPasses, gather_comms, list_ps, reduce_comms};
use super::step::{Comm, PassStep, Price, share};
use crate::collective::CollectiveOp;
use crate::compute::{
    Among, Dtype, Kernel, KernelRole, LINEAR_OFFSET, LayerKind, LayerStep, Pass, Site, UNPAD, expert_loads, kind_of,
    layer_steps, optimizer_kernels, shard_kernels, split_backward,
};
use crate::memory;
use crate::model::pipeline::PassKind;
use crate::model::{
    CudaGraph, Framework, Layout, Model, ModelFamily, PipelineSchedule, Recompute, Transformer, model_flops,
};
use crate::workload::program::Workload;
use crate::workload::rules::assemble_matched;

/// The kinds of layers, in the order of a plan's list.
const KINDS: [LayerKind; 7] = [
    LayerKind::Embedding,
    LayerKind::Dense,
    LayerKind::Moe,
    LayerKind::WindowedDense,
    LayerKind::WindowedMoe,
    LayerKind::Prediction,
    LayerKind::Logits,
];

/// The treatment of the activations of a layer. A plan has all [`KINDS`] for each combination that its layout has.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kept {
    /// Whether these activations are not recomputed although the layout recomputes the activations of other layers.
    whole: bool,
    /// Whether these activations are in the host's memory.
    offloaded: bool,
}

/// Host time of one PyTorch operation, the unit of the host's work: hundredths of it.
const OPERATION: u64 = 100;
/// Host time, in that unit, of a product in a module of Transformer Engine. Its forward pass through a linear layer keeps a Grace processor busy for 99.66 us,
/// where PyTorch's own takes 37.08 (NVIDIA/TransformerEngine issue 2053, GB200, 16 bit).
const ENGINE_PRODUCT: u64 = 269;
/// Factor on that with quantised operands ("more than 2x", issue 761).
const QUANTISED: u64 = 2;

/// Makes the graph of `iterations` iterations on every rank. Durations of kernels are those of `machine`. The times of communication are left to the simulation
/// of the graph; the machine's estimates only decide how far kernels overlap with it and slow down.
pub fn generate(model: &Model, layout: &Layout, machine: &Machine, iterations: u32) -> Result<Workload, TrainingError> {
    let workload = generate_matched(model, layout, machine, iterations)?;
    workload.check_end()?;
    Ok(workload)
}

/// Does what [`generate`] does, without the proof that nothing waits for ever ([`Workload::check_end`]). A caller that computes when the workload ends needs no
/// proof.
pub fn generate_matched(
    model: &Model,
    layout: &Layout,
    machine: &Machine,
    iterations: u32,
) -> Result<Workload, TrainingError> {
    generate_with(model, layout, machine, iterations, layout.microbatches())
}

/// Does what [`generate_matched`] does, with another number of micro-batches per iteration. Each micro-batch takes the time that it takes in the whole layout.
/// The counts of an iteration (tokens, FLOPs) are those of the whole layout.
pub fn generate_with(
    model: &Model,
    layout: &Layout,
    machine: &Machine,
    iterations: u32,
    microbatches: u32,
) -> Result<Workload, TrainingError> {
    if iterations == 0 {
        return Err(TrainingError::key("iterations", 0, "at least one is trained"));
    }
    layout.check(model, layout.gpus())?;
    let placement = RankPlacement::new(layout)?;
    let price = Price::new(machine, &placement);
    let plan = plan(model, layout, &price);
    let with_microbatches = Layout { global_batch: microbatches * layout.dp * layout.microbatch, ..layout.clone() };
    let written = if microbatches == layout.microbatches() { layout } else { &with_microbatches };
    let shares = match &model.body {
        ModelFamily::Transformer(t) => shares(t, layout),
        ModelFamily::Layers(_) | ModelFamily::Dlrm(_) => Vec::new(),
    };
    let mut workload = assemble_matched(&JobGraph::new(&plan, written, placement, iterations, shares))?;
    workload.tokens = match &model.body {
        ModelFamily::Transformer(_) => layout.global_batch as u64 * layout.seq as u64,
        ModelFamily::Layers(_) | ModelFamily::Dlrm(_) => 0,
    };
    workload.model_flops = model_flops(model, layout.global_batch, layout.seq);
    workload.peak_flops = machine.peak_flops;
    Ok(workload)
}

/// The minimum number of ops of all ranks together, known before any op is written.
pub fn min_ops(model: &Model, layout: &Layout, machine: &Machine, iterations: u32) -> Result<u64, TrainingError> {
    layout.check(model, layout.gpus())?;
    let placement = RankPlacement::new(layout)?;
    let plan = plan(model, layout, &Price::new(machine, &placement));
    let ranks_per_stage = u64::from(placement.ranks() / layout.pp.max(1));
    let graph = JobGraph::new(&plan, layout, placement, iterations, Vec::new());
    Ok((0..layout.pp).map(|stage| graph.min_ops(stage)).sum::<u64>().saturating_mul(ranks_per_stage))
}

/// Iteration time and its parts, computed without a graph.
pub fn evaluate(model: &Model, layout: &Layout, machine: &Machine) -> Result<IterationBreakdown, TrainingError> {
    layout.check(model, layout.gpus())?;
    let placement = RankPlacement::new(layout)?;
    let price = Price::new(machine, &placement);
    Ok(breakdown(&plan(model, layout, &price), layout, &price))
}

/// Plans a job: the steps of each layer, the layers of each stage, and the times of the optimizer.
fn plan(model: &Model, layout: &Layout, price: &Price) -> JobPlan {
    let mut plan = match &model.body {
        ModelFamily::Transformer(t) => transformer_plan(t, layout, price),
        ModelFamily::Layers(layers) => list_plan(layers, layout, price),
        ModelFamily::Dlrm(dlrm) => dlrm_plan(dlrm, layout, price),
    };
    plan.list_ps = list_ps(layout, price);
    if let ModelFamily::Transformer(t) = &model.body {
        let n_stages = u64::from(layout.pp * layout.vpp.max(1));
        plan.ends = scaling_steps(layout, price, u64::from(t.layers + t.mtp).div_ceil(n_stages));
        plan.ends_spent = plan.ends.each_ref().map(|steps| price.steps(steps));
    }
    (plan.messages, plan.stretch) = stretch(&plan, layout, price);
    plan.grad_syncs = grad_syncs(&plan, layout, price);
    plan.metrics = metric_steps(layout, price);
    plan.optimizer_ps = (0..layout.pp).map(|rank| optimizer_ps(&plan, layout, price, rank)).collect();
    plan
}

fn transformer_plan(model: &Transformer, layout: &Layout, price: &Price) -> JobPlan {
    let kept: Vec<Kept> = [false, true]
        .into_iter()
        .filter(|&offloaded| !offloaded || layout.offload_layers > 0)
        .flat_map(|offloaded| [false, true].map(|whole| Kept { whole, offloaded }))
        .filter(|kept| !kept.whole || layout.recompute_layers > 0)
        .collect();
    let whole = Layout { recompute: Recompute::None, ..layout.clone() };
    let mut layers: Vec<LayerPlan> = Vec::with_capacity(kept.len() * KINDS.len());
    for kept in &kept {
        let layout = if kept.whole { &whole } else { layout };
        layers.extend(KINDS.map(|kind| match kept.offloaded && kind.is_layer() {
            true => offloaded(layer(model, layout, price, kind), model, layout, price, kind),
            false => layer(model, layout, price, kind),
        }));
    }
    let mut stages = Vec::new();
    let mut next = 0;
    // Number of layers of each pipeline rank whose activations still go to the host's memory.
    let mut in_host = vec![layout.offload_layers; layout.pp as usize];
    // A second pipeline has the stages of the first.
    let counts: Vec<u32> = layout.chunk_layers(model.layers, model.mtp);
    for (stage, n) in counts.into_iter().take(layout.stages_of_microbatch() as usize).enumerate() {
        let in_host = &mut in_host[layout.rank_of_stage(stage as u32) as usize];
        let n_recomputed = layout.recomputed_of(n);
        let kind = |i: u32| {
            let wanted = Kept { whole: i >= n_recomputed, offloaded: *in_host > 0 };
            *in_host -= u32::from(wanted.offloaded);
            let kept_idx =
                kept.iter().position(|&k| k == wanted).expect("a layout that has such layers has them planned");
            (kept_idx * KINDS.len()) as u16 + kind_index(kind_of(model, next + i))
        };
        stages.push((0..n).map(kind).collect::<Vec<u16>>());
        next += n;
    }
    stages[0].insert(0, kind_index(LayerKind::Embedding));
    let last = stages.last_mut().expect("there is a stage");
    last.extend((0..model.mtp).map(|_| kind_index(LayerKind::Prediction)));
    last.push(kind_index(LayerKind::Logits));
    if layout.schedule.is_fed_twice() {
        stages.extend_from_within(..);
    }
    let tokens = layout.seq as u64 / layout.cp as u64 * layout.microbatch as u64;
    // With sequence parallelism, a rank's activations between layers are its share of the sequence.
    let scattered = layout.scatter_gather && !layout.sequence_parallel && layout.tp > 1;
    let own_tokens = if layout.sequence_parallel || scattered { tokens / layout.tp as u64 } else { tokens };
    let bytes_per_token = model.hidden as u64 * layout.bytes.activations as u64;
    let mut plan = JobPlan {
        layers,
        stages,
        message_bytes: own_tokens * bytes_per_token,
        gathered_bytes: if scattered { tokens * bytes_per_token } else { 0 },
        ..JobPlan::default()
    };
    // Modules that predict further tokens have their embedding on the last stage.
    if (model.tied || model.mtp > 0) && !layout.ends_on_one_rank() {
        plan.embedding_bytes = shard::vocab_matrix(model, layout) * layout.bytes.grads as u64;
    }
    plan
}

fn kind_index(kind: LayerKind) -> u16 {
    KINDS.iter().position(|&k| k == kind).expect("KINDS lists every kind") as u16
}

/// A layer whose activations go to the host's memory during its forward pass and come back during its backward pass. A pass that is shorter than the copy waits
/// for it.
fn offloaded(mut plan: LayerPlan, model: &Transformer, layout: &Layout, price: &Price, kind: LayerKind) -> LayerPlan {
    if price.machine.host_bps == 0 || !has_kind(model, kind) {
        return plan;
    }
    let bytes = memory::kept_bytes(model, layout, kind.has_experts(model));
    let ps = (u128::from(bytes) * 1_000_000_000_000 / u128::from(price.machine.host_bps)) as u64;
    for (steps, spent) in [&mut plan.forward, &mut plan.backward].into_iter().zip(plan.spent) {
        if ps > spent.total() {
            steps.push(PassStep::Kernel { name: "offload", ps: ps - spent.total() });
        }
    }
    let backward = price.steps(&plan.backward);
    plan.spent = [price.steps(&plan.forward), backward, price.steps(&plan.weights), backward];
    plan
}

/// Whether a model may have a layer of this kind. Other kinds get an empty plan.
fn has_kind(model: &Transformer, kind: LayerKind) -> bool {
    match kind {
        LayerKind::Embedding | LayerKind::Dense | LayerKind::Logits => true,
        LayerKind::Moe => model.moe.is_some(),
        LayerKind::WindowedDense => model.window > 0,
        LayerKind::WindowedMoe => model.window > 0 && model.moe.is_some(),
        LayerKind::Prediction => model.mtp > 0,
    }
}

/// The plan of a layer.
fn layer(model: &Transformer, layout: &Layout, price: &Price, kind: LayerKind) -> LayerPlan {
    if !has_kind(model, kind) {
        return LayerPlan::default();
    }
    let held = match kind {
        LayerKind::Embedding => shard::embedding(model, layout),
        LayerKind::Dense | LayerKind::WindowedDense => shard::dense_layer(model, layout),
        LayerKind::Moe | LayerKind::WindowedMoe => match &model.moe {
            Some(moe) => shard::moe_layer(model, moe, layout),
            None => return LayerPlan::default(),
        },
        LayerKind::Prediction => shard::prediction(model, layout),
        LayerKind::Logits => shard::head(model, layout),
    };
    let pass = |pass| compose(&layer_steps(model, layout, kind, pass), layout, price);
    let launched = |pass| launches(&layer_steps(model, layout, kind, pass), layout);
    let splits = layout.schedule.splits_backward() || (layout.defer_embedding_wgrad && kind == LayerKind::Logits);
    let (backward_steps, weight_steps) = match layer_steps(model, layout, kind, Pass::Backward) {
        steps if splits => split_backward(steps),
        steps => (steps, Vec::new()),
    };
    let mut backward = pass(Pass::Recompute);
    backward.extend(compose(&backward_steps, layout, price));
    let mut weights: Vec<PassStep> = compose(&weight_steps, layout, price).into_iter().map(named_weights).collect();
    let sync = Sync::of(layout);
    // PyTorch adds to the gradients of earlier micro-batches with kernels of its own.
    if !layout.fused_grad_accumulation || (sync.kept && layout.microbatches() > 1) {
        // The 16-bit gradient is read; the accumulated one is read and written.
        let bytes = (held.dense + held.expert) * (2 + 2 * layout.bytes.grads as u64);
        let ps = price.machine.kernels.kernel_ps(&Kernel::Memory { name: "gradient-accumulate", bytes });
        let pass = if splits { &mut weights } else { &mut backward };
        pass.push(PassStep::Kernel { name: "gradient-accumulate", ps });
    }
    let (before, after) = shard_kernels(held.dense + held.expert, layout);
    let steps = |kernels: &[Kernel]| -> Vec<PassStep> {
        kernels.iter().map(|k| PassStep::Kernel { name: "shards", ps: price.machine.kernels.kernel_ps(k) }).collect()
    };
    // If parameters and gradients are kept, the kernels around gathering and reducing are not part of every pass.
    let ((before, after), (gathered, reduced)) = match sync.kept {
        true => ((Vec::new(), Vec::new()), (before, after)),
        false => ((before, after), (Vec::new(), Vec::new())),
    };
    let mut forward = if sync.gather_forward { steps(&before) } else { Vec::new() };
    forward.extend(pass(Pass::Forward));
    if sync.gather_backward {
        backward.splice(0..0, steps(&before));
    }
    backward.extend(steps(&after));
    let before_forward = before.len() as u64 * OPERATION;
    if kind.has_experts(model) && layout.framework == Framework::Megatron {
        let steps = layer_steps(model, layout, kind, Pass::Forward);
        let is_dispatch = |s: &LayerStep| match s {
            LayerStep::Exchange { among, .. } => *among == Among::Ep,
            LayerStep::Kernel { part, .. } => layout.ep <= 1 && part.site == Site::Up,
        };
        wait_from(&mut forward, &steps, is_dispatch, layout, price);
        let again = layer_steps(model, layout, kind, Pass::Recompute);
        let steps = [again, backward_steps.clone()].concat();
        wait_from(&mut backward, &steps, waits, layout, price);
    }
    wait_for_padding(&mut forward, &layer_steps(model, layout, kind, Pass::Forward), layout, price);
    wait_for_padding(&mut backward, &layer_steps(model, layout, kind, Pass::Recompute), layout, price);
    wait_for_host(&mut forward, launched(Pass::Forward) + before_forward, layout, price);
    let backward_launches =
        launched(Pass::Recompute) + launches(&backward_steps, layout) + (before.len() + after.len()) as u64 * OPERATION;
    wait_for_host(&mut backward, backward_launches, layout, price);
    let mut plan = LayerPlan::new(forward, backward, held, price);
    if !weight_steps.is_empty() {
        wait_for_host(&mut weights, launches(&weight_steps, layout), layout, price);
        plan.spent[2] = price.steps(&weights);
        plan.weights = weights;
    }
    if layout.schedule.is_fed_twice() {
        let not_split = Layout { schedule: PipelineSchedule::OneFOneB, ..layout.clone() };
        let whole = layer(model, &not_split, price, kind);
        plan.spent[1] = whole.spent[1];
        plan.whole = whole.backward;
    }
    let modules = match kind {
        LayerKind::Dense | LayerKind::WindowedDense if layout.gathers_by_module() => {
            shard::modules(model, layout, None)
        }
        LayerKind::Moe | LayerKind::WindowedMoe if layout.gathers_by_module() => {
            shard::modules(model, layout, model.moe.as_ref())
        }
        _ => Vec::new(),
    };
    let is_end = matches!(kind, LayerKind::Embedding | LayerKind::Logits);
    LayerPlan { gathered: steps(&gathered), reduced: steps(&reduced), is_end, modules, ..plan }
}

/// A step of gradients of weights, under a name of its own.
fn named_weights(step: PassStep) -> PassStep {
    let name_of = |name| match name {
        "attention" => "attention-weights",
        "mlp" => "mlp-weights",
        "router" => "router-weights",
        "shared-experts" => "shared-experts-weights",
        "logits" => "logits-weights",
        "prediction" => "prediction-weights",
        other => other,
    };
    match step {
        PassStep::Kernel { name, ps } => PassStep::Kernel { name: name_of(name), ps },
        PassStep::Both { name, ps, comm, overlap } => PassStep::Both { name: name_of(name), ps, comm, overlap },
        PassStep::Comm(comm) => PassStep::Comm(comm),
    }
}

/// The host's work for a pass, in hundredths of PyTorch operations ([`issue`]).
fn launches(steps: &[LayerStep], layout: &Layout) -> u64 {
    let graphs = if layout.cuda_graph == CudaGraph::Attention { OPERATION } else { 0 };
    graphs
        + steps.iter().map(|step| issue(step, layout)).map(|(first, further, n)| first + (n - 1) * further).sum::<u64>()
}

/// Whether the host launches a step together with others as one graph.
fn in_graph(step: &LayerStep, layout: &Layout) -> bool {
    let site = match step {
        LayerStep::Kernel { part, .. } => part.site,
        LayerStep::Exchange { .. } => return false,
    };
    let attention = [
        Site::AttnNorm,
        Site::Qkv,
        Site::Rope,
        Site::Core,
        Site::Proj,
        Site::AttnResidual,
        Site::MlpNorm,
        Site::Router,
    ];
    layout.cuda_graph == CudaGraph::Attention && attention.contains(&site)
}

/// The host's work for a step, in hundredths of PyTorch operations: (work until its first kernel, work for each further kernel, number of kernels). A kernel or
/// collective is one operation; a module of Transformer Engine is more. One module launches the products of a rank's experts one by one; [`each_expert`] is the
/// work for each further product. PyTorch's own grouped product is one operation.
fn issue(step: &LayerStep, layout: &Layout) -> (u64, u64, u64) {
    let product = match (layout.framework, layout.quantised()) {
        (Framework::Megatron, false) => ENGINE_PRODUCT,
        (Framework::Megatron, true) => ENGINE_PRODUCT * QUANTISED,
        _ => OPERATION,
    };
    if in_graph(step, layout) {
        return (0, 0, 1);
    }
    match step {
        LayerStep::Kernel { part, kernel: Kernel::Gemm { batch, .. } } => match part.site {
            Site::Up | Site::Down if layout.framework != Framework::Fsdp2 && !layout.fused_grouped_mlp => {
                (product, each_expert(part.role, layout), (*batch).max(1))
            }
            Site::Qkv | Site::Proj | Site::Up | Site::Down | Site::SharedUp | Site::SharedDown => (product, 0, 1),
            _ => (OPERATION, 0, 1),
        },
        _ => (OPERATION, 0, 1),
    }
}

/// The host's work for each further expert of a grouped product, as in Transformer Engine's module (`grouped_linear.py` at v2.9). The host launches the
/// product. With quantised operands it also makes and fills a tensor of the expert's tokens in the forward pass, or of their gradient in the backward pass. For
/// gradients of weights that is done already, but they end in Megatron's hook for each weight, which checks whether its bucket is complete
/// (`DistributedDataParallel`, `_make_backward_post_hook`).
fn each_expert(role: KernelRole, layout: &Layout) -> u64 {
    let more = match role {
        KernelRole::WeightGrad => layout.framework == Framework::Megatron,
        KernelRole::Forward | KernelRole::Recompute | KernelRole::InputGrad => layout.quantised(),
    };
    OPERATION * (1 + u64::from(more))
}

/// Adds the time by which the host delays a pass in which it waits for the GPU.
///
/// Where tokens go to experts in the forward pass, Megatron's host waits for the GPU. It must know how many tokens each expert got before it can issue their
/// products. Every dispatcher does so (`cuda_sync_point` of its all-to-all; DeepEP's and HybridEP's dispatch wait on the host), unless one graph holds the
/// whole iteration. So the host is not ahead there, and long kernels before the dispatch do not make up for slow issuing: from one dispatch to the next, each
/// kernel begins no sooner than it was issued. Layers follow each other, so the steps before the dispatch are those of the next layer.
///
/// In the backward pass the same holds from the point where a number is copied for kernels that are computed again ([`waits`]). In both passes the host is
/// again not ahead after such a copy.
fn wait_from(
    pass: &mut Vec<PassStep>,
    steps: &[LayerStep],
    first: impl Fn(&LayerStep) -> bool,
    layout: &Layout,
    price: &Price,
) {
    let per_operation_ps = operation_ps(layout, price);
    let Some(first) = steps.iter().position(first) else { return };
    let (mut issued, mut ends, mut alone, mut waited) = (0, 0, 0, 0);
    for step in steps[first..].iter().chain(&steps[..first]) {
        let ps = match compose(std::slice::from_ref(step), layout, price).as_slice() {
            [] => 0,
            steps => price.steps(steps).total(),
        };
        let (first_work, further_work, n) = issue(step, layout);
        for i in 0..n {
            issued += if i == 0 { first_work } else { further_work };
            ends = (waited + issued * per_operation_ps / OPERATION).max(ends) + share(ps, n as u32, i as u32);
        }
        alone += ps;
        if waits(step) {
            (waited, issued) = (ends, 0);
        }
    }
    if ends > alone {
        pass.push(PassStep::Kernel { name: "launch", ps: ends - alone });
    }
}

/// Whether the host waits at a step until a number is copied to the GPU.
fn waits(step: &LayerStep) -> bool {
    matches!(step, LayerStep::Kernel { kernel: Kernel::Memory { name, .. }, .. } if *name == LINEAR_OFFSET)
}

/// Number of operations that the host launches while the GPU is idle, each time padding is removed. The host twice waits for a number from the GPU: how many
/// tokens there are (`nonzero`) and the longest sequence (`max().item()`). After the first it launches the maximum; after the second a running sum, its
/// padding, and the copy (`unpad_input`, flash_attn/bert_padding.py at v2.4.2). All but the copy take a few microseconds on the GPU.
const UNPAD_IDLE_OPERATIONS: u64 = 4;

/// Adds the time for which the GPU is idle because the host counts tokens before it removes padding.
fn wait_for_padding(pass: &mut Vec<PassStep>, steps: &[LayerStep], layout: &Layout, price: &Price) {
    let removes =
        |s: &&LayerStep| matches!(s, LayerStep::Kernel { kernel: Kernel::Memory { name, .. }, .. } if *name == UNPAD);
    let ps = steps.iter().filter(removes).count() as u64 * UNPAD_IDLE_OPERATIONS * operation_ps(layout, price);
    if ps > 0 {
        pass.push(PassStep::Kernel { name: "launch", ps });
    }
}

/// Makes a pass take at least the time that the host needs to issue it. The host runs ahead, so only the shortfall of the whole pass counts.
fn wait_for_host(steps: &mut Vec<PassStep>, launches: u64, layout: &Layout, price: &Price) {
    let per_operation_ps = operation_ps(layout, price);
    let shortfall = (launches * per_operation_ps / OPERATION).saturating_sub(price.steps(steps).total());
    if shortfall > 0 {
        steps.push(PassStep::Kernel { name: "launch", ps: shortfall });
    }
}

/// Time in ps of a rank's optimizer step over the parameters that it updates.
fn optimizer_ps(plan: &JobPlan, layout: &Layout, price: &Price, rank: u32) -> u64 {
    let mut held = Held::default();
    plan.chunks(layout, rank).for_each(|c| held.add(&plan.held(c)));
    let params = held.dense + held.expert;
    let shard = if layout.zero == 0 {
        params
    } else {
        let experts = if layout.hybrid() { layout.shards() } else { layout.expert_replicas() };
        held.dense.div_ceil(layout.shards() as u64) + held.expert.div_ceil(experts as u64)
    };
    let kernels =
        optimizer_kernels(params, shard, layout).iter().map(|(_, k)| price.machine.kernels.kernel_ps(k)).sum();
    launched_updates_ps(plan, layout, price, rank).max(kernels)
}

/// Operations that a loop over tensors launches for each of them: the count of steps; both moments scaled and updated; root, quotient and sum of the
/// denominator; the update (`adamw` of composer/optim/decoupled_weight_decay.py at v0.17.2, without weight decay).
const UPDATE_OPERATIONS: u64 = 9;

/// Time in ps that the host needs to launch an optimizer's step that is a loop over tensors, by FSDP. With many ranks a shard of a unit is a part of one tensor,
/// and the kernels take less time than their launches. The number of steps is on the GPU there, so the host waits for each tensor and is never ahead.
fn launched_updates_ps(plan: &JobPlan, layout: &Layout, price: &Price, rank: u32) -> u64 {
    if layout.fused_optimizer || !layout.fsdp() {
        return 0;
    }
    let layers = |stage: &[u16]| stage.iter().filter(|&&l| !plan.layers[l as usize].is_end).count() as u64;
    let n_layers: u64 = plan.chunks(layout, rank).map(layers).sum();
    let n_units = n_layers.div_ceil(u64::from(layout.gathering.unit_layers.max(1))) + 1;
    n_units * UPDATE_OPERATIONS * operation_ps(layout, price)
}

/// Factors by virtual stage: forward and backward.
type Stretch = Vec<(f64, f64)>;

/// The factors by which kernels slow down. The first list is for the messages that overlap with every pass. The second is for the one pass that overlaps with
/// the reduction of gradients or the gathering of parameters.
fn stretch(plan: &JobPlan, layout: &Layout, price: &Price) -> (Stretch, Stretch) {
    let sync = Sync::of(layout);
    // A kernel that stands for the many kernels of a pass.
    let kernel = Kernel::gemm(4096, 4096, 4096, Dtype::Bf16);
    let factor = |stage: &[u16], pass: PassKind, comm_ps: u64, op: CollectiveOp, bytes: u64| {
        let pass = plan.pass(stage, pass).compute.max(1);
        let ratio = comm_ps.min(pass) as f64 / pass as f64;
        price.machine.kernels.stretched_ps(&kernel, pass, op, bytes, ratio) as f64 / pass as f64
    };
    let sync_factor = |stage: &[u16], pass: PassKind, comms: [Comm; 2]| {
        let comm_ps = comms.iter().map(|c| price.comm(c)).sum();
        factor(stage, pass, comm_ps, comms[0].op, comms[0].bytes)
    };
    // The pass after which the gradients of weights are complete.
    let completing = if layout.schedule.splits_backward() { PassKind::WeightGrads } else { PassKind::Backward };
    // Gathering and reduction of one pass of a micro-batch, each as long as it runs beside kernels.
    let sharded_factor = |stage: &[u16], pass: PassKind, comm: BesideKernels| {
        let total = plan.pass(stage, pass).compute.max(1);
        let room = (total as f64 / (comm.gather_ps + comm.reduce_ps).max(1) as f64).min(1.0);
        let one = |ps: u64, op, bytes| factor(stage, pass, (ps as f64 * room) as u64, op, bytes) - 1.0;
        1.0 + one(comm.gather_ps, CollectiveOp::AllGather, comm.gather_bytes)
            + one(comm.reduce_ps, CollectiveOp::ReduceScatter, comm.reduce_bytes)
    };
    let sync_stretch = |(number, stage): (usize, &Vec<u16>)| {
        if sync.gather_forward && sync.shards_passes() {
            let [forward, backward] =
                ShardedPasses::of_microbatch(plan, layout, stage).beside_kernels(plan, layout, price);
            return (
                sharded_factor(stage, PassKind::Forward, forward),
                sharded_factor(stage, PassKind::Backward, backward),
            );
        }
        let held = plan.held(stage);
        let rank = layout.rank_of_stage(number as u32);
        let gathers = layout.overlap_param && (sync.gather_step || sync.gather_forward);
        let forward = if gathers {
            let comms = gather_comms(layout, &held);
            let comm_ps: u64 = comms.iter().map(|c| price.comm(c)).sum();
            let idle_ps = idle_while_gathering(plan, layout, price, number as u32);
            factor(stage, PassKind::Forward, comm_ps.saturating_sub(idle_ps), comms[0].op, comms[0].bytes)
        } else {
            1.0
        };
        let reduces = layout.overlap_grad && !sync.kept && !is_aligned(layout, rank);
        let backward = if reduces { sync_factor(stage, completing, reduce_comms(layout, &held)) } else { 1.0 };
        (forward, backward)
    };
    // During a pass one message arrives and one leaves, both at once.
    let message = |stage: &Vec<u16>| {
        if layout.pp == 1 || !layout.overlap_p2p {
            return (1.0, 1.0);
        }
        let message_ps = price.machine.comm.message_ps(plan.message_bytes, price.pipeline_in_server());
        let message_factor = |pass| factor(stage, pass, message_ps, CollectiveOp::AllToAll, plan.message_bytes);
        (message_factor(PassKind::Forward), message_factor(PassKind::Backward))
    };
    (plan.stages.iter().map(message).collect(), plan.stages.iter().enumerate().map(sync_stretch).collect())
}

/// The communication of gradients of each virtual stage of a plan.
fn grad_syncs(plan: &JobPlan, layout: &Layout, price: &Price) -> Vec<GradSync> {
    // A kernel that stands for the many kernels of a pass.
    let kernel = Kernel::gemm(4096, 4096, 4096, Dtype::Bf16);
    let one = |stage: &Vec<u16>| {
        let comms = reduce_comms(layout, &plan.held(stage));
        let ps = comms.iter().map(|c| price.comm(c)).sum();
        let pass = plan.pass(stage, PassKind::Backward).compute.max(1);
        let slowed = price.machine.kernels.stretched_ps(&kernel, pass, comms[0].op, comms[0].bytes, 1.0);
        GradSync { ps, slowdown: slowed as f64 / pass as f64 }
    };
    plan.stages.iter().map(one).collect()
}

/// Time in ps in which the parameters of a virtual stage are gathered while its rank still waits for the pipeline to fill. Where virtual stages are interleaved,
/// Megatron gathers the first of them on all ranks at once, as soon as an iteration begins (`align_param_gather`).
fn idle_while_gathering(plan: &JobPlan, layout: &Layout, price: &Price, stage: u32) -> u64 {
    if layout.vpp == 1 || layout.framework != Framework::Megatron || layout.schedule.splits_backward() {
        return 0;
    }
    let rank = layout.rank_of_stage(stage);
    let fills: u64 = (0..rank).map(|s| plan.pass(&plan.stages[s as usize], PassKind::Forward).total()).sum();
    let before = plan.chunks(layout, rank).take((stage / layout.pp) as usize);
    let began: u64 = before.flat_map(|s| gather_comms(layout, &plan.held(s))).map(|c| price.comm(&c)).sum();
    fills.saturating_sub(began)
}

/// The numbers of tokens that go to each of the experts' ranks; empty if the load is even.
fn shares(model: &Transformer, layout: &Layout) -> Vec<Vec<u64>> {
    match &model.moe {
        Some(moe) if layout.ep > 1 && layout.expert_skew > 1.0 => {
            let group = u64::from(layout.ep) * u64::from(moe.top_k);
            let tokens = layout.seq as u64 * layout.microbatch as u64 / layout.cp as u64 * group;
            let tokens = if layout.folded_experts() { tokens / u64::from(layout.tp) } else { tokens };
            vec![expert_loads(moe, layout, tokens)]
        }
        _ => Vec::new(),
    }
}
