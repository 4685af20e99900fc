//! How long a step takes on the stages of an instance, and what its ranks exchange.
//!
//! Kernels are those of a training forward pass over as many tokens, except for the attention core. There, chunks of prompts attend to themselves and to what
//! is before them; decoding sequences read their keys and values once. Weights are read once per step whatever it holds, so small steps are bound by memory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::kv::{kv_layer_bytes, narrow_bytes};
use super::setup::{Draft, Pool, PoolRole, ServingSetup};
use super::step_shape::{StepShape, StepSize};
use crate::collective::CollectiveOp;
use crate::compute::{Among, Dtype, Gpu, Kernel, LayerKind, LayerStep, Pass, Site, expert_loads, kind_of, layer_steps};
use crate::model::Moe;
use crate::workload::training::{Machine, ServerSpan};

/// Time by what bounds it, in ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoundTimes {
    /// Kernels that arithmetic bounds, without their launches.
    pub compute: u64,
    /// Kernels that memory bounds, without their launches.
    pub memory: u64,
    /// Launches of kernels, and the host's work between steps.
    pub launch: u64,
    /// Collectives and messages between stages, on an idle system.
    pub network: u64,
}

impl BoundTimes {
    pub(super) fn add(&mut self, other: &BoundTimes) {
        self.compute += other.compute;
        self.memory += other.memory;
        self.launch += other.launch;
        self.network += other.network;
    }

    /// Time of kernels with their launches.
    pub fn kernels(&self) -> u64 {
        self.compute + self.memory + self.launch
    }
}

/// Layers of a stage whose kernels and collectives are joined in the simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Time of the kernels.
    pub kernel_ps: u64,
    /// Collectives, joined by kind.
    pub exchanges: Vec<JoinedExchange>,
}

/// Collectives of one kind that are joined in the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinedExchange {
    /// Ranks that take part.
    pub among: Among,
    /// Operation of these collectives.
    pub op: CollectiveOp,
    /// Bytes of all of them together.
    pub bytes: u64,
    /// Time in ps that they take one after another, minus the time of one collective with all their bytes.
    pub latency_ps: u64,
    /// Time in ps that they take one after another.
    pub ps: u64,
}

/// The work of a stage in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageCost {
    /// Pieces in the order of layers.
    pub pieces: Vec<Piece>,
    /// Time in ps after the last piece: the host's work, on the last stage only.
    pub overhead_ps: u64,
    /// Bytes that each rank sends to the next stage; 0 on the last stage.
    pub send_bytes: u64,
    /// Time that a send takes by estimate.
    pub send_ps: u64,
    /// Time of its kernels by what bounds them.
    pub bound: BoundTimes,
}

impl StageCost {
    /// Time in ps from the first kernel to the end of the stage, without the send to the next stage.
    pub fn ps(&self) -> u64 {
        let exchanges = |p: &Piece| p.exchanges.iter().map(|e| e.ps).sum::<u64>();
        self.overhead_ps + self.pieces.iter().map(|p| p.kernel_ps + exchanges(p)).sum::<u64>()
    }
}

/// Computes the costs of steps. The cost of a layer is computed once for each number of tokens.
pub struct StepCosts<'a> {
    setup: &'a ServingSetup,
    machine: Machine<'a>,
    gpu: &'a Gpu,
    /// Server of each rank.
    servers: &'a [u32],
    /// Known costs of layers, by pool, kind and tokens.
    layers: RefCell<HashMap<(usize, LayerKind, u32), Arc<LayerCost>>>,
}

/// The cost of one layer, without its attention core.
#[derive(Clone, Debug, Default)]
struct LayerCost {
    bound: BoundTimes,
    exchanges: Vec<(Among, CollectiveOp, u64)>,
}

impl<'a> StepCosts<'a> {
    /// `servers` is the server of each rank.
    pub fn new(setup: &'a ServingSetup, machine: Machine<'a>, gpu: &'a Gpu, servers: &'a [u32]) -> StepCosts<'a> {
        StepCosts { setup, machine, gpu, servers, layers: RefCell::default() }
    }

    /// Time in ps of a message between two ranks on an idle system.
    pub fn message_ps(&self, bytes: u64, src: u32, dst: u32) -> u64 {
        self.machine.comm.message_ps(bytes, self.servers[src as usize] == self.servers[dst as usize])
    }

    /// The cost of a stage of an instance in a step. `pool_idx` is the pool of the instance. `busiest` is the size of the step on the busiest of the instances
    /// that share its experts: all of them exchange as much.
    pub fn stage(&self, pool_idx: usize, instance: u32, stage: u32, shape: &StepShape, busiest: StepSize) -> StageCost {
        let padded = busiest.tokens;
        let (setup, pool) = (self.setup, &self.setup.pools[pool_idx]);
        let t = setup.transformer();
        let (first, end) = pool.stages(t.layers)[stage as usize];
        let cores = [false, true].map(|windowed| self.core(pool, shape, windowed));
        let joined = setup.joined_layers.max(1);
        let mut cost = StageCost::default();
        let mut layer = first;
        while layer < end {
            let layer_end = layer.saturating_add(joined).min(end);
            let mut bound = BoundTimes::default();
            (layer..layer_end).for_each(|l| bound.add(&cores[usize::from(t.is_windowed(l))]));
            let mut exchanges: Vec<(Among, CollectiveOp, u64, u64)> = Vec::new();
            let mut add = |layer: &LayerCost, times: u64| {
                (0..times).for_each(|_| bound.add(&layer.bound));
                for &(among, op, bytes) in &layer.exchanges {
                    match exchanges.iter_mut().find(|e| (e.0, e.1, e.2) == (among, op, bytes)) {
                        Some(e) => e.3 += times,
                        None => exchanges.push((among, op, bytes, times)),
                    }
                }
            };
            if layer == 0 {
                add(&self.layer(pool_idx, LayerKind::Embedding, padded), 1);
            }
            for kind in [LayerKind::Dense, LayerKind::Moe] {
                let experts = kind.has_experts(t);
                let n = (layer..layer_end).filter(|l| kind_of(t, *l).has_experts(t) == experts).count() as u64;
                if n > 0 {
                    add(&self.layer(pool_idx, kind, padded), n);
                }
            }
            if layer_end == t.layers {
                add(&self.head(pool, shape.outputs), 1);
                if let Some(draft) = setup.draft.filter(|_| busiest.decoding > 0 && pool.role != PoolRole::Prefill) {
                    self.draft(pool_idx, shape, busiest, draft, &mut add);
                }
            }
            cost.push(self, pool, instance, stage, bound, &exchanges);
            layer = layer_end;
        }
        if stage + 1 == pool.pp {
            cost.overhead_ps = setup.step_overhead_ps;
            cost.bound.launch += setup.step_overhead_ps;
        } else {
            cost.send_bytes = u64::from(padded) * u64::from(t.hidden) * 2;
            let rank = |stage: u32| pool.rank(instance, stage, 0);
            cost.send_ps = self.message_ps(cost.send_bytes, rank(stage), rank(stage + 1));
            cost.bound.network += cost.send_ps;
        }
        cost
    }

    /// Adds what drafting takes: a pass over all tokens of the step, which also fills the drafting layers' keys and values, then a pass a further token.
    fn draft(
        &self,
        pool_idx: usize,
        shape: &StepShape,
        busiest: StepSize,
        draft: Draft,
        add: &mut impl FnMut(&LayerCost, u64),
    ) {
        let (pool, t) = (&self.setup.pools[pool_idx], self.setup.transformer());
        let kind = kind_of(t, t.layers - 1);
        let windowed = t.is_windowed(t.layers - 1);
        let one_each = StepShape { decode_tokens: shape.decoding, chunks: Vec::new(), ..shape.clone() };
        for (passes, shape, tokens) in
            [(1, shape, busiest.tokens), (u64::from(draft.tokens) - 1, &one_each, busiest.decoding)]
        {
            let core = LayerCost { bound: self.core(pool, shape, windowed), exchanges: Vec::new() };
            add(&core, passes * u64::from(draft.layers));
            add(&self.layer(pool_idx, kind, tokens), passes * u64::from(draft.layers));
            add(&self.head(pool, shape.decoding), passes);
        }
    }

    /// Time of one kernel, by what bounds it.
    fn bound(&self, kernel: &Kernel) -> BoundTimes {
        self.bound_without(kernel, 0)
    }

    /// Time of one kernel that reads `saved` bytes less than its operands have in 16 bit, by what bounds it. Its arithmetic is not faster for that.
    fn bound_without(&self, kernel: &Kernel, saved: u64) -> BoundTimes {
        let bytes = (kernel.bytes() as f64 - saved as f64).max(0.0);
        let scaled = |ps: f64| (ps * self.setup.compute_scale) as u64;
        let ps = match kernel {
            // A product measured within a layer is slower than alone. That does not hold for reading keys and values.
            Kernel::Work { .. } => self.gpu.launch_ps as f64 + self.work_ps(kernel),
            _ => self.machine.kernels.kernel_ps(kernel) as f64 * self.without_training(kernel),
        };
        let launch = (self.gpu.launch_ps as f64).min(ps);
        let memory = bytes / self.gpu.stream_bps();
        let compute = kernel.dtype().map_or(0.0, |d| kernel.flops() as f64 / self.gpu.sustained_flops(d));
        let ps = match saved {
            0 => ps,
            _ => (ps - saved as f64 / self.gpu.stream_bps() * 1e12).max(launch + compute.max(memory) * 1e12),
        };
        let rest = scaled(ps) - scaled(launch).min(scaled(ps));
        let (compute, memory) = if compute > memory { (rest, 0) } else { (0, rest) };
        BoundTimes { compute, memory, launch: scaled(ps) - rest, network: 0 }
    }

    /// Factor on the time of a product in a layer of a training. What FP4 costs more there than FP8 is the training's: operands of gradients are transformed and
    /// rounded at random. Weights that are served were converted once.
    fn without_training(&self, kernel: &Kernel) -> f64 {
        match *kernel {
            Kernel::Gemm { dtype: Dtype::Nvfp4, .. } if self.gpu.supports(Dtype::Nvfp4) => {
                self.gpu.in_layer[Dtype::Fp8 as usize] / self.gpu.in_layer[Dtype::Nvfp4 as usize]
            }
            _ => 1.0,
        }
    }

    /// Time in ps of a kernel without its launch: the longer of its arithmetic at the sustained rate and its memory traffic.
    fn work_ps(&self, kernel: &Kernel) -> f64 {
        let compute = kernel.dtype().map_or(0.0, |d| kernel.flops() as f64 / self.gpu.sustained_flops(d));
        compute.max(kernel.bytes() as f64 / self.gpu.stream_bps()) * 1e12
    }

    /// Attention of one layer over all tokens of the step. A windowed layer reads at most its window of the tokens before.
    fn core(&self, pool: &Pool, shape: &StepShape, windowed: bool) -> BoundTimes {
        let t = self.setup.transformer();
        let window = if windowed { t.window } else { u32::MAX };
        let decode_context = shape.decode_context.min(u64::from(shape.decoding) * u64::from(window));
        let tp = u64::from(pool.tp);
        let heads = u64::from(t.heads).div_ceil(tp);
        let kv_layer = kv_layer_bytes(t, pool.tp, self.setup.kv_bytes);
        let mut sum = BoundTimes::default();
        let (kv_heads, head_dim) = match t.mla {
            Some(m) => (heads, u64::from(m.nope_dim + m.rope_dim + m.v_dim) / 2),
            None => (u64::from(t.kv_heads).div_ceil(tp), u64::from(t.head_dim)),
        };
        for &(len, before) in &shape.chunks {
            let attention = |seq_kv: u32, causal: bool| Kernel::Attention {
                batch: 1,
                heads,
                kv_heads,
                seq_q: u64::from(len),
                seq_kv: u64::from(seq_kv),
                head_dim,
                causal,
                backward: false,
                dtype: Dtype::Bf16,
            };
            let own = if len / 2 > window { attention(window, false) } else { attention(len, true) };
            sum.add(&self.bound(&own));
            let before = before.min(window);
            if before > 0 {
                // One kernel computes both parts, so there is one launch.
                let more = self.bound(&attention(before, false));
                sum.add(&BoundTimes { launch: 0, ..more });
            }
        }
        // Tokens of each decoding sequence.
        if let Some(each) = shape.decode_tokens.checked_div(shape.decoding) {
            // FLOPs of a query's products with a key and a value. With latent attention these are products with the compressed vector that all heads share.
            let per_pair = match t.mla {
                Some(m) => 2 * u64::from(2 * m.kv_rank + m.rope_dim),
                None => 4 * u64::from(t.head_dim),
            };
            let each = u64::from(each);
            let flops = each * decode_context * heads * per_pair;
            let queries = u64::from(shape.decode_tokens) * heads * head_dim * 2 * 2;
            let bytes = decode_context * kv_layer + queries;
            sum.add(&self.bound(&Kernel::Work { flops, bytes, dtype: Dtype::Bf16 }));
            let blocks = u64::from(shape.decoding) * kv_heads;
            let more = (self.gpu.decode_attention_ps(blocks).saturating_sub(self.gpu.launch_ps)) as f64;
            sum.add(&BoundTimes { memory: (more * self.setup.compute_scale) as u64, ..BoundTimes::default() });
        }
        sum
    }

    /// Cost of a submodule over this number of tokens, without the attention core.
    fn layer(&self, pool_idx: usize, kind: LayerKind, tokens: u32) -> Arc<LayerCost> {
        let key = (pool_idx, kind, tokens);
        if let Some(known) = self.layers.borrow().get(&key) {
            return Arc::clone(known);
        }
        let (pool, t) = (&self.setup.pools[pool_idx], self.setup.transformer());
        let layout = pool.layout(self.setup, tokens);
        let mut cost = LayerCost::default();
        for step in layer_steps(t, &layout, kind, Pass::Forward) {
            match step {
                LayerStep::Kernel { part, .. } if part.site == Site::Core => {}
                LayerStep::Kernel { part, kernel } => {
                    let experts =
                        t.moe.filter(|_| kind == LayerKind::Moe && matches!(part.site, Site::Up | Site::Down));
                    let kernel = experts.map_or(kernel, |moe| self.visited(kernel, &moe, pool, tokens));
                    let saved = if part.site == Site::Router { 0 } else { self.saved_bytes(&kernel) };
                    cost.bound.add(&self.bound_without(&kernel, saved));
                }
                LayerStep::Exchange { among, op, bytes, .. } => {
                    let among = if among == Among::ExpertTp { Among::Tp } else { among };
                    cost.exchanges.push((among, op, bytes))
                }
            }
        }
        let cost = Arc::new(cost);
        self.layers.borrow_mut().insert(key, Arc::clone(&cost));
        cost
    }

    /// Bytes by which weights of 4 bits are fewer than those of 16 that a product is described with.
    fn saved_bytes(&self, kernel: &Kernel) -> u64 {
        match *kernel {
            Kernel::Gemm { n, k, batch, .. } if self.setup.narrow_weights => {
                let weights = n * k * batch;
                2 * weights - narrow_bytes(weights)
            }
            _ => 0,
        }
    }

    /// The product of a rank's experts, limited to the experts that any token visits. With few tokens, most experts get none, and their weights are not read.
    fn visited(&self, kernel: Kernel, moe: &Moe, pool: &Pool, tokens: u32) -> Kernel {
        let Kernel::Gemm { n, k, batch: here, kept, apart, dtype, .. } = kernel else { return kernel };
        let total = u64::from(tokens) * u64::from(moe.top_k) * u64::from(pool.ep);
        let mine = expert_loads(moe, &pool.layout(self.setup, tokens), total)[0].max(1);
        // Expected number of experts with a token, if each token visits a random one.
        let missed = libm::pow(1.0 - 1.0 / here as f64, mine as f64);
        let batch = ((here as f64 * (1.0 - missed)).ceil() as u64).clamp(1, here);
        Kernel::Gemm { m: mine.div_ceil(batch), n, k, batch, kept, apart, dtype }
    }

    /// Cost of the final norm, the logits and the choice of `outputs` tokens. Ranks gather the logits.
    fn head(&self, pool: &Pool, outputs: u32) -> LayerCost {
        let mut cost = LayerCost::default();
        if outputs == 0 {
            return cost;
        }
        let t = self.setup.transformer();
        let (n, vocab, hidden) = (u64::from(outputs), u64::from(t.vocab), u64::from(t.hidden));
        for kernel in [
            Kernel::Memory { name: "rmsnorm", bytes: n * hidden * 4 },
            Kernel::gemm(n, vocab.div_ceil(u64::from(pool.tp)), hidden, Dtype::Bf16),
            Kernel::Memory { name: "sample", bytes: n * vocab * 4 },
        ] {
            cost.bound.add(&self.bound(&kernel));
        }
        if pool.tp > 1 {
            cost.exchanges.push((Among::Tp, CollectiveOp::AllGather, n * vocab * 2));
        }
        cost
    }

    /// How the members of a collective are spread over servers.
    fn span(&self, pool: &Pool, instance: u32, stage: u32, among: Among) -> ServerSpan {
        let ranks: Vec<u32> = match among {
            Among::Ep => {
                let first = instance / pool.ep * pool.ep;
                (first..first + pool.ep).map(|i| pool.rank(i, stage, 0)).collect()
            }
            _ => (0..pool.tp).map(|t| pool.rank(instance, stage, t)).collect(),
        };
        let mut members_on_server: HashMap<u32, u32> = HashMap::new();
        ranks.iter().for_each(|r| *members_on_server.entry(self.servers[*r as usize]).or_default() += 1);
        ServerSpan { members: ranks.len() as u32, per_server: members_on_server.values().copied().max().unwrap_or(1) }
    }
}

impl StageCost {
    /// Appends layers: their kernels, and their collectives joined by kind.
    fn push(
        &mut self,
        costs: &StepCosts,
        pool: &Pool,
        instance: u32,
        stage: u32,
        mut bound: BoundTimes,
        exchanges: &[(Among, CollectiveOp, u64, u64)],
    ) {
        let mut joined: Vec<JoinedExchange> = Vec::new();
        for &(among, op, bytes, times) in exchanges.iter().filter(|e| e.2 > 0) {
            let span = costs.span(pool, instance, stage, among);
            let alone = costs.machine.comm.collective_ps(op, bytes, span) * times;
            match joined.iter_mut().find(|j| (j.among, j.op) == (among, op)) {
                Some(j) => (j.bytes, j.ps) = (j.bytes + bytes * times, j.ps + alone),
                None => joined.push(JoinedExchange { among, op, bytes: bytes * times, latency_ps: 0, ps: alone }),
            }
        }
        for j in &mut joined {
            let span = costs.span(pool, instance, stage, j.among);
            let as_one = costs.machine.comm.collective_ps(j.op, j.bytes, span);
            j.latency_ps = j.ps.saturating_sub(as_one);
            j.ps = j.latency_ps + as_one;
            bound.network += j.ps;
        }
        self.pieces.push(Piece { kernel_ps: bound.kernels(), exchanges: joined });
        self.bound.add(&bound);
    }
}
