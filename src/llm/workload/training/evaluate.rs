//! Computes the iteration time of a configuration without its graph: from the times of passes, the pipeline's recurrence, and the exposed communication of
//! gradients and parameters.
//!
//! Layer: workload. Each communication takes the time that it takes alone. Contention between dimensions is left to the simulators.

use super::aligned::AlignedReductions;
use super::placement::Purpose;
use super::plan::{Held, JobPlan, PassSpent, Sync, buckets, time_idx};
use super::sharded::{ShardedPasses, gather_comms, reduce_comms};
use super::step::{Comm, Price, Spent};
use crate::collective::CollectiveOp;
use crate::model::pipeline::{PassKind, Slot};
use crate::model::{Layout, is_block, pipeline_orders};
use hyperfold_base::budget;

/// How an iteration spends its time, in ps, on the rank that ends last. The parts sum to `iteration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IterationBreakdown {
    /// Time of the iteration.
    pub iteration: u64,
    /// Kernels of forward and backward passes.
    pub compute: u64,
    /// Exposed tensor-parallel communication: the part that no kernel overlaps.
    pub tp: u64,
    /// Exposed pipeline communication.
    pub pp: u64,
    /// Exposed data-parallel communication.
    pub dp: u64,
    /// Exposed expert-parallel communication.
    pub ep: u64,
    /// Exposed context-parallel communication.
    pub cp: u64,
    /// Idle time of the pipeline's schedule.
    pub bubble: u64,
    /// Kernels of the optimizer.
    pub optimizer: u64,
    /// All that is none of the other parts.
    pub other: u64,
}

impl IterationBreakdown {
    fn parts(&mut self) -> [&mut u64; 9] {
        [
            &mut self.compute,
            &mut self.tp,
            &mut self.pp,
            &mut self.dp,
            &mut self.ep,
            &mut self.cp,
            &mut self.bubble,
            &mut self.optimizer,
            &mut self.other,
        ]
    }

    /// This breakdown plus `n` times the difference of `next` to it.
    fn extended(mut self, next: &IterationBreakdown, n: u64) -> IterationBreakdown {
        let mut next = *next;
        for (part, next) in self.parts().into_iter().zip(next.parts()) {
            *part = (*part as i128 + (*next as i128 - *part as i128) * n as i128).max(0) as u64;
        }
        self.iteration = self.parts().into_iter().map(|p| *p).sum();
        self
    }
}

/// When each pass of a pipeline starts and ends.
pub(super) struct PipelineTimeline {
    /// (start, end) of each slot in ps, by stage, in the order of the stage's slots.
    pub slots: Vec<Vec<(u64, u64)>>,
}

/// Two times in ps, by virtual stage.
type PassTimes = Vec<(u64, u64)>;

/// The parameters of a pipeline's run. Lists are by virtual stage.
pub(super) struct Passes<'a> {
    /// Times of passes in ps, by [`time_idx`].
    pub spent: &'a [[u64; 4]],
    /// Extra time in ps of the first forward pass and of the last pass that completes gradients of weights.
    pub extra: &'a [(u64, u64)],
    /// Extra time in ps of a forward and a backward pass that gathers parameters.
    pub gathering: &'a [(u64, u64)],
    /// Extra time in ps of each slot of each rank; empty if there is none.
    pub slowed: &'a [Vec<u64>],
    pub sync: Sync,
    /// Time in ps before which no forward pass can begin, because parameters are not gathered yet.
    pub ready: &'a [u64],
}

/// The virtual stages that a pass's input comes from and its output goes to.
fn source_and_target(layout: &Layout, stage: usize, pass: PassKind) -> (Option<usize>, Option<usize>) {
    let before = layout.stage_before(stage as u32).map(|s| s as usize);
    let after = layout.stage_after(stage as u32).map(|s| s as usize);
    match pass {
        PassKind::Forward => (before, after),
        PassKind::Backward | PassKind::InputGrads => (after, before),
        PassKind::WeightGrads => (None, None),
    }
}

/// Runs the pipeline. Each slot begins after the slot before it on its rank, and after its input has arrived. Sends without overlap also delay their sender.
pub(super) fn timeline(layout: &Layout, orders: &[Vec<Slot>], passes: &Passes, message_ps: u64) -> PipelineTimeline {
    let spent = passes.spent;
    let (p, stages) = (layout.pp as usize, spent.len());
    let m = layout.passes_of_chunk() as usize;
    let hold = if layout.overlap_p2p { 0 } else { message_ps };
    const NOT_YET: u64 = u64::MAX;
    // Factor 4: each slot has two times besides the two of `forward` and `backward`.
    budget::announce_rows::<u64>("passes of micro-batches", 4 * stages as u64 * m as u64);
    let mut forward = vec![NOT_YET; stages * m];
    let mut backward = vec![NOT_YET; stages * m];
    let mut slots: Vec<Vec<(u64, u64)>> = orders.iter().map(|o| Vec::with_capacity(o.len())).collect();
    let mut free: Vec<u64> = vec![0; p];
    let mut completed = vec![0; stages];
    let mut previous = vec![None; stages];
    let mut left: usize = orders.iter().map(Vec::len).sum();
    while left > 0 {
        let before = left;
        // Going down the ranks handles forward passes in one sweep, going up backward passes.
        for rank in (0..p).chain((0..p).rev()) {
            while let Some(slot) = orders[rank].get(slots[rank].len()) {
                let stage = layout.virtual_stage(rank as u32, slot.chunk) as usize;
                let pass_idx = |slot: &Slot, s: usize| s * m + slot.microbatch as usize;
                let took = spent[stage][time_idx(slot.pass)];
                let is_remote = |other: usize| p > 1 && layout.rank_of_stage(other as u32) != rank as u32;
                let is_backward = slot.pass.passes_gradients();
                let target = source_and_target(layout, stage, slot.pass).1;
                // When a slot's input is there; `None` if that is not known yet.
                let arrival = |slot: &Slot| {
                    let stage = layout.virtual_stage(rank as u32, slot.chunk) as usize;
                    let source = source_and_target(layout, stage, slot.pass).0;
                    let input = match (slot.pass, source) {
                        (PassKind::Forward, None) => 0,
                        (PassKind::Forward, Some(source)) => forward[pass_idx(slot, source)],
                        (PassKind::WeightGrads, _) => backward[pass_idx(slot, stage)],
                        (_, None) => forward[pass_idx(slot, stage)],
                        (_, Some(source)) => backward[pass_idx(slot, source)],
                    };
                    let arrives = input.saturating_add(if source.is_some_and(is_remote) { message_ps } else { 0 });
                    let ready = if slot.pass == PassKind::Forward { passes.ready[stage] } else { 0 };
                    (input != NOT_YET).then(|| arrives.max(ready))
                };
                let number = slots[rank].len();
                let order = &orders[rank];
                // A block begins when both of its inputs are there.
                let begins_block = is_block(layout, rank as u32, order, number);
                let inputs = if begins_block { &order[number..number + 2] } else { &order[number..=number] };
                let Some(start) = inputs.iter().try_fold(free[rank], |t, s| arrival(s).map(|a| t.max(a))) else {
                    break;
                };
                completed[stage] += usize::from(slot.pass.completes_gradients());
                let mut more = match slot.pass {
                    PassKind::Forward if slot.microbatch == 0 => passes.extra[stage].0,
                    pass if pass.completes_gradients() && completed[stage] == m => passes.extra[stage].1,
                    _ => 0,
                };
                if slot.pass != PassKind::WeightGrads
                    && passes.sync.gathers(is_backward, previous[stage].replace(is_backward))
                {
                    let (forward, backward) = passes.gathering[stage];
                    more += if is_backward { backward } else { forward };
                }
                more +=
                    passes.slowed.get(rank).and_then(|slots_of| slots_of.get(slots[rank].len())).copied().unwrap_or(0);
                let end = start + took + more;
                free[rank] = end + if target.is_some_and(is_remote) { hold } else { 0 };
                slots[rank].push((start, end));
                match slot.pass {
                    PassKind::Forward => forward[pass_idx(slot, stage)] = end,
                    PassKind::Backward | PassKind::InputGrads => backward[pass_idx(slot, stage)] = end,
                    PassKind::WeightGrads => {}
                }
                if number > 0 && is_block(layout, rank as u32, order, number - 1) {
                    // The block's forward pass ends with it.
                    let first = &order[number - 1];
                    forward[pass_idx(first, layout.virtual_stage(rank as u32, first.chunk) as usize)] = end;
                }
                left -= 1;
            }
        }
        assert!(left < before, "the orders of `model::pipeline` leave no pass waiting for itself");
    }
    PipelineTimeline { slots }
}

/// Evaluates a planned job. It gives the iteration in the steady state, which begins with the parameters that the iteration before has updated.
///
/// Once a pipeline is full, each group of micro-batches adds what the group before it added. A group is 8 micro-batches, or with interleaving as many as there
/// are stages. So if there are many groups, only the first ones are computed.
/// Where backward passes are split, every micro-batch is computed.
pub(super) fn breakdown(plan: &JobPlan, layout: &Layout, price: &Price) -> IterationBreakdown {
    let (m, group) = (layout.microbatches(), if layout.vpp > 1 { layout.pp } else { 8 });
    let rest = if layout.vpp > 1 { 0 } else { m % group };
    let few_microbatches = layout.pp.next_multiple_of(group) + if layout.vpp > 1 { 0 } else { group } + rest;
    let more_microbatches = few_microbatches + group;
    let walks = layout.schedule.splits_backward() || layout.defer_embedding_wgrad;
    if m <= more_microbatches || layout.pp == 1 || walks {
        return walked(plan, layout, price);
    }
    let walked_with =
        |m: u32| walked(plan, &Layout { global_batch: m * layout.dp * layout.microbatch, ..layout.clone() }, price);
    let n_groups = ((m - few_microbatches) / group) as u64;
    walked_with(few_microbatches).extended(&walked_with(more_microbatches), n_groups)
}

/// Computes [`breakdown`] by walking through every micro-batch.
fn walked(plan: &JobPlan, layout: &Layout, price: &Price) -> IterationBreakdown {
    let pp = layout.pp;
    let sync = Sync::of(layout);
    // How much longer a forward and a backward pass take because parameters or gradients are sharded.
    let waits = |stage: &[u16]| match sync.shards_passes() {
        true => ShardedPasses::of_microbatch(plan, layout, stage).waits(plan, layout, price, false),
        false => [0; 2],
    };
    let pass = |stage: &[u16], kind: PassKind, wait: u64| {
        let mut spent = plan.pass(stage, kind);
        spent.dp += wait;
        spent
    };
    let slowed = |mut spent: Spent, factor: f64| {
        spent.compute = (spent.compute as f64 * factor) as u64;
        spent
    };
    // Whether every micro-batch gathers parameters, or reduces gradients, beside its kernels.
    let (gathers_each, reduces_each) =
        (sync.shards_passes() && sync.gather_forward, sync.shards_passes() && sync.reduce_each);
    let stages: Vec<PassSpent> = plan
        .stages
        .iter()
        .zip(plan.messages.iter().zip(&plan.stretch))
        .map(|(s, (m, stretch))| {
            let each = |every: bool, factor: f64| if every { factor } else { 1.0 };
            let m = (m.0 * each(gathers_each, stretch.0), m.1 * each(reduces_each, stretch.1));
            let weights = plan.pass(s, PassKind::WeightGrads);
            let [forward, backward] = waits(s);
            [
                slowed(pass(s, PassKind::Forward, forward), m.0),
                slowed(pass(s, PassKind::Backward, backward), m.1),
                weights,
                slowed(pass(s, PassKind::InputGrads, backward), m.1),
            ]
        })
        .collect();
    let totals: Vec<[u64; 4]> = stages.iter().map(|passes| passes.each_ref().map(Spent::total)).collect();
    // Index of the pass after which the gradients of weights are complete.
    let completing = if layout.schedule.splits_backward() { 2 } else { 1 };
    let gather = stage_gather(plan.gathered_bytes);
    let message_ps = if pp > 1 {
        price.machine.comm.message_ps(plan.message_bytes, price.pipeline_in_server()) + price.comm(&gather)
    } else {
        0
    };
    let orders: Vec<Vec<Slot>> = pipeline_orders(layout);
    let ready: Vec<u64> = ready_times(plan, layout, price, &totals);
    let stretched = |ps: u64, factor: f64| (ps as f64 * (factor - 1.0)) as u64;
    // Extra time of passes if parameters and gradients are kept: a forward and a backward pass that gathers, and the last backward pass, which reduces.
    let kept: Vec<[Spent; 3]> = plan
        .stages
        .iter()
        .map(|s| if sync.kept { kept_passes(plan, layout, price, s) } else { Default::default() })
        .collect();
    // The slowdown by gathering concerns the first pass, or every pass that gathers.
    let (extra, gathering): (PassTimes, PassTimes) = stages
        .iter()
        .zip(plan.stretch.iter().zip(&kept))
        .map(|(passes, (stretch, kept))| {
            let slowed = if gathers_each { 0 } else { stretched(passes[0].compute, stretch.0) };
            let (first, each) = if sync.kept { (0, slowed) } else { (slowed, 0) };
            let slowed = if reduces_each { 0 } else { stretched(passes[completing].compute, stretch.1) };
            let last = slowed + kept[2].total();
            ((first, last), (kept[0].total() + each, kept[1].total()))
        })
        .unzip();
    let aligned: Vec<Option<AlignedReductions>> =
        (0..pp).map(|rank| AlignedReductions::of(plan, layout, rank, &orders[rank as usize])).collect();
    // Extra time of each slot, while gradients of other virtual stages are reduced.
    let slowed: Vec<Vec<u64>> = (0..pp)
        .zip(&aligned)
        .map(|(rank, aligned)| {
            let Some(aligned) = aligned else { return Vec::new() };
            let extra = |(slot, factor): (&Slot, &f64)| {
                let stage = layout.virtual_stage(rank, slot.chunk) as usize;
                stretched(stages[stage][time_idx(slot.pass)].compute, *factor)
            };
            orders[rank as usize].iter().zip(&aligned.stretch).map(extra).collect()
        })
        .collect();
    let none = vec![0; ready.len()];
    // Gradients of the output matrix that the last rank computes after all passes.
    let mut deferred = Spent::default();
    if layout.defer_embedding_wgrad {
        deferred.add(&stages[stages.len() - 1][time_idx(PassKind::WeightGrads)], layout.microbatches().into());
    }
    let timeline_of = |message_ps: u64, ready: &[u64]| {
        let passes = Passes { spent: &totals, extra: &extra, gathering: &gathering, slowed: &slowed, sync, ready };
        let mut timeline = timeline(layout, &orders, &passes, message_ps);
        if let Some(last) = timeline.slots.last_mut().and_then(|slots| slots.last_mut()) {
            last.1 += deferred.total();
        }
        timeline
    };
    let full = timeline_of(message_ps, &ready);
    let at_once = if ready == none { None } else { Some(timeline_of(message_ps, &none)) };
    let mut worst: Option<(u64, u32, u64)> = None;
    for rank in 0..pp {
        let pipeline_end = full.slots[rank as usize].last().map_or(0, |s| s.1);
        let times = &full.slots[rank as usize];
        let reduced = match &aligned[rank as usize] {
            Some(aligned) => reduced_aligned(plan, layout, rank, aligned, times),
            None => reduced_at(plan, layout, price, rank, &orders[rank as usize], times),
        };
        let end = reduced.max(pipeline_end);
        if worst.is_none_or(|w| end + plan.optimizer_ps[rank as usize] > w.0 + plan.optimizer_ps[w.1 as usize]) {
            worst = Some((end, rank, pipeline_end));
        }
    }
    let (end, rank, pipeline_end) = worst.expect("a pipeline has a rank");
    let r = rank as usize;
    let mut busy = Spent::default();
    let mut before = vec![None; layout.vpp.max(1) as usize];
    for slot in &orders[r] {
        let stage = layout.virtual_stage(rank, slot.chunk) as usize;
        busy.add(&stages[stage][time_idx(slot.pass)], 1);
        if slot.pass == PassKind::WeightGrads {
            continue;
        }
        let backward = slot.pass.passes_gradients();
        if sync.gathers(backward, before[slot.chunk as usize].replace(backward)) {
            busy.add(&kept[stage][usize::from(backward)], 1);
            let (more, _) = gathering[stage];
            busy.compute += if backward { 0 } else { more - kept[stage][0].total() };
        }
    }
    busy.compute += slowed[r].iter().sum::<u64>();
    if layout.defers_on(rank) {
        busy.add(&deferred, 1);
    }
    for stage in (0..layout.vpp).map(|c| layout.virtual_stage(rank, c) as usize) {
        let (f, b) = extra[stage];
        busy.compute += f + b - kept[stage][2].total();
        busy.add(&kept[stage][2], 1);
    }
    let end_of = |timeline: &PipelineTimeline| timeline.slots[r].last().map_or(0, |s| s.1);
    // The wait for parameters is taken out first, then messages. The rest is the bubble of the schedule.
    let gather_wait = at_once.as_ref().map_or(0, |timeline| pipeline_end - end_of(timeline));
    let span_without = end_of(&timeline_of(0, &none));
    let idle = pipeline_end - gather_wait - busy.total();
    let bubble = span_without.saturating_sub(busy.total()).min(idle);
    let norm =
        price.comm(&Comm { name: "grad-norm", op: CollectiveOp::AllReduce, purpose: norm_purpose(layout), bytes: 4 });
    let shared = price.comm(&Comm {
        name: "embedding-grads",
        op: CollectiveOp::AllReduce,
        purpose: Purpose::Embedding,
        bytes: plan.embedding_bytes,
    });
    let shared = if rank == 0 || rank + 1 == pp { shared } else { 0 };
    let mut held = Held::default();
    plan.chunks(layout, rank).for_each(|c| held.add(&plan.held(c)));
    let sequence = sequence_grads(layout, &held).map_or(0, |c| price.comm(&c));
    let gather_after =
        if layout.overlap_param || !sync.gather_step { 0 } else { gather_all(plan, layout, price, rank) };
    let optimizer = plan.optimizer_ps[r];
    let mut b = IterationBreakdown {
        iteration: 0,
        compute: busy.compute,
        tp: busy.tp + sequence,
        pp: idle - bubble,
        dp: busy.dp + gather_wait + (end - pipeline_end) + shared + gather_after,
        ep: busy.ep,
        cp: busy.cp,
        bubble,
        optimizer,
        other: norm + price.steps(&plan.metrics).total(),
    };
    b.iteration = b.compute + b.tp + b.pp + b.dp + b.ep + b.cp + b.bubble + b.optimizer + b.other;
    b
}

/// The gathering of a stage's input by its tensor-parallel ranks, which each received a share. It does nothing if `bytes` is 0.
pub(super) fn stage_gather(bytes: u64) -> Comm {
    Comm { name: "stage-gather", op: CollectiveOp::AllGather, purpose: Purpose::Tensor, bytes }
}

/// The ranks over which the norm of gradients is summed. Sharded gradients are spread over all ranks.
pub(super) fn norm_purpose(layout: &Layout) -> Purpose {
    if layout.zero == 0 { Purpose::Model } else { Purpose::World }
}

/// The sum over tensor-parallel ranks of the gradients of norms that work on a part of the sequence. `None` if it is not needed.
pub(super) fn sequence_grads(layout: &Layout, held: &Held) -> Option<Comm> {
    let bytes = held.sequence * layout.bytes.grads as u64;
    (layout.sequence_parallel && layout.tp > 1 && bytes > 0).then_some(Comm {
        name: "sequence-grads",
        op: CollectiveOp::AllReduce,
        purpose: Purpose::Tensor,
        bytes,
    })
}

/// Time in ps to gather all parameters of a pipeline rank.
fn gather_all(plan: &JobPlan, layout: &Layout, price: &Price, rank: u32) -> u64 {
    let stage_ps = |stage: &[u16]| -> u64 {
        let list = buckets(plan, stage, layout.bytes.params, layout.bucket_bytes);
        list.iter().flat_map(|(_, held)| gather_comms(layout, held)).map(|c| price.comm(&c)).sum()
    };
    plan.chunks(layout, rank).map(stage_ps).sum()
}

/// Extra time of the passes of a virtual stage if parameters and gradients are kept ([`Sync::kept`]): of a forward and a backward pass that gather, and of the
/// last backward pass, after which gradients are reduced without overlap.
fn kept_passes(plan: &JobPlan, layout: &Layout, price: &Price, stage: &[u16]) -> [Spent; 3] {
    let sync = Sync::of(layout);
    let copies = stage.iter().map(|&l| price.steps(&plan.layers[l as usize].gathered).total()).sum();
    let gathers = |backward| {
        let pass = if backward { PassKind::Backward } else { PassKind::Forward };
        let waits = ShardedPasses::of_pass(plan, layout, stage, pass).waits(plan, layout, price, true);
        Spent { compute: copies, dp: waits.iter().sum(), ..Spent::default() }
    };
    let (mut work, mut link) = (0u64, 0u64);
    for &l in stage {
        let layer = &plan.layers[l as usize];
        work += price.steps(&layer.reduced).total();
        let comms = reduce_comms(layout, &layer.held);
        link = link.max(work) + comms.iter().map(|c| price.comm(c)).sum::<u64>();
    }
    let reduces = Spent { compute: work, dp: link - work, ..Spent::default() };
    let none = Spent::default();
    [gathers(false), if sync.gather_backward { gathers(true) } else { none }, reduces]
}

/// When the first pass of each virtual stage can begin, in ps, if parameters are gathered at the beginning of an iteration. The time is chosen such that no
/// later bucket stalls the pass. Buckets are gathered one after another, in the order of the forward pass.
fn ready_times(plan: &JobPlan, layout: &Layout, price: &Price, totals: &[[u64; 4]]) -> Vec<u64> {
    let mut ready = vec![0; plan.stages.len()];
    if !layout.overlap_param || !Sync::of(layout).gather_step {
        return ready;
    }
    for rank in 0..layout.pp {
        let mut gathered = 0u64;
        for chunk in layout.chunks_by_layers(rank) {
            let virtual_stage = layout.virtual_stage(rank, chunk) as usize;
            let stage = &plan.stages[virtual_stage];
            let per_layer = totals[virtual_stage][0] / stage.len().max(1) as u64;
            let mut first_layer = 0;
            for (last, held) in buckets(plan, stage, layout.bytes.params, layout.bucket_bytes) {
                gathered += gather_comms(layout, &held).iter().map(|c| price.comm(c)).sum::<u64>();
                ready[virtual_stage] =
                    ready[virtual_stage].max(gathered.saturating_sub(per_layer * first_layer as u64));
                first_layer = last + 1;
            }
        }
    }
    ready
}

/// When the last bucket of a rank is reduced, in ps. Buckets of a virtual stage become ready as its last backward pass goes through its layers.
fn reduced_at(plan: &JobPlan, layout: &Layout, price: &Price, rank: u32, order: &[Slot], times: &[(u64, u64)]) -> u64 {
    // If gradients are reduced after every micro-batch, that is part of the backward pass. If they are kept, it is part of the last backward pass.
    let sync = Sync::of(layout);
    if sync.reduce_each || sync.kept {
        return 0;
    }
    let mut reduced_ps = 0;
    let pipeline_end = times.last().map_or(0, |t| t.1);
    let mut last_of: Vec<Option<usize>> = vec![None; layout.vpp.max(1) as usize];
    order
        .iter()
        .enumerate()
        .filter(|(_, s)| s.pass.completes_gradients())
        .for_each(|(i, s)| last_of[s.chunk as usize] = Some(i));
    let mut chunks: Vec<(usize, u32)> =
        last_of.iter().enumerate().filter_map(|(c, i)| i.map(|i| (i, c as u32))).collect();
    chunks.sort_unstable();
    for (i, chunk) in chunks {
        let stage = &plan.stages[layout.virtual_stage(rank, chunk) as usize];
        let reversed: Vec<u16> = stage.iter().rev().copied().collect();
        let size = if layout.overlap_grad { layout.bucket_bytes } else { u64::MAX };
        let list = buckets(plan, &reversed, layout.bytes.grads, size);
        let (start, end) = times[i];
        for (last, held) in list {
            let ready = if layout.overlap_grad {
                start + (end - start) / stage.len() as u64 * (last as u64 + 1)
            } else {
                pipeline_end
            };
            reduced_ps = ready.max(reduced_ps) + reduce_comms(layout, &held).iter().map(|c| price.comm(c)).sum::<u64>();
        }
    }
    reduced_ps
}

/// When the last gradient of a rank is reduced, in ps, if reductions begin together on all ranks.
fn reduced_aligned(
    plan: &JobPlan,
    layout: &Layout,
    rank: u32,
    aligned: &AlignedReductions,
    times: &[(u64, u64)],
) -> u64 {
    let mut reduced_ps = 0;
    for (chunks, &(_, end)) in aligned.after.iter().zip(times) {
        for &chunk in chunks {
            reduced_ps = end.max(reduced_ps) + plan.grad_syncs[layout.virtual_stage(rank, chunk) as usize].ps;
        }
    }
    reduced_ps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PipelineSchedule;
    use crate::workload::training::tests::layout;

    fn makespan(l: &Layout, forward: u64, backward: u64, message_ps: u64) -> u64 {
        makespan_of(l, [forward, backward, 0, backward], message_ps)
    }

    /// Time of a pipeline whose virtual stages take the same, by [`time_idx`].
    fn makespan_of(l: &Layout, times: [u64; 4], message_ps: u64) -> u64 {
        let orders: Vec<Vec<Slot>> = pipeline_orders(l);
        let spent = vec![times; (l.pp * l.vpp) as usize];
        let nothing = vec![(0, 0); spent.len()];
        let sync = Sync::of(l);
        let passes = Passes {
            spent: &spent,
            extra: &nothing,
            gathering: &nothing,
            slowed: &[],
            sync,
            ready: &vec![0; spent.len()],
        };
        let t = timeline(l, &orders, &passes, message_ps);
        t.slots.iter().filter_map(|s| s.last()).map(|s| s.1).max().unwrap()
    }

    #[test]
    fn bubbles_of_equal_stages_are_exact() {
        for (p, v, m) in [(2, 1, 4), (4, 1, 4), (8, 1, 64), (4, 2, 8), (8, 3, 64), (35, 3, 280), (6, 8, 6)] {
            let l = Layout { pp: p, vpp: v, microbatch: 1, global_batch: m, ..layout() };
            let (f, b) = (1_000, 2_000);
            // The ideal time is m v (f + b); the bubble is (p - 1) / (v m) of it.
            let (p, v, m) = (p as u64, v as u64, m as u64);
            assert_eq!(makespan(&l, f, b, 0), m * v * (f + b) + (p - 1) * (f + b), "p {p} v {v} m {m}");
        }
        let l = Layout { pp: 4, microbatch: 1, global_batch: 8, schedule: PipelineSchedule::GPipe, ..layout() };
        assert_eq!(makespan(&l, 1_000, 2_000, 0), (8 + 3) * 3_000);
    }

    fn split(schedule: PipelineSchedule, pp: u32, m: u32) -> Layout {
        let vpp = if schedule.is_v_shaped() { 2 } else { 1 };
        Layout { pp, vpp, microbatch: 1, global_batch: m, schedule, ..layout() }
    }

    /// Times of a forward pass, gradients of inputs and gradients of weights through all layers of a rank.
    const COSTS: [[u64; 3]; 4] = [[600, 600, 600], [600, 800, 400], [600, 700, 500], [600, 900, 500]];

    #[test]
    fn bubbles_of_split_backward_passes_are_those_of_the_papers() {
        for pp in [2, 3, 4, 5, 8, 16] {
            for m in [pp, pp + 1, 2 * pp, 5 * pp + 3] {
                for [f, b, w] in COSTS {
                    let bubble = |schedule| {
                        let l = split(schedule, pp, m);
                        let chunks = u64::from(l.vpp);
                        makespan_of(&l, [f / chunks, b / chunks, w / chunks, b / chunks], 0)
                            - u64::from(m) * (f + b + w)
                    };
                    let context = format!("p {pp} m {m} {f} {b} {w}");
                    let deep = u64::from(pp) - 1;
                    // Table 2 of arXiv 2401.10241.
                    assert_eq!(bubble(PipelineSchedule::ZbH1), deep * (f + b - w), "{context}");
                    // Virtual stages have half as many layers. With equal costs only the way of the first pass to the last rank is left.
                    assert_eq!(bubble(PipelineSchedule::ZbV), deep * (2 * b - w) / 2, "{context}");
                    if f == b && b == w {
                        let whole = makespan(&split(PipelineSchedule::OneFOneB, pp, m), f, b + w, 0);
                        for schedule in [PipelineSchedule::VHalf, PipelineSchedule::VMin] {
                            let time = bubble(schedule) + u64::from(m) * (f + b + w);
                            assert!(time < whole, "{context} {schedule:?}: {time} {whole}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn bubbles_of_dualpipe_are_those_of_its_paper() {
        for pp in [2, 4, 6, 8, 16] {
            for m in [2 * pp, 2 * pp + 2, 4 * pp, 6 * pp + 4] {
                let l = Layout { vpp: 2, ..split(PipelineSchedule::DualPipe, pp, m) };
                // Times of a forward pass, gradients of inputs and gradients of weights through a rank's layers of one direction.
                let bubble = |[f, b, w]: [u64; 3]| makespan_of(&l, [f, b + w, w, b], 0) - u64::from(m) * (f + b + w);
                // Table 2 of arXiv 2412.19437: (PP / 2 - 1)(F&B + B - 3 W), where B is a whole backward pass.
                let published = |[f, b, w]: [u64; 3]| (u64::from(pp) / 2 - 1) * (f + 2 * (b + w) - 3 * w);
                let context = format!("p {pp} m {m}");
                assert_eq!(bubble([600; 3]), published([600; 3]), "{context}");
                // Unequal passes: it is drawn for equal ones, and here a little is left.
                for times in [[600, 700, 500], [500, 700, 450]] {
                    assert!(bubble(times) <= published(times), "{context} {times:?}: {}", bubble(times));
                }
                let whole = makespan(&split(PipelineSchedule::OneFOneB, pp, m), 600, 1_200, 0);
                assert!(makespan_of(&l, [600, 1_200, 600, 600], 0) < whole, "{context}");
            }
        }
    }

    #[test]
    fn schedules_of_split_backward_passes_end_with_any_number_of_micro_batches() {
        let schedules =
            [PipelineSchedule::ZbH1, PipelineSchedule::ZbV, PipelineSchedule::VHalf, PipelineSchedule::VMin];
        for schedule in schedules {
            for (pp, m) in (2..=10).flat_map(|pp| (1..=12).map(move |m| (pp, m))) {
                let l = split(schedule, pp, m);
                let one = makespan_of(&l, [300, 400, 200, 400], 50);
                let whole = makespan(&split(PipelineSchedule::OneFOneB, pp, m), 600, 1_200, 0);
                let equal = makespan_of(&l, [600 / u64::from(l.vpp); 4], 0);
                assert!(one > 0 && equal <= whole, "{schedule:?} p {pp} m {m}: {equal} {whole}");
            }
        }
    }

    #[test]
    fn what_groups_add_is_what_a_walk_through_all_of_them_finds() {
        use crate::workload::training::plan::LayerPlan;
        use crate::workload::training::{CommCost, KernelCost, Machine, RankPlacement, ServerSpan};

        /// A machine on which only messages take time.
        struct Post;

        impl KernelCost for Post {
            fn kernel_ps(&self, _: &crate::compute::Kernel) -> u64 {
                0
            }

            fn stretched_ps(&self, _: &crate::compute::Kernel, ps: u64, _: CollectiveOp, _: u64, _: f64) -> u64 {
                ps
            }
        }

        impl CommCost for Post {
            fn collective_ps(&self, _: CollectiveOp, _: u64, _: ServerSpan) -> u64 {
                0
            }

            fn message_ps(&self, _: u64, _: bool) -> u64 {
                700
            }
        }

        let machine =
            Machine { kernels: &Post, comm: &Post, gpus_per_server: 8, host_bps: 0, host_op_ps: 0, peak_flops: 0 };
        let step = |ps| vec![crate::workload::training::step::PassStep::Kernel { name: "k", ps }];
        let spent = |compute| Spent { compute, ..Spent::default() };
        let layer = |ps| LayerPlan {
            forward: step(ps),
            backward: step(2 * ps),
            spent: [spent(ps), spent(2 * ps), Spent::default(), spent(2 * ps)],
            ..LayerPlan::default()
        };
        for (pp, vpp, m) in [(4, 1, 64), (16, 1, 203), (64, 1, 512), (8, 3, 64), (35, 3, 280), (6, 8, 48)] {
            for overlap_p2p in [false, true] {
                let l = Layout { pp, vpp, microbatch: 1, global_batch: m, overlap_p2p, ..layout() };
                // The first and the last stage have more to do.
                let mut stages: Vec<Vec<u16>> = vec![vec![0]; (pp * vpp) as usize];
                stages[0].push(1);
                stages.last_mut().unwrap().push(2);
                let n = stages.len();
                let plan = JobPlan {
                    layers: vec![layer(10_000), layer(900), layer(2_500)],
                    stages,
                    message_bytes: 1,
                    messages: vec![(1.0, 1.0); n],
                    stretch: vec![(1.0, 1.0); n],
                    optimizer_ps: vec![0; pp as usize],
                    ..JobPlan::default()
                };
                let price = Price::new(&machine, &RankPlacement::new(&l).unwrap());
                let (quick, full) = (breakdown(&plan, &l, &price), walked(&plan, &l, &price));
                let error = quick.iteration.abs_diff(full.iteration) as f64 / full.iteration as f64;
                assert!(error < 1e-3, "pp {pp} vpp {vpp} m {m} {overlap_p2p}: {quick:?} {full:?}");
            }
        }
    }

    #[test]
    fn messages_are_paid_by_the_sender_unless_overlapped() {
        let l = Layout { pp: 4, microbatch: 1, global_batch: 8, ..layout() };
        let free = makespan(&l, 1_000, 2_000, 0);
        let overlapped = makespan(&Layout { overlap_p2p: true, ..l.clone() }, 1_000, 2_000, 10);
        let blocking = makespan(&l, 1_000, 2_000, 10);
        assert!(free < overlapped && overlapped < blocking, "{free} {overlapped} {blocking}");
    }
}
