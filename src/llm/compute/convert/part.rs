//! The result of converting a layer: kernels and exchanges, each with its place.

use crate::collective::CollectiveOp;

use super::super::Kernel;

/// Places in a model, in the order of the forward pass (SimAI's Table 1: embedding, layer norm, attention, MLP, final norm, logits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Site {
    /// Look-up of the tokens' vectors.
    Embedding,
    /// Norm before attention.
    AttnNorm,
    /// Products to queries, keys and values.
    Qkv,
    /// Rotary embedding of queries and keys.
    Rope,
    /// Attention without its products.
    Core,
    /// Output projection of attention.
    Proj,
    /// Dropout and sum after attention.
    AttnResidual,
    /// Norm before the feed-forward part.
    MlpNorm,
    /// Mixture of experts: scores and choice.
    Router,
    /// Tokens are sorted by expert, ready to be sent.
    Permute,
    /// First product of the feed-forward part (both halves if gated), or of the experts.
    Up,
    /// Activation function of the feed-forward part, or of the experts.
    Activation,
    /// Last product of the feed-forward part, or of the experts.
    Down,
    /// Tokens are put back in order and weighted.
    Unpermute,
    /// First product of the experts that every token visits.
    SharedUp,
    /// Activation function of the experts that every token visits.
    SharedActivation,
    /// Last product of the experts that every token visits.
    SharedDown,
    /// Dropout and sum after the feed-forward part.
    MlpResidual,
    /// Norms and projection before the layer of a module that predicts a further token.
    Prediction,
    /// Norm after the last layer.
    FinalNorm,
    /// Product with the output matrix.
    Logits,
    /// Loss of the predicted tokens: cross-entropy.
    CrossEntropy,
    /// Update of the parameters.
    Optimizer,
    /// A layer of a model that is a list of layers, or of a recommendation model.
    Layer,
}

impl Site {
    /// Name of the site in task graphs and traces.
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

/// The purpose of a kernel at its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelRole {
    /// Forward computation in the forward pass.
    Forward,
    /// The forward computation again, in the backward pass.
    Recompute,
    /// Gradient of the input.
    InputGrad,
    /// Gradient of the weights. No later kernel of the backward pass waits for it.
    WeightGrad,
}

/// The site and the purpose of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerPart {
    /// Place in the model.
    pub site: Site,
    /// Purpose of the kernel there.
    pub role: KernelRole,
}

/// The ranks that an exchange is among.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Among {
    /// Ranks that share a tensor-parallel layer.
    Tp,
    /// Ranks that share each expert, which exchange the tokens of all experts on them. No product is cut into pieces with that.
    ExpertTp,
    /// Ranks that share the experts of a layer.
    Ep,
    /// Ranks that share a sequence.
    Cp,
}

/// One step of a layer. Steps are in the order in which a framework issues them; kernels run in that order on the compute stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayerStep {
    /// A kernel on the compute stream.
    Kernel {
        /// Its place and purpose.
        part: LayerPart,
        /// Kind and size of the kernel.
        kernel: Kernel,
    },
    /// A collective. It begins when the kernels and exchanges before it are done.
    Exchange {
        /// Ranks that take part.
        among: Among,
        /// Operation of the collective.
        op: CollectiveOp,
        /// Bytes counted as in nccl-tests: the buffer for all-reduce; what each rank ends with for all-gather; what each rank begins with for reduce-scatter
        /// and all-to-all.
        bytes: u64,
        /// The first part that needs the result. Kernels before that part overlap with the exchange. `None` if only steps after the layer need it.
        needed_by: Option<LayerPart>,
    },
}
