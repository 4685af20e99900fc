//! A workload file of SimAI or AICB as read: its header and its rows.
//!
//! Layer: workload. Plain data; `simai` reads it, `simai_program` makes programs of it.

use crate::collective::CollectiveOp;

/// The meaning of the rows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimaiKind {
    /// Training: forward in the order of rows, backward in reverse.
    Transformer,
    /// Training as with `Transformer`, with forward passes repeated from checkpoints.
    Recompute,
    /// Data parallel: only weight-gradient communication, over all ranks.
    Data,
    /// Model parallel: only forward and input-gradient communication, over all ranks.
    Model,
    /// Inference: forward passes only, over all ranks.
    Inference,
    /// Each row is a collective over all ranks; they run one after the other.
    Micro,
}

/// The ranks that a communication spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimaiScope {
    /// No suffix: tensor parallel in forward and input gradient, data parallel in weight gradient.
    Default,
    /// Suffix `_EP`: expert-parallel ranks.
    Ep,
    /// Suffix `_DP_EP`: data-parallel ranks with the same experts.
    DpEp,
}

/// One part of a layer: compute, then a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SimaiPart {
    /// Duration of the compute in ps.
    pub(super) ps: u64,
    /// Collective, ranks that it spans, and bytes; `None` for `NONE` and for 0 bytes.
    pub(super) comm: Option<(CollectiveOp, SimaiScope, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SimaiLayer {
    pub(super) name: String,
    pub(super) fwd: SimaiPart,
    pub(super) ig: SimaiPart,
    pub(super) wg: SimaiPart,
    /// Duration in ps of the update after every collective of the layer (ASTRA-sim: the time to apply what was received).
    pub(super) update_ps: u64,
    pub(super) checkpoint: bool,
    pub(super) initiates_recompute: bool,
}

/// A workload file as read. Sizes that the header lacks are 1; `all_gpus` and `pp_comm` are 0 if it lacks them.
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
