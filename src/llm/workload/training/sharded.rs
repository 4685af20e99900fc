//! When a rank gathers sharded parameters, and when it reduces sharded gradients: the parts of its passes, what is requested before each part, and what each
//! part waits for.
//!
//! Layer: workload. Writes no programs and computes only how long passes wait. `graph` writes programs from the same list, so both follow the same rules:
//!
//! - PyTorch's FSDP gathers and reduces unit by unit. A unit is one or several layers. What is outside the layers is the root unit: it is gathered first, stays
//!   until the end of the backward pass, and is reduced last (torch/distributed/fsdp/_runtime_utils.py, `_root_pre_forward` and `_post_backward_final_callback`).
//! - DeepSpeed's ZeRO-3 fetches module by module and prefetches by numbers of parameters (deepspeed/runtime/zero/partitioned_param_coordinator.py at v0.9.5:
//!   `fetch_sub_module`, `__params_to_release`).

use std::ops::Range;

use super::placement::Purpose;
use super::plan::{Held, JobPlan, Sync};
use super::step::{Comm, PassStep, Price};
use crate::collective::CollectiveOp;
use crate::model::Layout;
use crate::model::pipeline::PassKind;

/// A part of a pass: some steps of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PassPart {
    /// Position of the layer in its virtual stage, in forward order.
    pub position: usize,
    /// Index of the layer in the plan.
    pub layer: u16,
    pub steps: Range<usize>,
    pub pass: PassKind,
    /// The module whose parameters the steps use, as an index into the layer's modules. `None` if the part is a whole layer.
    module: Option<usize>,
}

/// A gathering of parameters. Parts are counted over the forward and the backward pass.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fetch {
    /// The part before which it is requested.
    pub at: usize,
    /// The part that waits for it.
    pub needed: usize,
    pub held: Held,
    /// Number of modules that are gathered together.
    pub modules: u32,
}

/// A reduction of gradients after a part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reduction {
    pub after: usize,
    pub held: Held,
    pub modules: u32,
}

/// The passes of one micro-batch through a virtual stage whose parameters or gradients are sharded.
#[derive(Clone, Debug, Default)]
pub(super) struct ShardedPasses {
    pub parts: Vec<PassPart>,
    /// Number of parts of the forward pass; the others are the backward pass.
    pub n_forward: usize,
    /// What is gathered, in the order of requests.
    pub fetches: Vec<Fetch>,
    pub reductions: Vec<Reduction>,
}

impl ShardedPasses {
    /// The passes of a micro-batch without a pipeline.
    pub(super) fn of_microbatch(plan: &JobPlan, layout: &Layout, stage: &[u16]) -> ShardedPasses {
        let by_module = layout.gathers_by_module();
        let mut parts = parts_of(plan, stage, PassKind::Forward, by_module);
        let n_forward = parts.len();
        parts.extend(parts_of(plan, stage, PassKind::Backward, by_module));
        let mut passes = ShardedPasses { parts, n_forward, ..ShardedPasses::default() };
        let sync = Sync::of(layout);
        if layout.fsdp() {
            let units = Units::new(plan, layout, stage);
            if sync.gather_forward {
                passes.fetch_units(&units, 0..n_forward, layout);
            }
            if sync.gather_backward {
                passes.fetch_units(&units, n_forward..passes.parts.len(), layout);
            }
            passes.reduce_units(&units, stage.len());
        } else {
            if sync.gather_forward {
                passes.fetches = by_number_of_parameters(plan, layout, &passes.parts);
            }
            passes.reduce_buckets(plan, layout);
        }
        if !layout.overlap_grad {
            passes.reduce_at_the_end();
        }
        passes
    }

    /// One pass of FSDP on a pipeline, which gathers the virtual stage, and whose gradients are not reduced.
    pub(super) fn of_pass(plan: &JobPlan, layout: &Layout, stage: &[u16], pass: PassKind) -> ShardedPasses {
        let parts = parts_of(plan, stage, pass, false);
        let n_forward = if pass == PassKind::Forward { parts.len() } else { 0 };
        let mut passes = ShardedPasses { parts, n_forward, ..ShardedPasses::default() };
        passes.fetch_units(&Units::new(plan, layout, stage), 0..passes.parts.len(), layout);
        passes
    }

    /// The parts of a pass.
    pub(super) fn range(&self, pass: PassKind) -> Range<usize> {
        if pass == PassKind::Forward { 0..self.n_forward } else { self.n_forward..self.parts.len() }
    }

    /// Requests the units of a pass. Each is requested when the unit that is `units_ahead` before it begins.
    fn fetch_units(&mut self, units: &Units, pass: Range<usize>, layout: &Layout) {
        let ahead = if layout.overlap_param { layout.gathering.units_ahead as usize } else { 0 };
        let forward = pass.start < self.n_forward;
        // First part of each unit, in the order of use. The root unit comes first, and is still there in a backward pass.
        let mut order: Vec<(usize, Held, u32)> = Vec::new();
        if units.root != Held::default() {
            order.push((pass.start, if forward { units.root } else { Held::default() }, 1));
        }
        let mut last = None;
        for part in pass {
            let unit = units.of_position[self.parts[part].position];
            if unit.is_some() && unit != last {
                order.extend(unit.map(|u| (part, units.held[u], 1)));
            }
            last = unit;
        }
        for (k, &(first, held, modules)) in order.iter().enumerate() {
            if held.dense + held.expert > 0 {
                self.fetches.push(Fetch { at: order[k.saturating_sub(ahead)].0, needed: first, held, modules });
            }
        }
    }

    /// Reduces each unit after its last part, and the root unit at the end.
    fn reduce_units(&mut self, units: &Units, n_layers: usize) {
        let part_of = |position: usize| self.n_forward + n_layers - 1 - position;
        for (unit, held) in units.held.iter().enumerate().rev() {
            let first = units.of_position.iter().position(|&u| u == Some(unit)).expect("each unit has a layer");
            self.reductions.push(Reduction { after: part_of(first), held: *held, modules: 1 });
        }
        self.reductions.push(Reduction { after: self.parts.len() - 1, held: units.root, modules: 1 });
        self.reductions.retain(|r| r.held.dense + r.held.expert > 0);
    }

    /// Reduces buckets of gradients: each when the parts so far have completed enough of them.
    fn reduce_buckets(&mut self, plan: &JobPlan, layout: &Layout) {
        let mut bucket = Reduction { after: 0, held: Held::default(), modules: 0 };
        for after in self.n_forward..self.parts.len() {
            let held = self.completed_by(plan, after);
            let is_last = after + 1 == self.parts.len();
            bucket.held.add(&held);
            bucket.modules += u32::from(held != Held::default());
            let full =
                (bucket.held.dense + bucket.held.expert) * u64::from(layout.bytes.grads) >= layout.bucket_bytes.max(1);
            if (full || is_last) && bucket.held.dense + bucket.held.expert > 0 {
                self.reductions.push(Reduction { after, ..bucket });
                bucket = Reduction { after: 0, held: Held::default(), modules: 0 };
            }
        }
    }

    /// The parameters whose gradients are complete after a part of the backward pass. Those that are in no module are complete after the layer's last part.
    fn completed_by(&self, plan: &JobPlan, part: usize) -> Held {
        let PassPart { position, layer, module, .. } = self.parts[part];
        let layer = &plan.layers[layer as usize];
        let later = || self.parts[part + 1..].iter().filter(|p| p.position == position);
        let mut held = match module {
            Some(module) if later().all(|p| p.module != Some(module)) => layer.modules[module].held,
            _ => Held::default(),
        };
        if later().next().is_none() {
            held.add(&layer.outside_modules());
        }
        held
    }

    /// Puts all reductions together at the end.
    fn reduce_at_the_end(&mut self) {
        let Some(last) = self.parts.len().checked_sub(1) else { return };
        let mut all = Reduction { after: last, held: Held::default(), modules: 0 };
        for reduction in self.reductions.drain(..) {
            all.held.add(&reduction.held);
            all.modules += reduction.modules;
        }
        if all.held.dense + all.held.expert > 0 {
            self.reductions.push(all);
        }
    }

    /// The communication that runs beside the kernels of the forward and of the backward pass: all of it, less what the pass waits for. Each gathering and each
    /// reduction has its own latency, which grows with the number of ranks, and holds its part of the GPU for as long.
    pub(super) fn beside_kernels(&self, plan: &JobPlan, layout: &Layout, price: &Price) -> [BesideKernels; 2] {
        let waits = self.waits(plan, layout, price, false);
        let totals = |comms: &mut dyn Iterator<Item = [Comm; 2]>| {
            let (mut ps, mut bytes, mut n) = (0u64, 0u64, 0u64);
            for comms in comms {
                ps += comms.iter().map(|c| price.comm(c)).sum::<u64>();
                bytes += comms[0].bytes;
                n += 1;
            }
            (ps, bytes / n.max(1))
        };
        [false, true].map(|backward| {
            let of_pass = |part: usize| (part >= self.n_forward) == backward;
            let fetches = self.fetches.iter().filter(|f| of_pass(f.at));
            let reductions = self.reductions.iter().filter(|r| of_pass(r.after));
            let (gather_ps, gather_bytes) = totals(&mut fetches.map(|f| gather_comms(layout, &f.held)));
            let (reduce_ps, reduce_bytes) = totals(&mut reductions.map(|r| reduce_comms(layout, &r.held)));
            let all = gather_ps + reduce_ps;
            let hidden = all.saturating_sub(waits[usize::from(backward)]);
            let hidden_of = |ps: u64| (u128::from(ps) * u128::from(hidden) / u128::from(all.max(1))) as u64;
            BesideKernels {
                gather_ps: hidden_of(gather_ps),
                gather_bytes,
                reduce_ps: hidden_of(reduce_ps),
                reduce_bytes,
            }
        })
    }

    /// How much longer the forward and the backward pass take than their kernels, in ps. All communication uses the same links, one after the other.
    /// `copies` says whether kernels that copy gathered parameters are not part of the passes' steps.
    pub(super) fn waits(&self, plan: &JobPlan, layout: &Layout, price: &Price, copies: bool) -> [u64; 2] {
        let cost = |comms: [Comm; 2]| comms.iter().map(|c| price.comm(c)).sum::<u64>();
        let (mut link, mut work, mut busy) = (0u64, 0u64, 0u64);
        let mut ends = [0u64; 2];
        let (mut fetches, mut reductions) = (self.fetches.iter().peekable(), self.reductions.iter().peekable());
        // Parts that wait, and when what they wait for has arrived.
        let mut arrivals: Vec<(usize, u64)> = Vec::new();
        for (i, part) in self.parts.iter().enumerate() {
            while let Some(fetch) = fetches.next_if(|f| f.at <= i) {
                link = link.max(work) + cost(gather_comms(layout, &fetch.held));
                arrivals.push((fetch.needed, link));
                work += u64::from(fetch.modules) * plan.list_ps;
            }
            arrivals.retain(|&(needed, arrived)| {
                work = if needed <= i { work.max(arrived) } else { work };
                needed > i
            });
            let layer = &plan.layers[part.layer as usize];
            let mut took = price.steps(&layer.steps(part.pass)[part.steps.clone()]).total();
            if copies && part.steps.start == 0 {
                took += price.steps(&layer.gathered).total();
            }
            work += took;
            busy += took;
            while let Some(reduction) = reductions.next_if(|r| r.after <= i) {
                work += u64::from(reduction.modules) * plan.list_ps;
                link = link.max(work) + cost(reduce_comms(layout, &reduction.held));
                if !layout.overlap_grad {
                    work = link;
                }
            }
            let pass = usize::from(part.pass != PassKind::Forward);
            ends[pass] = work - busy;
        }
        // Communication that is still on the links delays the next micro-batch.
        ends[1] = work.max(link) - busy;
        match self.n_forward {
            n if n == self.parts.len() => [ends[0], 0],
            _ => [ends[0], ends[1].saturating_sub(ends[0])],
        }
    }
}

/// Communication of one pass that runs beside its kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BesideKernels {
    /// Time in ps of gathering parameters.
    pub gather_ps: u64,
    /// Bytes of one gathering, on average.
    pub gather_bytes: u64,
    /// Time in ps of reducing gradients.
    pub reduce_ps: u64,
    /// Bytes of one reduction, on average.
    pub reduce_bytes: u64,
}

/// The parts of a pass, in its order. With `by_module`, a layer with modules has a part wherever the module changes whose parameters are used.
fn parts_of(plan: &JobPlan, stage: &[u16], pass: PassKind, by_module: bool) -> Vec<PassPart> {
    let mut parts = Vec::new();
    let positions: Vec<usize> =
        if pass == PassKind::Forward { (0..stage.len()).collect() } else { (0..stage.len()).rev().collect() };
    for position in positions {
        let layer = stage[position];
        let steps = plan.layers[layer as usize].steps(pass);
        let modules = &plan.layers[layer as usize].modules;
        let whole = PassPart { position, layer, steps: 0..steps.len(), pass, module: None };
        if !by_module || modules.is_empty() || steps.is_empty() {
            parts.push(whole);
            continue;
        }
        let module_of = |step: &PassStep| match step {
            PassStep::Kernel { name, .. } | PassStep::Both { name, .. } => modules.iter().position(|m| m.name == *name),
            PassStep::Comm(_) => None,
        };
        let first_part = parts.len();
        for (i, step) in steps.iter().enumerate() {
            let module = module_of(step);
            match parts.get_mut(first_part..).and_then(<[PassPart]>::last_mut) {
                // Steps of no module belong to the part before them.
                Some(part) if module.is_none() || part.module.is_none() || part.module == module => {
                    part.steps.end = i + 1;
                    part.module = part.module.or(module);
                }
                _ => parts.push(PassPart { steps: i..i + 1, module, ..whole.clone() }),
            }
        }
    }
    parts
}

/// What DeepSpeed gathers in a micro-batch. Before a module it fetches what is not there. Then it prefetches parameters of later modules, until they are
/// `prefetch_params` or `live_params` are there. After a module it frees it, unless it is used again within `reuse_params`.
fn by_number_of_parameters(plan: &JobPlan, layout: &Layout, parts: &[PassPart]) -> Vec<Fetch> {
    let rules = &layout.gathering;
    // The modules in the order of use: (key, parameters).
    let trace: Vec<((usize, Option<usize>), Held)> = parts
        .iter()
        .map(|part| {
            let layer = &plan.layers[part.layer as usize];
            let held = match part.module {
                Some(module) => layer.modules[module].held,
                // A layer with modules may have parts before its first module.
                None if layer.modules.is_empty() => layer.held,
                None => Held::default(),
            };
            ((part.position, part.module), held)
        })
        .collect();
    let size = |i: usize| trace[i].1.dense + trace[i].1.expert;
    let mut fetches = Vec::new();
    let mut live: Vec<(usize, Option<usize>)> = Vec::new();
    let mut n_live = 0u64;
    // The next module of the trace that prefetching looks at, and up to which use each module was looked at.
    let mut next = 0;
    for i in 0..trace.len() {
        let key = trace[i].0;
        if size(i) == 0 {
            continue;
        }
        if !live.contains(&key) {
            live.push(key);
            n_live += size(i);
            fetches.push(Fetch { at: i, needed: i, held: trace[i].1, modules: 1 });
        }
        next = next.max(i + 1);
        let limit = rules.live_params.saturating_sub(n_live).min(rules.prefetch_params);
        let limit = if layout.overlap_param { limit } else { 0 };
        let mut ahead = Fetch { at: i, needed: 0, held: Held::default(), modules: 0 };
        while next < trace.len() && ahead.held.dense + ahead.held.expert < limit {
            if size(next) > 0 && !live.contains(&trace[next].0) {
                if ahead.modules == 0 {
                    ahead.needed = next;
                }
                live.push(trace[next].0);
                n_live += size(next);
                ahead.held.add(&trace[next].1);
                ahead.modules += 1;
            }
            next += 1;
        }
        if ahead.modules > 0 {
            fetches.push(ahead);
        }
        // A use that prefetching has passed would not be fetched again.
        let mut kept = trace[i + 1..next].iter().any(|(later, _)| *later == key);
        let mut between = 0;
        for (later, held) in &trace[i + 1..] {
            if kept || between >= rules.reuse_params {
                break;
            }
            kept = *later == key;
            between += held.dense + held.expert;
        }
        if !kept {
            live.retain(|&l| l != key);
            n_live -= size(i);
        }
    }
    fetches
}

/// FSDP's units of a virtual stage.
struct Units {
    /// The unit of each layer, by its position in forward order; `None` is the root unit.
    of_position: Vec<Option<usize>>,
    held: Vec<Held>,
    /// What the root unit holds. It is empty on a pipeline, where each end is a unit.
    root: Held,
}

impl Units {
    fn new(plan: &JobPlan, layout: &Layout, stage: &[u16]) -> Units {
        let mut units = Units { of_position: Vec::new(), held: Vec::new(), root: Held::default() };
        let mut in_unit = 0;
        for &l in stage {
            let layer = &plan.layers[l as usize];
            if layer.is_end && layout.pp == 1 {
                units.root.add(&layer.held);
                units.of_position.push(None);
                continue;
            }
            let begins = layer.is_end || in_unit == 0;
            in_unit = if layer.is_end { 0 } else { (in_unit + 1) % layout.gathering.unit_layers.max(1) };
            if begins {
                units.held.push(Held::default());
            }
            let unit = units.held.len() - 1;
            units.held[unit].add(&layer.held);
            units.of_position.push(Some(unit));
        }
        units
    }
}

/// Gradient communication of a bucket. Dense and expert parameters go to groups of their own.
pub(super) fn reduce_comms(layout: &Layout, held: &Held) -> [Comm; 2] {
    let op = if layout.zero == 0 { CollectiveOp::AllReduce } else { CollectiveOp::ReduceScatter };
    let bytes_per_grad = layout.bytes.grads as u64;
    if layout.hybrid() {
        // Each rank's shard is then summed over the ranks that hold the same shard.
        let bytes = (held.dense + held.expert) * bytes_per_grad;
        let shard = bytes.div_ceil(layout.shards() as u64);
        let all = CollectiveOp::AllReduce;
        return [
            Comm { name: "grads", op, purpose: Purpose::Shard, bytes },
            Comm { name: "replica-grads", op: all, purpose: Purpose::Replica, bytes: shard },
        ];
    }
    [
        Comm { name: "grads", op, purpose: Purpose::Data, bytes: held.dense * bytes_per_grad },
        Comm { name: "expert-grads", op, purpose: Purpose::ExpertData, bytes: held.expert * bytes_per_grad },
    ]
}

/// Parameter gathering of a bucket, see [`reduce_comms`].
pub(super) fn gather_comms(layout: &Layout, held: &Held) -> [Comm; 2] {
    let bytes_per_param = layout.bytes.params as u64;
    if layout.hybrid() {
        let params = |n: u64| Comm {
            name: "params",
            op: CollectiveOp::AllGather,
            purpose: Purpose::Shard,
            bytes: n * bytes_per_param,
        };
        return [params(held.dense), params(held.expert)];
    }
    [
        Comm {
            name: "params",
            op: CollectiveOp::AllGather,
            purpose: Purpose::Data,
            bytes: held.dense * bytes_per_param,
        },
        Comm {
            name: "expert-params",
            op: CollectiveOp::AllGather,
            purpose: Purpose::ExpertData,
            bytes: held.expert * bytes_per_param,
        },
    ]
}

/// Time in ps of a collective over a list of tensors, one a rank, besides its messages: the host makes a view and a copy of each while the GPU waits.
pub(super) fn list_ps(layout: &Layout, price: &Price) -> u64 {
    let lists = layout.gathers_by_module() && layout.gathering.lists;
    let per_operation_ps = layout.launch_ps.unwrap_or(price.machine.host_op_ps);
    if lists { u64::from(layout.shards()) * per_operation_ps } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Kernel;
    use crate::model::Framework;
    use crate::workload::training::plan::{LayerPlan, Module};
    use crate::workload::training::tests::layout;
    use crate::workload::training::{CommCost, KernelCost, Machine, RankPlacement, ServerSpan};

    /// A machine whose collectives take 1 ps a byte.
    struct Bytes;

    impl KernelCost for Bytes {
        fn kernel_ps(&self, _: &Kernel) -> u64 {
            0
        }

        fn stretched_ps(&self, _: &Kernel, ps: u64, _: CollectiveOp, _: u64, _: f64) -> u64 {
            ps
        }
    }

    impl CommCost for Bytes {
        fn collective_ps(&self, _: CollectiveOp, bytes: u64, _: ServerSpan) -> u64 {
            bytes
        }

        fn message_ps(&self, _: u64, _: bool) -> u64 {
            0
        }
    }

    fn dense(dense: u64) -> Held {
        Held { dense, ..Held::default() }
    }

    fn kernel(name: &'static str, ps: u64) -> PassStep {
        PassStep::Kernel { name, ps }
    }

    /// An embedding of 40 parameters, four layers of 100, a head of 60. Each layer has two modules: `a` of 70 parameters and `b` of 20.
    fn plan() -> JobPlan {
        let end = |name, held| LayerPlan {
            forward: vec![kernel(name, 10)],
            backward: vec![kernel(name, 20)],
            held: dense(held),
            is_end: true,
            ..LayerPlan::default()
        };
        let layer = LayerPlan {
            forward: vec![kernel("a", 300), kernel("b", 100)],
            backward: vec![kernel("b", 200), kernel("a", 600)],
            held: dense(100),
            modules: vec![Module { name: "a", held: dense(70) }, Module { name: "b", held: dense(20) }],
            ..LayerPlan::default()
        };
        JobPlan {
            layers: vec![end("embedding", 40), layer, end("logits", 60)],
            stages: vec![vec![0, 1, 1, 1, 1, 2]],
            ..JobPlan::default()
        }
    }

    fn sharded(framework: Framework) -> Layout {
        let mut l = Layout { framework, zero: 3, dp: 8, global_batch: 8, bucket_bytes: 1, ..layout() };
        (l.overlap_grad, l.overlap_param) = (true, true);
        l
    }

    fn requests(passes: &ShardedPasses) -> Vec<(usize, usize, u64)> {
        passes.fetches.iter().map(|f| (f.at, f.needed, f.held.dense)).collect()
    }

    fn reduced(passes: &ShardedPasses) -> Vec<(usize, u64)> {
        passes.reductions.iter().map(|r| (r.after, r.held.dense)).collect()
    }

    #[test]
    fn fsdp_gathers_units_ahead_and_keeps_its_root() {
        let plan = plan();
        let l = sharded(Framework::Fsdp2);
        let passes_with = |ahead, unit_layers| {
            let gathering = crate::model::Gathering { units_ahead: ahead, unit_layers, ..l.gathering };
            ShardedPasses::of_microbatch(&plan, &Layout { gathering, ..l.clone() }, &plan.stages[0])
        };
        // Parts 0 to 5 are the forward pass, 6 to 11 the backward pass, which begins with the head. The root unit is gathered once.
        let one = passes_with(1, 1);
        let forward = [(0, 0, 100), (0, 1, 100), (1, 2, 100), (2, 3, 100), (3, 4, 100)];
        let backward = [(6, 7, 100), (7, 8, 100), (8, 9, 100), (9, 10, 100)];
        assert_eq!(requests(&one), [forward.as_slice(), &backward].concat());
        assert_eq!(reduced(&one), [(7, 100), (8, 100), (9, 100), (10, 100), (11, 100)]);
        let requested_at = |passes: &ShardedPasses| requests(passes).iter().map(|f| f.0).collect::<Vec<usize>>();
        assert_eq!(requested_at(&passes_with(0, 1)), [0, 1, 2, 3, 4, 7, 8, 9, 10]);
        assert_eq!(requested_at(&passes_with(2, 1)), [0, 0, 0, 1, 2, 6, 6, 7, 8]);
        // Two layers a unit.
        let two = passes_with(1, 2);
        assert_eq!(requests(&two), [(0, 0, 100), (0, 1, 200), (1, 3, 200), (6, 7, 200), (7, 9, 200)]);
        assert_eq!(reduced(&two), [(8, 200), (10, 200), (11, 100)]);
        // Three layers a unit leave one for the second.
        assert_eq!(reduced(&passes_with(1, 3)), [(7, 100), (10, 300), (11, 100)]);
        let kept = Layout { zero: 2, ..l };
        let kept = ShardedPasses::of_microbatch(&plan, &kept, &plan.stages[0]);
        assert_eq!(requests(&kept), forward);
    }

    #[test]
    fn deepspeed_fetches_modules_by_number_of_parameters() {
        let plan = plan();
        let passes_with = |prefetch, live, reuse| {
            let mut l = sharded(Framework::DeepSpeed);
            (l.gathering.prefetch_params, l.gathering.live_params, l.gathering.reuse_params) = (prefetch, live, reuse);
            let passes = ShardedPasses::of_microbatch(&plan, &l, &plan.stages[0]);
            assert_eq!((passes.n_forward, passes.parts.len()), (10, 20));
            passes
        };
        // Without prefetching each module is fetched when it is needed: 40, then 70 and 20 of four layers, 60, and back.
        let forward: Vec<u64> = [&[40][..], &[70, 20].repeat(4), &[60]].concat();
        let all: Vec<u64> = forward.iter().copied().chain(forward.iter().rev().copied()).collect();
        let needed = |passes: &ShardedPasses| requests(passes).iter().map(|f| (f.0 == f.1, f.2)).collect::<Vec<_>>();
        assert_eq!(needed(&passes_with(0, 1_000, 0)), all.iter().map(|&n| (true, n)).collect::<Vec<_>>());
        // So they are with no parameters allowed to be live.
        assert_eq!(needed(&passes_with(50, 0, 0)), needed(&passes_with(0, 1_000, 0)));
        // Modules are prefetched until 50 parameters are: 70, and 20 with the 70 after it. While the third layer
        // runs, prefetching passes the backward uses of the head and of two layers, which are there, so these stay.
        let ahead = passes_with(50, 1_000, 0);
        let first = [(0, 0, 40), (0, 1, 70), (1, 2, 90), (2, 4, 90), (3, 4, 0)];
        assert_eq!(requests(&ahead)[..3], first[..3]);
        assert!(requests(&ahead)[1..].iter().all(|f| f.0 < f.1), "{:?}", requests(&ahead));
        assert_eq!(ahead.fetches.iter().map(|f| f.held.dense).sum::<u64>(), 2 * (40 + 2 * 90) + 2 * 90 + 60);
        // With a long distance of reuse nothing is gathered twice.
        assert_eq!(passes_with(50, 1_000, 1_000).fetches.iter().map(|f| f.held.dense).sum::<u64>(), 40 + 4 * 90 + 60);
        // Within 100 parameters the head is used again, within 200 the last layer is, too.
        assert_eq!(
            passes_with(0, 1_000, 100).fetches.iter().map(|f| f.held.dense).sum::<u64>(),
            2 * (40 + 4 * 90) + 60
        );
        assert_eq!(
            passes_with(0, 1_000, 200).fetches.iter().map(|f| f.held.dense).sum::<u64>(),
            2 * (40 + 3 * 90) + 90 + 60
        );
        // Each module is reduced when its gradients are there, with a layer's 10 other parameters after its last module.
        let each = [(10, 60), (11, 20), (12, 80), (13, 20), (14, 80), (15, 20), (16, 80), (17, 20), (18, 80), (19, 40)];
        assert_eq!(reduced(&ahead), each);
        let mut l = sharded(Framework::DeepSpeed);
        l.bucket_bytes = 150 * u64::from(l.bytes.grads);
        let passes = ShardedPasses::of_microbatch(&plan, &l, &plan.stages[0]);
        assert_eq!(reduced(&passes), [(12, 160), (16, 200), (19, 140)]);
        // What is computed again uses its parameters twice; its gradients are there after the second time.
        let mut again = plan.clone();
        again.layers[1].backward.splice(0..0, [kernel("a", 300), kernel("b", 100)]);
        let l = sharded(Framework::DeepSpeed);
        let passes = ShardedPasses::of_microbatch(&again, &l, &plan.stages[0]);
        assert_eq!(reduced(&passes)[..3], [(10, 60), (12, 20), (13, 80)]);
    }

    #[test]
    fn passes_wait_for_what_is_not_there_in_time() {
        let machine =
            Machine { kernels: &Bytes, comm: &Bytes, gpus_per_server: 8, host_bps: 0, host_op_ps: 7, peak_flops: 0 };
        let waits = |plan: &JobPlan, l: &Layout| {
            let price = Price::new(&machine, &RankPlacement::new(l).unwrap());
            ShardedPasses::of_microbatch(plan, l, &plan.stages[0]).waits(plan, l, &price, false)
        };
        let plan = plan();
        // A unit of 100 parameters takes 200 ps to gather and 400 ps to reduce, a layer 400 and 800 ps.
        // Forward: the root's 200 ps are exposed. Then the first unit comes 190 ps after the embedding has ended; the others come in time.
        // Backward: the head takes 20 of the first unit's 200 ps. Each other unit is gathered, then the one before is reduced, within 800 ps; the last unit's
        // reduction and the root's are exposed, less the embedding's 20 ps.
        let l = sharded(Framework::Fsdp2);
        assert_eq!(waits(&plan, &l), [200 + 190, 180 + (400 + 400 - 20)]);
        // Nothing ahead: each unit's 200 ps are exposed.
        let mut none = l.clone();
        none.gathering.units_ahead = 0;
        let at_once = waits(&plan, &none);
        assert_eq!(at_once[0], 200 * 5);
        // The root stays. A unit is gathered after the reduction of the unit before it.
        assert_eq!(at_once[1], 200 + 3 * (400 + 200) + (400 + 400 - 20));
        // DeepSpeed with nothing ahead, and one reduction at the end: all 460 and 400 + 60 parameters are waited for.
        let mut deep = sharded(Framework::DeepSpeed);
        (deep.gathering.prefetch_params, deep.gathering.reuse_params, deep.overlap_grad) = (0, 0, false);
        assert_eq!(waits(&plan, &deep), [460 * 2, 460 * 2 + 500 * 4]);
        // Lists cost the host time for each module of a fetch and of a reduction.
        deep.gathering.lists = true;
        let price = Price::new(&machine, &RankPlacement::new(&deep).unwrap());
        assert_eq!(list_ps(&deep, &price), 8 * 7);
        let lists = JobPlan { list_ps: 8 * 7, ..plan.clone() };
        // The host works on a list while the messages before it are on their way, and here these take longer but for modules of 20 parameters.
        let more = waits(&lists, &deep)[1] - waits(&plan, &deep)[1];
        assert_eq!(more, 4 * (56 - 40) + 10 * 56);
        assert_eq!(list_ps(&l, &price), 0);
    }

    /// A machine whose collectives take 50 ps and 1 ps a byte.
    struct Latent;

    impl CommCost for Latent {
        fn collective_ps(&self, _: CollectiveOp, bytes: u64, _: ServerSpan) -> u64 {
            50 + bytes
        }

        fn message_ps(&self, _: u64, _: bool) -> u64 {
            0
        }
    }

    #[test]
    fn each_gathering_and_reduction_runs_beside_kernels_with_its_own_latency() {
        let machine =
            Machine { kernels: &Bytes, comm: &Latent, gpus_per_server: 8, host_bps: 0, host_op_ps: 0, peak_flops: 0 };
        let hidden_and_waits = |l: &Layout| {
            let price = Price::new(&machine, &RankPlacement::new(l).unwrap());
            let passes = ShardedPasses::of_microbatch(&plan(), l, &plan().stages[0]);
            (passes.beside_kernels(&plan(), l, &price), passes.waits(&plan(), l, &price, false))
        };
        // The root and four units of 100 parameters take 250 ps each to gather and 450 ps each to reduce.
        let l = sharded(Framework::Fsdp2);
        let ([forward, backward], waits) = hidden_and_waits(&l);
        // The root's 250 ps are waited for, then the first unit's less the embedding's 10 ps.
        assert_eq!(waits[0], 250 + 240);
        assert_eq!((forward.gather_ps, forward.gather_bytes), (5 * 250 - 490, 200));
        assert_eq!((forward.reduce_ps, forward.reduce_bytes), (0, 0));
        // Four gatherings and five reductions, less the first gathering beside the head's 20 ps, and the last two reductions beside the embedding's 20 ps.
        assert_eq!(waits[1], 230 + (450 + 450 - 20));
        let (all, hidden) = (4 * 250 + 5 * 450, 4 * 250 + 5 * 450 - 1_110);
        assert_eq!((backward.gather_ps, backward.gather_bytes), (4 * 250 * hidden / all, 200));
        assert_eq!((backward.reduce_ps, backward.reduce_bytes), (5 * 450 * hidden / all, 400));
        // With parameters kept for the backward pass, nothing is gathered there.
        let (kept, _) = hidden_and_waits(&Layout { zero: 2, ..l.clone() });
        assert_eq!((kept[0], kept[1].gather_ps), (forward, 0));
        // What is waited for slows nothing down.
        let mut at_once = l;
        (at_once.gathering.units_ahead, at_once.overlap_grad) = (0, false);
        assert_eq!(hidden_and_waits(&at_once).0.map(|b| b.gather_ps + b.reduce_ps), [0, 0]);
    }
}
