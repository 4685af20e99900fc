//! From a model, its layout and a machine to a plan, and from the plan to a graph or an estimate.
//!
//! Layer: workload. The way in: what is asked for is checked here, and everything below relies on it.

use super::compose::compose;
use super::error::TrainingError;
use super::evaluate::{Breakdown, breakdown};
use super::graph::Graph;
use super::machine::Machine;
use super::placement::Placement;
use super::plan::{Habits, Held, LayerPlan, Plan};
use super::shard;
use super::step::Price;
use crate::compute::{LayerKind, Pass, expert_loads, kind_of, layer_steps, optimizer_kernels};
use crate::model::{Body, Layout, Model, Transformer};
use crate::workload::program::Workload;
use crate::workload::rules::assemble;

/// The kinds of layers, in the order in which a plan keeps them.
const KINDS: [LayerKind; 4] = [LayerKind::Embedding, LayerKind::Dense, LayerKind::Moe, LayerKind::Logits];

/// The graph of `iterations` iterations on every rank. Durations of kernels are those of `machine`; communication is left to who runs the graph (the machine's
/// estimates decide only how far kernels overlap with it and slow down).
pub fn generate(model: &Model, layout: &Layout, machine: &Machine, iterations: u32) -> Result<Workload, TrainingError> {
    if iterations == 0 {
        return Err(TrainingError::key("iterations", 0, "at least one is trained"));
    }
    layout.check(model, layout.gpus())?;
    let placement = Placement::new(layout)?;
    let price = Price::new(machine, &placement);
    let mut workload = match &model.body {
        Body::Transformer(t) => {
            let plan = plan(t, layout, &price, Habits::default());
            let shares = shares(t, layout);
            assemble(&Graph::new(&plan, layout, placement, iterations, shares))?
        }
        Body::Layers(_) | Body::Dlrm(_) => return Err(TrainingError::key("model", &model.name, "is no transformer")),
    };
    workload.tokens = layout.global_batch as u64 * layout.seq as u64;
    workload.model_flops = model.model_flops(layout.global_batch, layout.seq);
    workload.peak_flops = machine.peak_flops;
    Ok(workload)
}

/// Iteration time and where it goes, without a graph.
pub fn evaluate(model: &Model, layout: &Layout, machine: &Machine) -> Result<Breakdown, TrainingError> {
    evaluate_as(model, layout, machine, Habits::default())
}

/// [`evaluate`] with a framework's habits.
pub fn evaluate_as(model: &Model, layout: &Layout, machine: &Machine, habits: Habits) -> Result<Breakdown, TrainingError> {
    layout.check(model, layout.gpus())?;
    let placement = Placement::new(layout)?;
    let price = Price::new(machine, &placement);
    match &model.body {
        Body::Transformer(t) => Ok(breakdown(&plan(t, layout, &price, habits), layout, &price)),
        Body::Layers(_) | Body::Dlrm(_) => Err(TrainingError::key("model", &model.name, "is no transformer")),
    }
}

/// What each layer is and who has it.
pub fn plan(model: &Transformer, layout: &Layout, price: &Price, habits: Habits) -> Plan {
    let layers = KINDS.iter().map(|&k| layer(model, layout, price, k)).collect();
    let mut stages = Vec::new();
    let mut next = 0;
    for n in layout.chunk_layers(model.layers) {
        stages.push((next..next + n).map(|l| kind_index(kind_of(model, l))).collect::<Vec<u16>>());
        next += n;
    }
    stages[0].insert(0, kind_index(LayerKind::Embedding));
    stages.last_mut().expect("there is a stage").push(kind_index(LayerKind::Logits));
    let tokens = layout.seq as u64 / layout.cp as u64 * layout.microbatch as u64;
    // With sequence parallelism a rank's activations between layers are its share of the sequence.
    let scattered = habits.scatter_gather && !layout.sequence_parallel && layout.tp > 1;
    let own = if layout.sequence_parallel || scattered { tokens / layout.tp as u64 } else { tokens };
    let each = model.hidden as u64 * layout.bytes.activations as u64;
    let mut plan = Plan {
        layers,
        stages,
        message_bytes: own * each,
        gathered_bytes: if scattered { tokens * each } else { 0 },
        optimizer_ps: Vec::new(),
        embedding_bytes: 0,
    };
    if model.tied && layout.pp > 1 {
        plan.embedding_bytes = shard::vocab_matrix(model, layout) * layout.bytes.grads as u64;
    }
    plan.optimizer_ps = (0..layout.pp).map(|rank| optimizer_ps(&plan, layout, price, rank)).collect();
    plan
}

fn kind_index(kind: LayerKind) -> u16 {
    KINDS.iter().position(|&k| k == kind).expect("KINDS lists every kind") as u16
}

fn layer(model: &Transformer, layout: &Layout, price: &Price, kind: LayerKind) -> LayerPlan {
    let held = match kind {
        LayerKind::Embedding => shard::embedding(model, layout),
        LayerKind::Dense => shard::dense_layer(model, layout),
        LayerKind::Moe => match &model.moe {
            Some(moe) => shard::moe_layer(model, moe, layout),
            // No layer of a model without experts is of this kind.
            None => return LayerPlan::default(),
        },
        LayerKind::Logits => shard::head(model, layout),
    };
    let pass = |pass| compose(&layer_steps(model, layout, kind, pass), layout, price);
    let mut backward = pass(Pass::Recompute);
    backward.extend(pass(Pass::Backward));
    LayerPlan { forward: pass(Pass::Forward), backward, held }
}

/// Time of a rank's optimizer step over the parameters it updates.
fn optimizer_ps(plan: &Plan, layout: &Layout, price: &Price, rank: u32) -> u64 {
    let mut held = Held::default();
    plan.chunks(layout, rank).for_each(|c| held.add(&plan.held(c)));
    let params = held.dense + held.expert;
    let shard = if layout.zero == 0 {
        params
    } else {
        held.dense.div_ceil(layout.dense_replicas() as u64) + held.expert.div_ceil(layout.expert_replicas() as u64)
    };
    optimizer_kernels(params, shard, layout).iter().map(|(_, k)| price.machine.kernels.kernel_ps(k)).sum()
}

/// How tokens divide over the experts' ranks; empty: evenly.
fn shares(model: &Transformer, layout: &Layout) -> Vec<Vec<u64>> {
    match &model.moe {
        Some(moe) if layout.ep > 1 && layout.expert_skew > 1.0 => {
            let tokens = layout.seq as u64 * layout.microbatch as u64 / layout.cp as u64 * moe.top_k as u64 * layout.ep as u64;
            vec![expert_loads(moe, layout, tokens)]
        }
        _ => Vec::new(),
    }
}

