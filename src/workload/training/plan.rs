//! A training job as stages of layers, each layer with its steps and its share of parameters: what graph and analytic evaluation are both made from.
//!
//! Layer: workload. Everything here is of one rank; ranks of a stage do the same.

use super::step::{Price, Spent, Step};
use crate::model::Layout;

/// What a framework's version does that its layout does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    /// Without sequence parallelism every tensor-parallel rank has a stage's whole output. Megatron's first versions sent a share each and gathered it behind the network
    /// (Narayanan et al., Section 4.1); later ones send it whole.
    pub scatter_gather: bool,
}

impl Habits {
    pub const SCATTER_GATHER: Habits = Habits { scatter_gather: true };
}

/// Parameters that one rank holds, by who holds copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Copied on all data-parallel ranks.
    pub dense: u64,
    /// Of experts, copied on the expert-data-parallel ranks.
    pub expert: u64,
    /// Those of `dense` that every tensor-parallel rank copies and that work on a part of the sequence: their gradients need a sum over the tensor-parallel ranks.
    pub sequence: u64,
}

impl Held {
    pub fn add(&mut self, other: &Held) {
        self.dense += other.dense;
        self.expert += other.expert;
        self.sequence += other.sequence;
    }
}

/// A kind of layer on one rank.
#[derive(Clone, Debug, Default)]
pub struct LayerPlan {
    pub forward: Vec<Step>,
    /// Recomputation included.
    pub backward: Vec<Step>,
    pub held: Held,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Plan {
    pub layers: Vec<LayerPlan>,
    /// By virtual stage: its layers in forward order, indices into `layers`.
    pub stages: Vec<Vec<u16>>,
    /// Bytes of one message between pipeline stages.
    pub message_bytes: u64,
    /// Bytes of a message that tensor-parallel ranks gather after each received its share; 0: nothing.
    pub gathered_bytes: u64,
    /// Optimizer step of each pipeline rank, in ps.
    pub optimizer_ps: Vec<u64>,
    /// Gradients of the shared embedding, in bytes; 0: not shared between stages.
    pub embedding_bytes: u64,
}

impl Plan {
    /// Virtual stages of a pipeline rank, by chunk.
    pub fn chunks<'a>(&'a self, layout: &'a Layout, rank: u32) -> impl Iterator<Item = &'a [u16]> + 'a {
        (0..layout.vpp.max(1)).map(move |c| self.stages[(c * layout.pp + rank) as usize].as_slice())
    }

    /// Parameters of one virtual stage.
    pub fn held(&self, stage: &[u16]) -> Held {
        let mut held = Held::default();
        stage.iter().for_each(|&l| held.add(&self.layers[l as usize].held));
        held
    }

    /// Time of one pass through a virtual stage.
    pub fn pass(&self, price: &Price, stage: &[u16], backward: bool) -> Spent {
        let mut spent = Spent::default();
        let mut i = 0;
        while i < stage.len() {
            // Runs of like layers are priced once.
            let n = stage[i..].iter().take_while(|&&l| l == stage[i]).count();
            let layer = &self.layers[stage[i] as usize];
            spent.add(&price.steps(if backward { &layer.backward } else { &layer.forward }), n as u64);
            i += n;
        }
        spent
    }
}

/// Gradients (or parameters) in the buckets they are communicated in, of one virtual stage: after which layers in the order given, and how many parameters of each sort.
pub fn buckets(plan: &Plan, layers: &[u16], bytes_each: u32, bucket_bytes: u64) -> Vec<(usize, Held)> {
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
