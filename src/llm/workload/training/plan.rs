//! The plan of a training job: stages of layers, each layer with its steps and its share of parameters. The graph and the analytic evaluation are both made
//! from it.
//!
//! Layer: workload. Everything here is about one rank; ranks of a stage do the same.

use super::placement::Purpose;
use super::step::{Comm, PassStep, Price, Spent};
use crate::collective::CollectiveOp;
use crate::compute::Kernel;
use crate::model::pipeline::PassKind;
use crate::model::{CudaGraph, Layout};

/// Number of parameters that one rank holds, by the ranks that hold copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Parameters copied on all data-parallel ranks.
    pub dense: u64,
    /// Parameters of experts, copied on the expert-data-parallel ranks.
    pub expert: u64,
    /// Parameters, already counted in `dense`, that every tensor-parallel rank copies and uses on its part of the sequence. Their gradients need a sum over
    /// the tensor-parallel ranks.
    pub sequence: u64,
}

impl Held {
    pub(super) fn add(&mut self, other: &Held) {
        self.dense += other.dense;
        self.expert += other.expert;
        self.sequence += other.sequence;
    }
}

/// A kind of layer on one rank.
#[derive(Clone, Debug, Default)]
pub(super) struct LayerPlan {
    pub forward: Vec<PassStep>,
    /// Steps of the backward pass, including recomputation. If backward passes are split, gradients of weights are in `weights` instead.
    pub backward: Vec<PassStep>,
    /// Steps of the gradients of weights; empty unless backward passes are split.
    pub weights: Vec<PassStep>,
    /// Steps of a whole backward pass, if a schedule has both whole and split ones; else empty.
    pub whole: Vec<PassStep>,
    /// Times of passes: see [`time_idx`].
    pub spent: PassSpent,
    pub held: Held,
    /// Kernels after the parameters were gathered, if they are not part of every pass ([`Sync::kept`]).
    pub gathered: Vec<PassStep>,
    /// Kernels before the gradients are reduced, if they are not part of every pass.
    pub reduced: Vec<PassStep>,
    /// Whether it is outside the transformer's layers: the embedding, or the final norm with the output matrix.
    pub is_end: bool,
    /// The modules whose parameters are gathered one by one. Empty unless a framework gathers by module ([`Layout::gathers_by_module`]), and for what is one
    /// module by itself.
    pub modules: Vec<Module>,
}

/// A module of a layer with parameters of its own, which are gathered together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// The name of the steps that use them.
    pub name: &'static str,
    pub held: Held,
}

impl LayerPlan {
    pub(super) fn new(forward: Vec<PassStep>, backward: Vec<PassStep>, held: Held, price: &Price) -> LayerPlan {
        let (one, other) = (price.steps(&forward), price.steps(&backward));
        let spent = [one, other, Spent::default(), other];
        LayerPlan { forward, backward, spent, held, ..LayerPlan::default() }
    }

    /// The parameters that are in none of its modules, such as those of norms.
    pub(super) fn outside_modules(&self) -> Held {
        let mut held = self.held;
        for module in &self.modules {
            held.dense = held.dense.saturating_sub(module.held.dense);
            held.expert = held.expert.saturating_sub(module.held.expert);
        }
        held
    }

    /// Steps of a pass.
    pub(super) fn steps(&self, pass: PassKind) -> &[PassStep] {
        match pass {
            PassKind::Forward => &self.forward,
            PassKind::Backward if !self.whole.is_empty() => &self.whole,
            PassKind::Backward | PassKind::InputGrads => &self.backward,
            PassKind::WeightGrads => &self.weights,
        }
    }
}

/// Communication of the gradients of a virtual stage, as far as it concerns kernels at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct GradSync {
    /// Its time in ps.
    pub ps: u64,
    /// Factor by which kernels take longer at the same time; at least 1.
    pub slowdown: f64,
}

/// The plan of a job. By default it has no layers, and nothing takes time.
#[derive(Clone, Debug, Default)]
pub(super) struct JobPlan {
    pub layers: Vec<LayerPlan>,
    /// Layers of each virtual stage in forward order, as indices into `layers`.
    pub stages: Vec<Vec<u16>>,
    /// Bytes of one message between pipeline stages.
    pub message_bytes: u64,
    /// Bytes of a message that tensor-parallel ranks gather after each received its share; 0 if they gather nothing.
    pub gathered_bytes: u64,
    /// Factor by which the kernels of every pass take longer because messages overlap with them: by virtual stage, forward and backward; at least 1.
    pub messages: Vec<(f64, f64)>,
    /// Factor by which the kernels of a pass take longer if gradients are reduced, or parameters gathered, at the same time: by virtual stage, forward and
    /// backward; at least 1.
    pub stretch: Vec<(f64, f64)>,
    /// Communication of the gradients of each virtual stage.
    pub grad_syncs: Vec<GradSync>,
    /// Time of the optimizer step of each pipeline rank, in ps.
    pub optimizer_ps: Vec<u64>,
    /// Bytes of gradients of the shared embedding; 0 if stages do not share it.
    pub embedding_bytes: u64,
    /// Time in ps for which the host keeps the GPU waiting at each collective over a list of tensors; 0 if there are no such collectives.
    pub list_ps: u64,
    /// Steps at the end of each forward pass and of each backward pass of a virtual stage; empty if there are none.
    pub ends: [Vec<PassStep>; 2],
    /// Times of `ends`.
    pub ends_spent: [Spent; 2],
    /// What follows the optimizer's step because metrics of the loss are computed; empty if there are none.
    pub metrics: Vec<PassStep>,
}

impl JobPlan {
    /// Virtual stages of a pipeline rank, by chunk, each as a list of layers.
    pub(super) fn chunks<'a>(&'a self, layout: &'a Layout, rank: u32) -> impl Iterator<Item = &'a [u16]> + 'a {
        (0..layout.vpp.max(1)).map(move |c| self.stages[layout.virtual_stage(rank, c) as usize].as_slice())
    }

    /// Parameters of one virtual stage.
    pub(super) fn held(&self, stage: &[u16]) -> Held {
        let mut held = Held::default();
        stage.iter().for_each(|&l| held.add(&self.layers[l as usize].held));
        held
    }

    /// Time of one pass through some layers.
    pub(super) fn pass(&self, layers: &[u16], pass: PassKind) -> Spent {
        let mut spent = Spent::default();
        layers.iter().for_each(|&l| spent.add(&self.layers[l as usize].spent[time_idx(pass)], 1));
        spent.add(&end_idx(pass).map(|i| self.ends_spent[i]).unwrap_or_default(), 1);
        spent
    }
}

/// Index in [`JobPlan::ends`] of the steps at the end of a pass; `None` if there are none.
pub(super) fn end_idx(pass: PassKind) -> Option<usize> {
    match pass {
        PassKind::Forward => Some(0),
        PassKind::Backward | PassKind::InputGrads => Some(1),
        PassKind::WeightGrads => None,
    }
}

/// Times of passes, by [`time_idx`].
pub(super) type PassSpent = [Spent; 4];

/// Index of a pass in lists of times: forward, whole backward, gradients of weights, gradients of inputs. With schedules whose backward passes are all split,
/// the second is the fourth.
pub(super) fn time_idx(pass: PassKind) -> usize {
    match pass {
        PassKind::Forward => 0,
        PassKind::Backward => 1,
        PassKind::WeightGrads => 2,
        PassKind::InputGrads => 3,
    }
}

/// The buckets in which the gradients (or parameters) of a virtual stage are communicated: (index in `layers` after which the bucket is complete, its
/// parameters).
pub(super) fn buckets(plan: &JobPlan, layers: &[u16], bytes_each: u32, bucket_bytes: u64) -> Vec<(usize, Held)> {
    let mut buckets = Vec::new();
    let mut held = Held::default();
    for (i, &l) in layers.iter().enumerate() {
        held.add(&plan.layers[l as usize].held);
        if (held.dense + held.expert) * bytes_each as u64 >= bucket_bytes.max(1) || i + 1 == layers.len() {
            if held.dense + held.expert > 0 {
                buckets.push((i, held));
            }
            held = Held::default();
        }
    }
    buckets
}

/// Time of the host for one operation in ps. It is 0 if a whole iteration is one graph.
pub(super) fn operation_ps(layout: &Layout, price: &Price) -> u64 {
    match layout.cuda_graph {
        CudaGraph::Iteration => 0,
        _ => layout.launch_ps.unwrap_or(price.machine.host_op_ps),
    }
}

/// Number of values of a metric that all ranks add up: a sum of losses and a number of tokens (`LanguageCrossEntropy` and `LanguagePerplexity`,
/// composer/metrics/nlp.py at v0.17.2), with the bytes of each.
const METRIC_VALUES: [(&str, u64); 2] = [("metric-loss", 4), ("metric-tokens", 8)];

/// What follows the optimizer's step because metrics of the loss are computed after each iteration (`_compute_and_log_metrics`, composer/trainer/trainer.py at
/// v0.17.2). For each value of each metric all ranks meet at a barrier, for which the host waits. Then the host makes a tensor for each rank's value, all
/// values are gathered, and each is copied from the gathered buffer into its tensor (`gather_all_tensors`, torchmetrics/utilities/distributed.py at v1.0.3;
/// `ProcessGroupNCCL::allgather` over a list, PyTorch 2.1). So the host launches two operations for each rank while the GPU has nothing else to do.
pub(super) fn metric_steps(layout: &Layout, price: &Price) -> Vec<PassStep> {
    let world = Purpose::World;
    let members = u64::from(price.span(world).members);
    if members <= 1 {
        return Vec::new();
    }
    let each_rank = PassStep::Kernel { name: "metrics", ps: members * operation_ps(layout, price) };
    let barrier = Comm { name: "metric-barrier", op: CollectiveOp::AllReduce, purpose: world, bytes: 4 };
    let one_value = |(name, bytes): (&'static str, u64)| {
        let values = Comm { name, op: CollectiveOp::AllGather, purpose: world, bytes: members * bytes };
        [PassStep::Comm(barrier), each_rank, PassStep::Comm(values), each_rank]
    };
    (0..layout.loss_metrics).flat_map(|_| METRIC_VALUES).flat_map(one_value).collect()
}

/// Number of modules of Transformer Engine in a layer that convert operands.
const ENGINE_MODULES: u64 = 4;
/// Scaling factors of such a module, forward (input, weight, output) and backward (gradients of output and input), with their history.
const FACTORS: [u64; 2] = [3, 2];
/// Largest elements that are kept of each tensor (`amax_history_len` of NeMo's and Megatron's recipes).
const HISTORY: u64 = 1024;

/// Steps at the end of a forward or backward pass through `n_layers` layers if FP8's scaling factors come from earlier passes. The largest elements of all
/// tensors are joined, ranks agree on them, and a kernel moves each history on (`reduce_and_update_fp8_tensors` of Transformer Engine's fp8.py, v1.6 and
/// later, at the end of each `fp8_autocast` and after the backward pass of its first module). All that is on the stream of the kernels.
pub(super) fn scaling_steps(layout: &Layout, price: &Price, n_layers: u64) -> [Vec<PassStep>; 2] {
    if layout.scaling_ranks().is_none() {
        return Default::default();
    }
    FACTORS.map(|factors| {
        let values = n_layers * ENGINE_MODULES * factors;
        let kernel = |name, bytes| {
            let ps = price.machine.kernels.kernel_ps(&Kernel::Memory { name, bytes });
            PassStep::Kernel { name: "fp8-scaling", ps }
        };
        let agree =
            Comm { name: "fp8-amax", op: CollectiveOp::AllReduce, purpose: Purpose::Scaling, bytes: values * 4 };
        vec![kernel("concatenate", values * 8), PassStep::Comm(agree), kernel("amax-history", values * HISTORY * 8)]
    })
}

/// When gradients are reduced and sharded parameters are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sync {
    /// Whether gradients are reduced after every micro-batch, because they are sharded, rather than after the last of an iteration.
    pub reduce_each: bool,
    /// Whether parameters are gathered for every forward pass, because they are sharded.
    pub gather_forward: bool,
    /// Whether parameters are gathered for every backward pass, because they are sharded.
    pub gather_backward: bool,
    /// Whether parameters are gathered once per iteration, because only the optimizer state is sharded.
    pub gather_step: bool,
    /// Whether FSDP runs on a pipeline. It then keeps what it can for later micro-batches: parameters stay after a backward pass; gradients are summed
    /// unsharded, and reduced together after the last backward pass of a virtual stage (torch/distributed/pipelining/stage.py, `backward_maybe_with_nosync`).
    pub kept: bool,
    /// Size in bytes at which a bucket of gradients (or gathered parameters) is complete.
    pub bucket_bytes: u64,
}

impl Sync {
    /// The rules of a layout. PyTorch's FSDP wraps layer by layer. Its second stage (shard gradients and optimizer) gathers before the forward pass and frees
    /// after the backward pass.
    pub(super) fn of(layout: &Layout) -> Sync {
        let fsdp = layout.fsdp();
        let kept = fsdp && layout.pp > 1;
        Sync {
            kept,
            reduce_each: layout.zero >= 2 && !kept,
            gather_forward: layout.zero == 3 || (fsdp && layout.zero == 2),
            gather_backward: layout.zero == 3,
            gather_step: layout.zero == 1 || (layout.zero == 2 && !fsdp),
            bucket_bytes: if fsdp { 1 } else { layout.bucket_bytes },
        }
    }

    /// Whether every micro-batch gathers parameters or reduces gradients.
    pub(super) fn shards_passes(&self) -> bool {
        !self.kept && (self.reduce_each || self.gather_forward || self.gather_backward)
    }

    /// Whether a pass gathers the parameters of its virtual stage. `before` says whether the pass before it, of the same stage and iteration, was a backward
    /// pass; `None` if it is the first.
    pub(super) fn gathers(&self, backward: bool, before: Option<bool>) -> bool {
        match (self.kept, before) {
            (false, _) if backward => self.gather_backward,
            (false, _) => self.gather_forward,
            (true, None) => self.gather_forward,
            // A layout that frees parameters after a forward pass gathers them again.
            (true, Some(backward)) => !backward && self.gather_backward,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Framework;
    use crate::workload::training::tests::layout;

    #[test]
    fn a_pipeline_gathers_again_only_what_a_forward_pass_freed() {
        let sync = |zero| Sync::of(&Layout { framework: Framework::Fsdp2, pp: 2, zero, ..layout() });
        // Two forward passes fill the pipeline, two backward passes drain it.
        let order = [false, false, true, false, true, false, true, true];
        let gathers = |sync: Sync| {
            let before = [None].into_iter().chain(order.map(Some));
            order
                .into_iter()
                .zip(before)
                .map(|(backward, before)| sync.gathers(backward, before))
                .collect::<Vec<bool>>()
        };
        assert_eq!(gathers(sync(2)), [true, false, false, false, false, false, false, false]);
        assert_eq!(gathers(sync(3)), [true, true, true, false, true, false, true, false]);
        let alone = Sync::of(&Layout { framework: Framework::Fsdp2, zero: 3, ..layout() });
        assert_eq!(gathers(alone), [true; 8]);
        assert!(alone.reduce_each && !sync(3).reduce_each);
    }

    #[test]
    fn ranks_agree_on_scaling_factors_after_each_pass() {
        use crate::model::{Fp8Scaling, Precision};
        use crate::workload::training::{CommCost, KernelCost, Machine, RankPlacement, ServerSpan};

        /// A machine on which a kernel takes a ps a byte, and a collective one for each member.
        struct Plain;

        impl KernelCost for Plain {
            fn kernel_ps(&self, kernel: &Kernel) -> u64 {
                kernel.bytes() as u64
            }

            fn stretched_ps(&self, _: &Kernel, ps: u64, _: CollectiveOp, _: u64, _: f64) -> u64 {
                ps
            }
        }

        impl CommCost for Plain {
            fn collective_ps(&self, _: CollectiveOp, _: u64, span: ServerSpan) -> u64 {
                u64::from(span.members)
            }

            fn message_ps(&self, _: u64, _: bool) -> u64 {
                0
            }
        }

        let machine =
            Machine { kernels: &Plain, comm: &Plain, gpus_per_server: 8, host_bps: 0, host_op_ps: 0, peak_flops: 0 };
        let spent = |fp8_scaling, precision| {
            let l = Layout { tp: 2, cp: 2, dp: 4, pp: 2, precision, fp8_scaling, ..layout() };
            let price = Price::new(&machine, &RankPlacement::new(&l).unwrap());
            scaling_steps(&l, &price, 3).map(|steps| price.steps(&steps).total())
        };
        // Three layers of four modules have 36 factors forward and 24 backward. Each is copied (8 bytes), and so is its history of 1,024 values.
        let kernels = [36 * (8 + 8 * 1024), 24 * (8 + 8 * 1024)];
        assert_eq!(spent(Fp8Scaling::Delayed, Precision::Fp8), kernels.map(|ps| ps + 2 * 2 * 4));
        assert_eq!(spent(Fp8Scaling::DelayedTensor, Precision::Fp8), kernels.map(|ps| ps + 2 * 2));
        assert_eq!(spent(Fp8Scaling::Current, Precision::Fp8), [0, 0]);
        assert_eq!(spent(Fp8Scaling::Delayed, Precision::Mxfp8), [0, 0]);
    }
}
