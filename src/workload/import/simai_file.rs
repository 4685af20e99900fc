//! A workload file of SimAI or AICB as it was read: its header and its rows.
//!
//! Layer: workload. Plain data; `simai` reads it, `simai_program` makes programs of it.

use crate::collective::CollectiveOp;

/// How a file's rows are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimaiKind {
    /// Forward in order, backward in reverse.
    Transformer,
    /// As `Transformer`, with forward passes repeated from checkpoints.
    Recompute,
    /// Weight-gradient communication over all ranks only.
    Data,
    /// Forward and input-gradient communication over all ranks only.
    Model,
    /// Forward passes only, over all ranks.
    Inference,
    /// Rows are collectives over all ranks, one after the other.
    Micro,
}

/// What a communication spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimaiScope {
    /// Unsuffixed: tensor parallel in forward and input gradient, data parallel in weight gradient.
    Default,
    /// `_EP`: expert parallel.
    Ep,
    /// `_DP_EP`: the ranks with the same experts.
    DpEp,
}

/// Compute, then a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SimaiPart {
    pub(super) ps: u64,
    /// None for `NONE` and for 0 bytes.
    pub(super) comm: Option<(CollectiveOp, SimaiScope, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SimaiLayer {
    pub(super) name: String,
    pub(super) fwd: SimaiPart,
    pub(super) ig: SimaiPart,
    pub(super) wg: SimaiPart,
    /// Follows every collective of the layer (ASTRA-sim: the time to apply what was received).
    pub(super) update_ps: u64,
    pub(super) checkpoint: bool,
    pub(super) initiates_recompute: bool,
}

/// A file as read. Sizes that the header lacks are 1; `all_gpus` and `pp_comm` are then 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SimaiFile {
    pub(super) kind: SimaiKind,
    pub(super) tp: u32,
    pub(super) ep: u32,
    pub(super) pp: u32,
    pub(super) vpp: u32,
    pub(super) ga: u32,
    pub(super) all_gpus: u32,
    pub(super) pp_comm: u64,
    pub(super) layers: Vec<SimaiLayer>,
    pub(super) notes: Vec<String>,
}
