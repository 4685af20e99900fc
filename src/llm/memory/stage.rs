//! The memory of one pipeline stage: the fixed part, and what each slot of the schedule adds and frees.
//!
//! Layer: memory.

use super::activations::{LayerActivations, Tokens};
use super::buffers::buffers;
use super::options::MemoryOptions;
use super::shares::Share;
use crate::model::pipeline::{PassKind, Slot, StageSchedule};
use crate::model::{Dlrm, Framework, Layer, Layout, Model, ModelFamily, Recompute, Transformer, pipeline_orders};

/// The memory that a rank of a stage holds at the peak of an iteration, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageMemory {
    /// Number of the stage, from 0.
    pub stage: u32,
    /// Parameters of its layers.
    pub params: u64,
    /// Gradients of its parameters.
    pub grads: u64,
    /// Master weights and moments.
    pub optimizer: u64,
    /// Activations of layers, over all micro-batches in flight.
    pub activations: u64,
    /// Activations outside the layers: the embedding's dropout mask, the final norm, logits, outputs kept for the next stage.
    pub ends: u64,
    /// Temporary memory of a backward pass: what it recomputes, and gradients of activations.
    pub working: u64,
    /// Communication buffers.
    pub buffers: u64,
    /// CUDA context and libraries.
    pub context: u64,
    /// Memory that the allocator cannot use.
    pub fragmentation: u64,
    /// Number of passes (of a micro-batch through a virtual stage) whose activations are held at the peak.
    pub in_flight: u64,
}

impl StageMemory {
    /// Bytes of everything.
    pub fn peak(&self) -> u64 {
        self.states() + self.activations + self.ends + self.working + self.buffers + self.context + self.fragmentation
    }

    /// Bytes of parameters, gradients and optimizer state.
    pub fn states(&self) -> u64 {
        self.params + self.grads + self.optimizer
    }
}

/// The memory that a stage holds during one slot of its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The slot; `None` for the optimizer's step.
    pub slot: Option<Slot>,
    /// Number of passes whose activations are held.
    pub in_flight: u32,
    /// Bytes of activations, in layers and outside of them.
    pub activations: u64,
    /// Bytes of everything.
    pub total: u64,
}

/// Bytes that one virtual stage keeps of one micro-batch, and bytes that its backward pass needs temporarily.
#[derive(Clone, Copy, Default)]
struct Chunk {
    layers: u64,
    ends: u64,
    working: u64,
    /// Bytes that gradients of weights need of its layers once gradients of inputs are computed. Only split backward passes keep them.
    layer_weights: u64,
    /// Bytes that they need outside the layers.
    end_weights: u64,
}

/// The order of a stage's passes.
pub(super) enum StageOrder {
    /// An order whose peak follows from a formula.
    Formula(StageSchedule),
    /// Every slot.
    Listed(Vec<Slot>),
}

impl StageOrder {
    pub(super) fn new(layout: &Layout, stage: u32) -> StageOrder {
        match layout.schedule.splits_backward() {
            true => StageOrder::Listed(pipeline_orders(layout).swap_remove(stage as usize)),
            false => StageOrder::Formula(StageSchedule::new(layout, stage)),
        }
    }
}

/// Numbers of passes through a virtual stage that hold memory.
#[derive(Clone, Copy, Default)]
struct Held {
    /// Passes whose activations are held.
    whole: u64,
    /// Passes of which only gradients of weights are left to compute.
    weights: u64,
}

/// A stage and its schedule.
pub(super) struct Stage {
    fixed: StageMemory,
    chunks: Vec<Chunk>,
    order: StageOrder,
    options: MemoryOptions,
}

impl Stage {
    pub(super) fn new(model: &Model, layout: &Layout, options: &MemoryOptions, stage: u32, order: StageOrder) -> Stage {
        let (chunks, counts) = match &model.body {
            ModelFamily::Transformer(t) => transformer_chunks(t, layout, options, stage),
            ModelFamily::Dlrm(d) => (vec![dlrm_chunk(d, layout)], Vec::new()),
            ModelFamily::Layers(layers) => (vec![layers_chunk(layers, layout)], Vec::new()),
        };
        let share = Share::new(model, layout, stage, &counts);
        let mut fixed = states(model, layout, &share);
        fixed.stage = stage;
        fixed.buffers = buffers(model, layout, options, &share);
        fixed.context = options.context_bytes;
        if let (ModelFamily::Transformer(t), true) = (&model.body, layout.defers_on(stage)) {
            // The product's input and the gradient of its result, of all micro-batches.
            let tokens = Tokens::new(layout);
            let logits = tokens.hidden(t) + tokens.e * tokens.n * u64::from(t.vocab).div_ceil(tokens.tp);
            fixed.buffers += u64::from(layout.microbatches()) * logits;
        }
        Stage { fixed, chunks, order, options: *options }
    }

    /// The memory at the peak.
    pub(super) fn peak(&self) -> StageMemory {
        match &self.order {
            StageOrder::Formula(schedule) => self.peak_of(schedule),
            StageOrder::Listed(slots) => {
                let mut peak: Option<StageMemory> = None;
                self.walk(slots, |_, state| {
                    if peak.as_ref().is_none_or(|peak| state.peak() > peak.peak()) {
                        peak = Some(state);
                    }
                });
                peak.expect("a schedule has at least one pass")
            }
        }
    }

    /// The memory at the peak, computed without a walk through all micro-batches.
    fn peak_of(&self, schedule: &StageSchedule) -> StageMemory {
        let held = |k: u64| (0..).zip(&self.chunks).map(move |(c, chunk)| (schedule.held(k, c), chunk));
        let dynamic = |k: u64| {
            let working = self.chunks[schedule.backward_chunk(k) as usize].working;
            working + held(k).map(|(n, chunk)| n * (chunk.layers + chunk.ends)).sum::<u64>()
        };
        // The first of equal ones.
        let peak = schedule
            .candidates()
            .max_by_key(|&k| (dynamic(k), u64::MAX - k))
            .expect("a schedule has at least one pass");
        let held: Vec<Held> = held(peak).map(|(whole, _)| Held { whole, weights: 0 }).collect();
        self.state(&held, Some((schedule.backward_chunk(peak) as usize, PassKind::Backward)))
    }

    /// The memory with `held` passes of each virtual stage, while a virtual stage runs a backward pass or a part of one.
    fn state(&self, held: &[Held], backward: Option<(usize, PassKind)>) -> StageMemory {
        let sum = |bytes_of: fn(&Chunk) -> [u64; 2]| {
            let of_chunk = |(c, n): (&Chunk, &Held)| n.whole * bytes_of(c)[0] + n.weights * bytes_of(c)[1];
            self.chunks.iter().zip(held).map(of_chunk).sum::<u64>()
        };
        let (activations, ends) = (sum(|c| [c.layers, c.layer_weights]), sum(|c| [c.ends, c.end_weights]));
        let working = backward.map_or(0, |(c, pass)| {
            let chunk = self.chunks[c];
            match pass {
                PassKind::Forward | PassKind::WeightGrads => 0,
                PassKind::Backward => chunk.working,
                // Layer by layer, what gradients of weights need takes the place of the activations. It may be more, where these are computed again.
                PassKind::InputGrads => {
                    chunk.working + (chunk.layer_weights + chunk.end_weights).saturating_sub(chunk.layers + chunk.ends)
                }
            }
        });
        let fragmentation = self.options.fragmented(activations + ends + working);
        let in_flight = held.iter().map(|n| n.whole + n.weights).sum();
        StageMemory { activations, ends, working, fragmentation, in_flight, ..self.fixed.clone() }
    }

    /// Calls `each` with the memory in each slot, and in the optimizer's step.
    fn walk(&self, slots: &[Slot], mut each: impl FnMut(Option<Slot>, StageMemory)) {
        let mut held = vec![Held::default(); self.chunks.len()];
        for &slot in slots {
            let chunk = slot.chunk as usize;
            if slot.pass == PassKind::Forward {
                held[chunk].whole += 1;
            }
            let backward = (slot.pass != PassKind::Forward).then_some((chunk, slot.pass));
            each(Some(slot), self.state(&held, backward));
            match slot.pass {
                PassKind::Forward => {}
                PassKind::Backward => held[chunk].whole -= 1,
                PassKind::InputGrads => {
                    held[chunk].whole -= 1;
                    held[chunk].weights += 1;
                }
                PassKind::WeightGrads => held[chunk].weights -= 1,
            }
        }
        each(None, self.state(&held, None));
    }

    pub(super) fn timeline(&self) -> Vec<Moment> {
        let by_formula: Vec<Slot>;
        let slots = match &self.order {
            StageOrder::Formula(schedule) => {
                by_formula = schedule.slots().collect();
                &by_formula
            }
            StageOrder::Listed(slots) => slots,
        };
        let mut moments = Vec::with_capacity(slots.len() + 1);
        self.walk(slots, |slot, state| {
            moments.push(Moment {
                slot,
                in_flight: state.in_flight as u32,
                activations: state.activations + state.ends,
                total: state.peak(),
            });
        });
        moments
    }
}

/// Bytes of parameters, gradients and optimizer state, divided as ZeRO says.
fn states(model: &Model, layout: &Layout, share: &Share) -> StageMemory {
    let bytes = layout.bytes;
    let sharded_from = |zero_stage: u8, bytes_each: u32| {
        let divide = |n: u64, ranks: u32| if layout.zero >= zero_stage { n.div_ceil(ranks as u64) } else { n };
        let experts = if layout.hybrid() { layout.shards() } else { layout.expert_replicas() };
        bytes_each as u64 * (divide(share.dense, layout.shards()) + divide(share.experts, experts))
    };
    // Each quantised matrix, and where products need it its transpose for the backward pass, as Transformer Engine keeps them between micro-batches.
    let fsdp = layout.fsdp() && (layout.zero == 3 || layout.pp > 1);
    let quantised = if layout.quantised() && !fsdp {
        // If parameters have one byte, they are one of the two orders themselves.
        (layout.orders_kept() - u64::from(bytes.params == 1)) * share.matrices * layout.precision.bytes_of_32()
            / 32
            / if layout.zero == 3 { layout.shards() as u64 } else { 1 }
    } else {
        0
    };
    // Tables have sparse gradients, which count as activations, and one fp32 accumulator per row (row-wise AdaGrad).
    let (tables, accumulators) = match &model.body {
        ModelFamily::Dlrm(d) => (bytes.params as u64 * share.tables, 4 * share.tables / d.embedding_dim as u64),
        _ => (0, 0),
    };
    // FSDP shards the master weights, and gradients have the same type. Copies for computing exist only while they are gathered.
    let (params, grads) = if fsdp {
        (0, sharded_from(2, bytes.optimizer / 3))
    } else {
        (sharded_from(3, bytes.params), sharded_from(2, bytes.grads))
    };
    StageMemory {
        params: params + quantised + tables,
        grads,
        optimizer: sharded_from(1, bytes.optimizer) + accumulators,
        ..StageMemory::default()
    }
}

/// Each virtual stage of `stage`, and its numbers of (dense layers, layers with experts).
fn transformer_chunks(
    t: &Transformer,
    layout: &Layout,
    options: &MemoryOptions,
    stage: u32,
) -> (Vec<Chunk>, Vec<(u32, u32)>) {
    // Both arrays are indexed by whether a layer has experts: layers with the layout's recomputation, and layers that keep everything.
    let both_kinds = |layout: &Layout| [false, true].map(|moe| LayerActivations::new(t, layout, moe));
    let recomputing = both_kinds(layout);
    let keeping = match layout.recompute_layers {
        0 => recomputing,
        _ => both_kinds(&Layout { recompute: Recompute::None, ..layout.clone() }),
    };
    let tokens = Tokens::new(layout);
    let hidden = tokens.hidden(t);
    let all = layout.chunk_layers(t.layers, t.mtp);
    let (mut first_layer, mut chunks, mut counts) = (0, Vec::new(), Vec::new());
    let mut in_host = layout.offload_layers;
    for (global, &n) in all.iter().enumerate() {
        // A second pipeline begins with the first layer again.
        let in_model = global as u32 % layout.stages_of_microbatch();
        first_layer = if in_model == 0 { 0 } else { first_layer };
        let layers = first_layer..first_layer + n;
        let first_whole = first_layer + layout.recomputed_of(n);
        first_layer += n;
        if layout.rank_of_stage(global as u32) != stage {
            continue;
        }
        let (first, last) = (in_model == 0, in_model + 1 == layout.stages_of_microbatch());
        // A module that predicts a further token has a layer like the last one.
        let further = if last { t.mtp } else { 0 };
        let further_moe = if t.is_moe(t.layers - 1) { further } else { 0 };
        let n_moe = layers.clone().filter(|&l| t.is_moe(l)).count() as u32 + further_moe;
        let n_dense = n + further - n_moe;
        let offloaded = [n_dense.min(in_host), n_moe.min(in_host - n_dense.min(in_host))];
        in_host -= offloaded[0] + offloaded[1];
        let mut chunk = Chunk::default();
        // Offloaded layers by kind. Of each kind, one is in use and one is being copied.
        let (mut to_offload, mut to_stage, mut staged) = (offloaded, [2, 2], 0);
        let stage_layers = layers.map(|l| (t.is_moe(l), l >= first_whole));
        for (experts, keeps_all) in stage_layers.chain((0..further).map(|_| (further_moe > 0, false))) {
            let kind = if keeps_all { keeping } else { recomputing }[usize::from(experts)];
            chunk.working = chunk.working.max(kind.working());
            chunk.layer_weights += kind.weights;
            let kind_idx = usize::from(experts);
            if to_offload[kind_idx] == 0 {
                chunk.layers += kind.kept;
                continue;
            }
            to_offload[kind_idx] -= 1;
            if to_stage[kind_idx] > 0 {
                to_stage[kind_idx] -= 1;
                staged += kind.kept;
            }
        }
        chunk.working += staged;
        if first {
            chunk.ends += tokens.mask(t);
        }
        if last {
            // Inputs of the final norm and of the output matrix, and logits (divided over the vocabulary).
            let loss = Loss::new(t, layout, &tokens);
            chunk.ends += 2 * hidden + loss.kept;
            // Each module: both hidden states before and after their norms, and its own final norm, logits and loss.
            chunk.ends += u64::from(t.mtp) * (6 * hidden + loss.kept);
            // The product's input and the gradient of its result; each module's projection besides.
            let logits = hidden + tokens.e * tokens.n * u64::from(t.vocab).div_ceil(tokens.tp);
            let projection = 2 * hidden + tokens.hidden_of_ranks(t);
            chunk.end_weights += logits + u64::from(t.mtp) * (logits + projection);
            // Gradients of logits exist before the first layer's backward pass; the logits are freed by then.
            if loss.working > 0 {
                chunk.working = chunk.working.saturating_sub(loss.kept).max(loss.working);
            }
        } else if options.keep_stage_outputs || layout.fsdp() {
            // PyTorch's pipelines keep a stage's output for its backward pass (`fwd_cache` of torch/distributed/pipelining/stage.py).
            chunk.ends += hidden;
        }
        chunks.push(chunk);
        counts.push((n_dense, n_moe));
    }
    (chunks, counts)
}

/// Bytes that the loss keeps of its logits, and bytes that its backward pass needs temporarily.
struct Loss {
    kept: u64,
    working: u64,
}

impl Loss {
    /// The loss of one micro-batch. Megatron's loss keeps fp32 exponentials and turns them into gradients in place. PyTorch's keeps the logarithms of
    /// probabilities in fp32. Their gradient and that of the logits are two more tensors of that size, and over tensor-parallel ranks exponentials are a third
    /// (torch/distributed/tensor/parallel/loss.py).
    fn new(t: &Transformer, layout: &Layout, tokens: &Tokens) -> Loss {
        let logits = tokens.n * (t.vocab as u64).div_ceil(tokens.tp);
        let copies = if tokens.tp > 1 { 3 } else { 2 };
        match (layout.fused_loss, layout.framework) {
            (true, _) => Loss { kept: tokens.e * logits, working: tokens.e * logits },
            (false, Framework::Megatron) => Loss { kept: 4 * logits, working: 0 },
            (false, _) => Loss { kept: 4 * logits, working: 4 * copies * logits },
        }
    }
}

fn layers_chunk(layers: &[Layer], layout: &Layout) -> Chunk {
    let scale = |bytes: u64| bytes / 2 * layout.bytes.activations as u64 * layout.microbatch as u64;
    let widest = layers.iter().map(|l| scale(l.activation_bytes)).max().unwrap_or(0);
    Chunk { layers: layers.iter().map(|l| scale(l.activation_bytes)).sum(), working: 2 * widest, ..Chunk::default() }
}

/// Outputs of both networks' layers, the dot products, and the looked-up vectors before and after the all-to-all. The backward pass needs gradients of the
/// latter while they are scattered.
fn dlrm_chunk(d: &Dlrm, layout: &Layout) -> Chunk {
    let per_sample = |width: u64| width * layout.bytes.activations as u64 * layout.microbatch as u64;
    let outputs: u64 = d.mlp_widths().iter().flat_map(|w| &w[..]).sum();
    let vectors = d.tables as u64 * d.embedding_dim as u64;
    Chunk {
        layers: per_sample(outputs + 2 * vectors),
        working: per_sample(vectors * d.pooling as u64),
        ..Chunk::default()
    }
}
