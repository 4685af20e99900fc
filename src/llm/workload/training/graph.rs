//! Writes a planned job as a graph. It acts as each rank in turn and writes its kernels, collectives, sends and receives.
//!
//! Layer: workload. Ranks of one pipeline stage do the same, so there are as many programs as pipeline ranks. If experts are loaded unevenly, every rank
//! computes as long as the busiest one, because the others would wait for it at the next exchange.

use super::aligned::AlignedReductions;
use super::evaluate::{norm_purpose, sequence_grads, stage_gather};
use super::placement::{Purpose, RankPlacement};
use super::plan::{Held, JobPlan, Sync, buckets, end_idx};
use super::sharded::{Fetch, ShardedPasses, gather_comms, reduce_comms};
use super::step::{Comm, Overlap, PassStep, piece, share};
use crate::collective::CollectiveOp;
use crate::model::pipeline::{PassKind, Slot, StageSchedule};
use crate::model::{Layout, is_block, pipeline_orders};
use crate::workload::program::{Dim, Group, Op, OpKind, Peer, Phase, Stream};
use crate::workload::rules::{Message, ProgramWriter, RankSchedule};
use hyperfold_base::budget;

/// Lane of the pipeline's communication: sends to the next stage.
const TO_NEXT: u8 = 0;
/// Lane of receives from the stage before.
const FROM_PREVIOUS: u8 = 1;
/// Lane of sends to the stage before.
const TO_PREVIOUS: u8 = 2;
/// Lane of receives from the next stage.
const FROM_NEXT: u8 = 3;
/// Number of these lanes.
const N_MESSAGE_LANES: u8 = 4;
/// Lane of parameter gathering. Megatron gathers parameters at the same time as it reduces gradients. The process groups of PyTorch have one stream, so there
/// the two follow each other.
const GATHER_LANE: u8 = 1;

/// A planned job with the places and groups of its ranks.
pub(super) struct JobGraph<'a> {
    pub plan: &'a JobPlan,
    pub layout: &'a Layout,
    pub iterations: u32,
    placement: RankPlacement,
    groups: Vec<Group>,
    slots: Vec<Vec<u32>>,
    purposes: Vec<Purpose>,
    /// Passes of each pipeline rank in an iteration. Empty unless backward passes are split.
    orders: Vec<Vec<Slot>>,
    /// Weights of the experts' ranks as destinations of all-to-alls; empty if the load is even.
    shares: Vec<Vec<u64>>,
}

impl<'a> JobGraph<'a> {
    pub(super) fn new(
        plan: &'a JobPlan,
        layout: &'a Layout,
        placement: RankPlacement,
        iterations: u32,
        shares: Vec<Vec<u64>>,
    ) -> JobGraph<'a> {
        let purposes: Vec<Purpose> = Purpose::ALL.into_iter().filter(|&p| placement.size(p) > 1).collect();
        let (groups, slots) = placement.all(&purposes);
        let orders = if layout.schedule.splits_backward() { pipeline_orders(layout) } else { Vec::new() };
        JobGraph { plan, layout, iterations, placement, groups, slots, purposes, orders, shares }
    }
}

impl RankSchedule for JobGraph<'_> {
    fn ranks(&self) -> u32 {
        self.placement.ranks()
    }

    fn groups(&self) -> Vec<Group> {
        self.groups.clone()
    }

    fn slots(&self, rank: u32) -> Vec<u32> {
        self.slots[rank as usize].clone()
    }

    fn program_key(&self, rank: u32) -> u64 {
        u64::from(self.placement.coords(rank).pp)
    }

    fn write(&self, rank: u32, writer: &mut ProgramWriter) {
        let coords = self.placement.coords(rank);
        budget::announce_rows::<Op>("operations", self.min_ops(coords.pp));
        let mut pen = Pen {
            writer,
            graph: self,
            plan: self.plan,
            rank: coords.pp,
            last: None,
            stretch: 1.0,
            pending: Vec::new(),
            reductions: Vec::new(),
            late: Vec::new(),
            gathered: Vec::new(),
            asked: Vec::new(),
        };
        (0..self.iterations).for_each(|_| pen.iteration());
    }

    fn shares(&self) -> Vec<Vec<u64>> {
        self.shares.clone()
    }
}

impl JobGraph<'_> {
    /// The minimum number of ops in the program of a pipeline rank: its kernels.
    pub(super) fn min_ops(&self, pp: u32) -> u64 {
        let is_op = |step: &&PassStep| !matches!(step, PassStep::Comm(_) | PassStep::Kernel { ps: 0, .. });
        let n_ops = |&l: &u16| {
            let layer = &self.plan.layers[l as usize];
            let n_of = |steps: &[PassStep]| steps.iter().filter(is_op).count() as u64;
            let split = n_of(&layer.backward) + n_of(&layer.weights);
            let backward = if layer.whole.is_empty() { split } else { split.min(n_of(&layer.whole)) };
            n_of(&layer.forward) + backward
        };
        let ops_per_microbatch: u64 = self.plan.chunks(self.layout, pp).flatten().map(n_ops).sum();
        u64::from(self.iterations) * u64::from(self.layout.passes_of_chunk()) * ops_per_microbatch
    }
}

/// Writes the program of one rank.
struct Pen<'p, 'w, 'a> {
    writer: &'p mut ProgramWriter<'w>,
    graph: &'p JobGraph<'a>,
    plan: &'a JobPlan,
    /// Pipeline rank.
    rank: u32,
    /// Op of the last kernel.
    last: Option<u32>,
    /// Factor by which kernels of this pass take longer because gradients are reduced or parameters gathered at the same time.
    stretch: f64,
    /// Ops that the next kernel waits for, besides the last kernel.
    pending: Vec<u32>,
    /// Ops that reduce gradients in this iteration.
    reductions: Vec<u32>,
    /// Gradients that are reduced after the end of the pipeline.
    late: Vec<Held>,
    /// By chunk: the last layer of each bucket of parameters, and the ops that gather it.
    gathered: Vec<Vec<(usize, Vec<u32>)>>,
    /// Ops that gather sharded parameters, and the part of the passes that waits for them.
    asked: Vec<(usize, Vec<u32>)>,
}

impl Pen<'_, '_, '_> {
    fn kernel(&mut self, name: &str, ps: u64, phase: Phase, more: &[u32]) -> u32 {
        let mut deps = std::mem::take(&mut self.pending);
        deps.extend_from_slice(more);
        let ps = if self.stretch > 1.0 { (ps as f64 * self.stretch) as u64 } else { ps };
        let op = self.writer.compute(name, ps, phase, &deps);
        self.last = Some(op);
        op
    }

    /// The slot of a purpose. `None` if its groups have one member or this rank takes no part.
    fn slot(&self, purpose: Purpose) -> Option<u16> {
        let ends = self.rank == 0 || self.rank + 1 == self.graph.layout.pp;
        if purpose == Purpose::Embedding && !ends {
            return None;
        }
        self.graph.purposes.iter().position(|&p| p == purpose).map(|s| s as u16)
    }

    /// Writes a collective on a stream. `None` if it has nothing to do.
    fn comm_on(&mut self, comm: &Comm, stream: Stream, deps: &[u32]) -> Option<u32> {
        let slot = self.slot(comm.purpose)?;
        if comm.bytes == 0 {
            return None;
        }
        let dim = comm.dim();
        let uneven = comm.op.is_all_to_all() && comm.purpose == Purpose::Expert && !self.graph.shares.is_empty();
        let shares = uneven.then_some(0);
        let kind = OpKind::Collective { op: comm.op, slot, bytes: comm.bytes, dim, algorithm: None, shares };
        Some(self.writer.op(comm.name, kind, stream, deps))
    }

    fn comm(&mut self, comm: &Comm, deps: &[u32]) -> Option<u32> {
        self.comm_on(comm, Stream::comm(comm.dim()), deps)
    }

    /// The ops that a communication of everything computed so far waits for.
    fn so_far(&self) -> Vec<u32> {
        self.last.iter().chain(&self.pending).copied().collect()
    }

    fn step(&mut self, step: &PassStep, phase: Phase) {
        match step {
            PassStep::Kernel { ps: 0, .. } => {}
            PassStep::Kernel { name, ps } => {
                self.kernel(name, *ps, phase, &[]);
            }
            PassStep::Comm(comm) => {
                let deps = self.so_far();
                if let Some(op) = self.comm(comm, &deps) {
                    self.pending = vec![op];
                }
            }
            PassStep::Both { name, ps, comm, overlap } => self.both(name, *ps, comm, *overlap, phase),
        }
    }

    fn both(&mut self, name: &str, ps: u64, comm: &Comm, overlap: Overlap, phase: Phase) {
        let deps_so_far = self.so_far();
        match overlap {
            Overlap::Beside => {
                let op = self.comm(comm, &deps_so_far);
                self.kernel(name, ps, phase, &[]);
                self.pending.extend(op);
            }
            Overlap::Feeds(n) => {
                for i in 0..n {
                    let deps = if i == 0 { deps_so_far.as_slice() } else { &[] };
                    let op = self.comm(&piece(comm, n, i), deps);
                    self.pending.extend(op);
                    self.kernel(name, share(ps, n, i), phase, &[]);
                }
            }
            Overlap::Drains(n) => {
                let mut drained = None;
                for i in 0..n {
                    let kernel = self.kernel(name, share(ps, n, i), phase, &[]);
                    drained = self.comm(&piece(comm, n, i), &[kernel]).or(drained);
                }
                self.pending.extend(drained);
            }
            Overlap::Ring(n) => {
                let mut arriving = self.comm(&piece(comm, n - 1, 0), &deps_so_far);
                for i in 0..n {
                    self.kernel(name, share(ps, n, i), phase, &[]);
                    self.pending.extend(arriving.take());
                    if i + 2 < n {
                        arriving = self.comm(&piece(comm, n - 1, i + 1), &[]);
                    }
                }
            }
        }
    }

    fn iteration(&mut self) {
        let layout = self.graph.layout;
        let plan = self.plan;
        let sync = Sync::of(layout);
        if sync.gather_step && layout.overlap_param {
            self.gather_params();
        }
        if layout.schedule.splits_backward() {
            return self.split_iteration();
        }
        let mut backwards = vec![0; layout.vpp.max(1) as usize];
        let mut before = vec![None; layout.vpp.max(1) as usize];
        let schedule = StageSchedule::new(layout, self.rank);
        let warmup = schedule.warmup as usize;
        let mut pairs = Vec::new();
        let slots = schedule.order();
        let aligned = AlignedReductions::of(plan, layout, self.rank, &slots);
        // Without a pipeline there is one virtual stage.
        let sharded = sync.shards_passes().then(|| ShardedPasses::of_microbatch(plan, layout, &plan.stages[0]));
        let steady = warmup..slots.len() - warmup;
        for (number, slot) in slots.iter().enumerate() {
            let backward = slot.pass == PassKind::Backward;
            if steady.contains(&number) && (number - warmup).is_multiple_of(2) {
                pairs.push(self.writer.next_op());
            }
            if number == steady.end {
                pairs.push(self.writer.next_op());
            }
            let gather = sync.gathers(backward, before[slot.chunk as usize].replace(backward));
            let stage = layout.virtual_stage(self.rank, slot.chunk);
            self.receive(stage, backward);
            let layers = &plan.stages[stage as usize];
            let (gathers, reduces) = plan.stretch[stage as usize];
            let (forward_stretch, backward_stretch) = plan.messages[stage as usize];
            if backward {
                backwards[slot.chunk as usize] += 1;
                let last = backwards[slot.chunk as usize] == layout.microbatches();
                let reduce = (sync.reduce_each || last) && aligned.is_none();
                let slowed = aligned.as_ref().map_or(1.0, |aligned| aligned.stretch[number]);
                self.stretch = backward_stretch * slowed * if reduce { reduces } else { 1.0 };
                match &sharded {
                    Some(passes) => self.sharded_pass(passes, PassKind::Backward),
                    None if gather => self.kept_pass(layers, PassKind::Backward),
                    None => self.backward(layers, PassKind::Backward, reduce && !sync.kept),
                }
                self.stretch = 1.0;
                if sync.kept && last {
                    self.reduce_kept(layers);
                }
            } else {
                let overlaps_gather = if sync.kept { gather } else { sync.gather_forward || slot.microbatch == 0 };
                self.stretch = forward_stretch * if overlaps_gather { gathers } else { 1.0 };
                match &sharded {
                    Some(passes) => self.sharded_pass(passes, PassKind::Forward),
                    None if gather => self.kept_pass(layers, PassKind::Forward),
                    None => self.forward(layers, slot.chunk as usize),
                }
            }
            self.stretch = 1.0;
            self.send(stage, backward);
            if number + 1 == slots.len() && layout.defers_on(self.rank) {
                self.deferred_weights();
            }
            for &chunk in aligned.iter().flat_map(|aligned| &aligned.after[number]) {
                self.reduce_chunk(chunk);
            }
        }
        if pairs.len() == steady.len() / 2 {
            pairs.push(self.writer.next_op());
        }
        self.writer.pairs(pairs);
        self.finish();
    }

    /// Writes an iteration whose backward passes are split. PRECONDITION: parameters are not sharded, so no pass gathers any
    /// (`Layout::check_split_backward`).
    fn split_iteration(&mut self) {
        let (plan, layout) = (self.plan, self.graph.layout);
        let gather_step = Sync::of(layout).gather_step;
        let mut completed = vec![0; layout.vpp as usize];
        let order = &self.graph.orders[self.rank as usize];
        for (number, slot) in order.iter().enumerate() {
            let chunk = slot.chunk as usize;
            let stage = layout.virtual_stage(self.rank, slot.chunk);
            let layers = &plan.stages[stage as usize];
            let (gathers, reduces) = plan.stretch[stage as usize];
            let (forward_stretch, backward_stretch) = plan.messages[stage as usize];
            let ends_block = number > 0 && is_block(layout, self.rank, order, number - 1);
            let begins_block = is_block(layout, self.rank, order, number);
            // A block waits for both inputs, and sends both results at its end.
            let received = if begins_block { &order[number..number + 2] } else { &order[number..=number] };
            for slot in received.iter().filter(|_| !ends_block) {
                if slot.pass != PassKind::WeightGrads {
                    self.receive(layout.virtual_stage(self.rank, slot.chunk), slot.pass.passes_gradients());
                }
            }
            if slot.pass.completes_gradients() {
                completed[chunk] += 1;
            }
            let reduce = slot.pass.completes_gradients() && completed[chunk] == layout.passes_of_chunk();
            match slot.pass {
                PassKind::Forward => {
                    let overlaps_gather = gather_step && slot.microbatch == 0;
                    self.stretch = forward_stretch * if overlaps_gather { gathers } else { 1.0 };
                    self.forward(layers, chunk);
                }
                PassKind::Backward | PassKind::InputGrads => {
                    self.stretch = backward_stretch * if reduce { reduces } else { 1.0 };
                    self.backward(layers, slot.pass, reduce);
                }
                PassKind::WeightGrads => {
                    self.stretch = if reduce { reduces } else { 1.0 };
                    self.backward(layers, slot.pass, reduce);
                }
            }
            self.stretch = 1.0;
            let sent = if ends_block { &order[number - 1..=number] } else { &order[number..=number] };
            for slot in sent.iter().filter(|_| !begins_block) {
                if slot.pass != PassKind::WeightGrads {
                    self.send(layout.virtual_stage(self.rank, slot.chunk), slot.pass.passes_gradients());
                }
            }
        }
        self.finish();
    }

    fn forward(&mut self, layers: &[u16], chunk: usize) {
        let plan = self.plan;
        let mut gathered = self.gathered.get_mut(chunk).map(std::mem::take).unwrap_or_default().into_iter();
        let mut first = 0;
        for (i, &l) in layers.iter().enumerate() {
            if i == first
                && let Some((last, ops)) = gathered.next()
            {
                self.pending.extend(ops);
                first = last + 1;
            }
            plan.layers[l as usize].forward.iter().for_each(|s| self.step(s, Phase::Forward));
        }
        self.end(PassKind::Forward, Phase::Forward);
    }

    /// Writes the steps at the end of a pass of a virtual stage.
    fn end(&mut self, pass: PassKind, phase: Phase) {
        let plan = self.plan;
        end_idx(pass).iter().flat_map(|&i| &plan.ends[i]).for_each(|s| self.step(s, phase));
    }

    /// Writes a backward pass, or a part of one, over parameters that are not sharded.
    fn backward(&mut self, layers: &[u16], pass: PassKind, reduce: bool) {
        let (plan, layout) = (self.plan, self.graph.layout);
        let reversed: Vec<u16> = layers.iter().rev().copied().collect();
        let size = if layout.overlap_grad { Sync::of(layout).bucket_bytes } else { u64::MAX };
        let list = if reduce { buckets(plan, &reversed, layout.bytes.grads, size) } else { Vec::new() };
        let mut next = list.iter().peekable();
        for (i, &l) in reversed.iter().enumerate() {
            plan.layers[l as usize].steps(pass).iter().for_each(|s| self.step(s, Phase::Backward));
            if let Some((_, held)) = next.next_if(|b| b.0 == i) {
                if layout.overlap_grad {
                    self.reduce(held);
                } else {
                    self.late.push(*held);
                }
            }
        }
        self.end(pass, Phase::Backward);
    }

    /// Writes the gradients of the output matrix of all micro-batches.
    fn deferred_weights(&mut self) {
        let plan = self.plan;
        let last = plan.stages.last().and_then(|stage| stage.last()).expect("the last stage has the output matrix");
        for _ in 0..self.graph.layout.microbatches() {
            plan.layers[*last as usize].weights.iter().for_each(|s| self.step(s, Phase::Backward));
        }
    }

    /// Writes a pass of a micro-batch whose parameters or gradients are sharded.
    fn sharded_pass(&mut self, passes: &ShardedPasses, pass: PassKind) {
        let plan = self.plan;
        let phase = if pass == PassKind::Forward { Phase::Forward } else { Phase::Backward };
        let range = passes.range(pass);
        let mut fetches = passes.fetches.iter().filter(|f| range.contains(&f.at)).peekable();
        let mut reductions = passes.reductions.iter().filter(|r| range.contains(&r.after)).peekable();
        for i in range.clone() {
            while let Some(fetch) = fetches.next_if(|f| f.at == i) {
                self.fetch(fetch, phase);
            }
            let part = &passes.parts[i];
            for (_, ops) in self.asked.extract_if(.., |asked| asked.0 <= i) {
                self.pending.extend(ops);
            }
            plan.layers[part.layer as usize].steps(pass)[part.steps.clone()].iter().for_each(|s| self.step(s, phase));
            while let Some(reduction) = reductions.next_if(|r| r.after == i) {
                self.lists(reduction.modules, phase);
                self.reduce(&reduction.held);
                if !self.graph.layout.overlap_grad {
                    // A rank that shards gradients and overlaps nothing waits for the reduction before the next micro-batch.
                    self.pending.extend(std::mem::take(&mut self.reductions));
                }
            }
        }
    }

    /// Writes a pass of FSDP on a pipeline that gathers the parameters of its virtual stage.
    fn kept_pass(&mut self, layers: &[u16], pass: PassKind) {
        let plan = self.plan;
        let phase = if pass == PassKind::Forward { Phase::Forward } else { Phase::Backward };
        let passes = ShardedPasses::of_pass(plan, self.graph.layout, layers, pass);
        for (i, part) in passes.parts.iter().enumerate() {
            passes.fetches.iter().filter(|f| f.at == i).for_each(|f| self.fetch(f, phase));
            for (_, ops) in self.asked.extract_if(.., |asked| asked.0 <= i) {
                self.pending.extend(ops);
            }
            let layer = &plan.layers[part.layer as usize];
            layer.gathered.iter().for_each(|s| self.step(s, phase));
            layer.steps(pass).iter().for_each(|s| self.step(s, phase));
        }
    }

    /// Starts to gather sharded parameters.
    fn fetch(&mut self, fetch: &Fetch, phase: Phase) {
        let deps: Vec<u32> = self.last.into_iter().collect();
        let mut ops = Vec::new();
        for comm in gather_comms(self.graph.layout, &fetch.held) {
            ops.extend(self.comm_on(&comm, Stream::comm(comm.dim()), &deps));
        }
        self.asked.push((fetch.needed, ops));
        self.lists(fetch.modules, phase);
    }

    /// Writes the time for which the host keeps the GPU waiting at collectives over lists of tensors.
    fn lists(&mut self, collectives: u32, phase: Phase) {
        let ps = u64::from(collectives) * self.plan.list_ps;
        self.step(&PassStep::Kernel { name: "lists", ps }, phase);
    }

    /// Reduces the gradients of a virtual stage, layer by layer. The next op of this rank waits for all of them.
    fn reduce_kept(&mut self, layers: &[u16]) {
        let plan = self.plan;
        for &l in layers {
            plan.layers[l as usize].reduced.iter().for_each(|s| self.step(s, Phase::Backward));
            self.reduce(&plan.layers[l as usize].held);
        }
        self.pending.extend(std::mem::take(&mut self.reductions));
    }

    /// Reduces all gradients of a virtual stage, bucket by bucket, when the kernels so far are done.
    fn reduce_chunk(&mut self, chunk: u32) {
        let (plan, layout) = (self.plan, self.graph.layout);
        let stage = &plan.stages[layout.virtual_stage(self.rank, chunk) as usize];
        let reversed: Vec<u16> = stage.iter().rev().copied().collect();
        for (_, held) in buckets(plan, &reversed, layout.bytes.grads, layout.bucket_bytes) {
            self.reduce(&held);
        }
    }

    /// Reduces a bucket when the kernels so far are done.
    fn reduce(&mut self, held: &Held) {
        let deps: Vec<u32> = self.last.into_iter().collect();
        for comm in reduce_comms(self.graph.layout, held) {
            let op = self.comm(&comm, &deps);
            self.reductions.extend(op);
        }
    }

    fn gather_params(&mut self) {
        let (plan, layout) = (self.plan, self.graph.layout);
        let before = self.so_far();
        let mut gathered = vec![Vec::new(); layout.vpp.max(1) as usize];
        for chunk in layout.chunks_by_layers(self.rank) {
            let stage = &plan.stages[layout.virtual_stage(self.rank, chunk) as usize];
            let mut stage_buckets = Vec::new();
            for (last, held) in buckets(plan, stage, layout.bytes.params, layout.bucket_bytes) {
                let mut ops = Vec::new();
                for comm in gather_comms(layout, &held) {
                    ops.extend(self.comm_on(&comm, Stream::comm_lane(Dim::Dp, GATHER_LANE), &before));
                }
                stage_buckets.push((last, ops));
            }
            gathered[chunk as usize] = stage_buckets;
        }
        self.gathered = gathered;
    }

    /// Writes what follows the pipeline: the reduction of gradients, their norm, the optimizer, the gathering of parameters.
    fn finish(&mut self) {
        let (plan, layout) = (self.plan, self.graph.layout);
        let late = std::mem::take(&mut self.late);
        late.iter().for_each(|held| self.reduce(held));
        let reductions = std::mem::take(&mut self.reductions);
        self.pending.extend(reductions);
        let mut held = Held::default();
        plan.chunks(layout, self.rank).for_each(|c| held.add(&plan.held(c)));
        let shared = Comm {
            name: "embedding-grads",
            op: CollectiveOp::AllReduce,
            purpose: Purpose::Embedding,
            bytes: plan.embedding_bytes,
        };
        let norm = Comm { name: "grad-norm", op: CollectiveOp::AllReduce, purpose: norm_purpose(layout), bytes: 4 };
        for comm in sequence_grads(layout, &held).into_iter().chain([shared, norm]) {
            self.step(&PassStep::Comm(comm), Phase::Optimizer);
        }
        self.kernel("optimizer", plan.optimizer_ps[self.rank as usize], Phase::Optimizer, &[]);
        plan.metrics.iter().for_each(|s| self.step(s, Phase::Optimizer));
        if Sync::of(layout).gather_step && !layout.overlap_param {
            self.gather_params();
            let ops = std::mem::take(&mut self.gathered);
            self.pending.extend(ops.into_iter().flatten().flat_map(|(_, ops)| ops));
        }
        // The next iteration begins after the last op of this one, whatever its stream.
        let pending = std::mem::take(&mut self.pending);
        let end = self.writer.op("iteration-end", OpKind::Join, Stream::COMPUTE, &pending);
        self.last = Some(end);
        self.writer.end_iteration();
    }

    /// The rank that a pass's input comes from or its output goes to, by virtual stage. `None` if it is this rank.
    fn peer(&self, stage: u32) -> Option<Peer> {
        let member = self.graph.layout.rank_of_stage(stage);
        (member != self.rank).then_some(Peer { slot: self.slot(Purpose::Pipeline)?, member })
    }

    /// The stream of a virtual stage's messages of a kind. In the shape of a V, messages of one kind go both ways, so each virtual stage has its own streams.
    fn message_stream(&self, stage: u32, lane: u8) -> Stream {
        let layout = self.graph.layout;
        let second = layout.schedule.is_v_shaped() && stage >= layout.pp;
        Stream::comm_lane(Dim::Pp, lane + if second { N_MESSAGE_LANES } else { 0 })
    }

    fn receive(&mut self, stage: u32, backward: bool) {
        let layout = self.graph.layout;
        let source = if backward { layout.stage_after(stage) } else { layout.stage_before(stage) };
        let Some(peer) = source.and_then(|source| self.peer(source)) else { return };
        let deps = if layout.overlap_p2p { Vec::new() } else { self.last.into_iter().collect() };
        let lane = if backward { FROM_NEXT } else { FROM_PREVIOUS };
        let name = if backward { "recv-backward" } else { "recv-forward" };
        let message = Message { peer, bytes: self.plan.message_bytes, tag: tag(stage, backward), dim: Dim::Pp };
        let op = self.writer.recv(name, message, self.message_stream(stage, lane), &deps);
        let gather = stage_gather(self.plan.gathered_bytes);
        let gathered = self.comm(&gather, &[op]);
        self.pending.push(gathered.unwrap_or(op));
    }

    fn send(&mut self, stage: u32, backward: bool) {
        let layout = self.graph.layout;
        let target = if backward { layout.stage_before(stage) } else { layout.stage_after(stage) };
        let Some(target) = target else { return };
        let Some(peer) = self.peer(target) else { return };
        let deps = self.so_far();
        let lane = if backward { TO_PREVIOUS } else { TO_NEXT };
        let name = if backward { "send-backward" } else { "send-forward" };
        let message = Message { peer, bytes: self.plan.message_bytes, tag: tag(target, backward), dim: Dim::Pp };
        let op = self.writer.send(name, message, self.message_stream(stage, lane), &deps);
        if !layout.overlap_p2p {
            self.pending.push(op);
        }
    }
}

/// Tag of the messages into a virtual stage in a direction.
fn tag(stage: u32, backward: bool) -> u32 {
    stage * 2 + u32::from(backward)
}
