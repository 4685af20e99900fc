//! What a layer is converted to: kernels and exchanges, each with its place.

use crate::collective::CollectiveOp;

use super::super::Kernel;

/// Places in a model, in the order of the forward pass (SimAI's Table 1: embedding, layer norm, attention, MLP, final norm, logits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Site {
    Embedding,
    AttnNorm,
    Qkv,
    Rope,
    Core,
    Proj,
    AttnResidual,
    MlpNorm,
    /// Mixture of experts: scores and choice.
    Router,
    /// Tokens sorted by expert, ready to be sent.
    Permute,
    /// First product of the feed-forward part (both halves where gated), or of the experts.
    Up,
    Activation,
    Down,
    /// Tokens back in order, weighted.
    Unpermute,
    /// Experts that every token visits.
    SharedUp,
    SharedActivation,
    SharedDown,
    MlpResidual,
    /// What a module that predicts a further token has before its layer.
    Prediction,
    FinalNorm,
    Logits,
    CrossEntropy,
    Optimizer,
    /// A layer of a model that is a list of layers, or of a recommendation model.
    Layer,
}

impl Site {
    /// Its name in task graphs and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Site::Embedding => "embedding",
            Site::AttnNorm => "attention-norm",
            Site::Qkv => "attention-qkv",
            Site::Rope => "rope",
            Site::Core => "attention-core",
            Site::Proj => "attention-proj",
            Site::AttnResidual => "attention-residual",
            Site::MlpNorm => "mlp-norm",
            Site::Router => "router",
            Site::Permute => "permute",
            Site::Up => "mlp-up",
            Site::Activation => "mlp-activation",
            Site::Down => "mlp-down",
            Site::Unpermute => "unpermute",
            Site::SharedUp => "shared-up",
            Site::SharedActivation => "shared-activation",
            Site::SharedDown => "shared-down",
            Site::MlpResidual => "mlp-residual",
            Site::Prediction => "prediction",
            Site::FinalNorm => "final-norm",
            Site::Logits => "logits",
            Site::CrossEntropy => "cross-entropy",
            Site::Optimizer => "optimizer",
            Site::Layer => "layer",
        }
    }
}

/// What a kernel computes at its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelRole {
    Forward,
    /// The forward computation again, in the backward pass.
    Recompute,
    /// Gradient of the input.
    InputGrad,
    /// Gradient of the weights: nothing later in the backward pass waits for it.
    WeightGrad,
}

/// Where a kernel belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerPart {
    pub site: Site,
    pub role: KernelRole,
}

/// Whom an exchange is with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Among {
    Tp,
    Ep,
    Cp,
}

/// One step of a layer. In the order in which a framework issues them; kernels run in that order on the compute stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayerStep {
    Kernel {
        part: LayerPart,
        kernel: Kernel,
    },
    /// A collective. It begins when the kernels and exchanges before it are done.
    Exchange {
        among: Among,
        op: CollectiveOp,
        /// As nccl-tests counts them: all-reduce: the buffer; all-gather: what each rank ends with; reduce-scatter, all-to-all: what each rank begins with.
        bytes: u64,
        /// The first part that needs its outcome: kernels before that one run beside it. `None`: what follows the layer needs it.
        needed_by: Option<LayerPart>,
    },
}
