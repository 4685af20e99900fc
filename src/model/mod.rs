//! Models: hyper-parameters, presets, and what follows from them by arithmetic: parameters, FLOPs.
//!
//! Layer: model. Pure; knows no GPU. [`Layout`] describes how a model is spread over GPUs; what follows from that is for the layers below.

mod check;
mod error;
mod flops;
mod layout;
mod params;
pub mod pipeline;
mod presets;
mod products;
mod raw;
mod recompute;

pub use error::ModelError;
pub use flops::{TokenFlops, hardware_flops, model_flops, sample_flops, token_flops};
pub use layout::{CudaGraph, ElementBytes, Framework, Layout, PipelineSchedule, Precision};
pub use params::{LayerParams, Params, parameters};
pub use products::{LayerProduct, ProductPlace, layer_products};
pub use recompute::{Recompute, RecomputeModules};

/// A neural network, as much of it as decides compute, memory and communication.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub name: String,
    /// Paper or model card the numbers are from.
    pub source: String,
    pub body: ModelFamily,
}

/// Families of networks.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelFamily {
    Transformer(Transformer),
    /// Recommendation: embedding tables and multi-layer perceptrons.
    Dlrm(Dlrm),
    /// A list of layers with their parameters and FLOPs, trained data-parallel: CNNs and the like.
    Layers(Vec<Layer>),
}

/// A decoder (or encoder) stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformer {
    pub layers: u32,
    pub hidden: u32,
    /// Inner size of the dense feed-forward part.
    pub ffn: u32,
    pub heads: u32,
    /// Key/value heads; `heads` without grouped-query attention.
    pub kv_heads: u32,
    /// Size of one head; `hidden / heads` in most.
    pub head_dim: u32,
    pub vocab: u32,
    /// Sequence length trained with, unless the user says another.
    pub seq: u32,
    /// SwiGLU: three matrices in the feed-forward part, else two.
    pub gated: bool,
    /// Input and output embedding share their weights.
    pub tied: bool,
    /// Learned positions (GPT) take `seq * hidden` parameters; rotary ones none.
    pub learned_positions: bool,
    /// Attention sees earlier tokens only.
    pub causal: bool,
    /// Biases in linear layers.
    pub biases: bool,
    /// RMSNorm (one vector) rather than LayerNorm (two).
    pub rms_norm: bool,
    /// Each head's softmax has a learned logit more, which no value belongs to (gpt-oss).
    pub attention_sink: bool,
    /// What a gated activation function gets is clamped first, and one is added to the half that is not gated (gpt-oss).
    pub activation_clamp: bool,
    /// Dropout, and so its masks in activation memory.
    pub dropout: bool,
    pub moe: Option<Moe>,
    /// Latent attention (DeepSeek).
    pub mla: Option<Mla>,
    /// Tokens that attention in a windowed layer sees, its own included; 0: every layer sees the whole sequence.
    pub window: u32,
    /// Of how many layers in a row the last sees the whole sequence in spite of `window`; 0: none does.
    pub full_every: u32,
    /// Modules behind the last layer that each predict one more token in training (DeepSeek-V3, arXiv 2412.19437, Section 2.2): a projection of two hidden states to one, a
    /// layer as the last one, and the logits and the loss once more. Embedding and output matrix are the model's.
    pub mtp: u32,
}

/// Mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moe {
    pub experts: u32,
    pub top_k: u32,
    /// Inner size of one expert.
    pub expert_ffn: u32,
    /// Experts that every token visits.
    pub shared_experts: u32,
    /// Leading layers that are dense.
    pub dense_layers: u32,
    /// Every how many layers after those one has experts; 1: all.
    pub every: u32,
    /// The router has biases, and the experts' own are weighted by it like their results (gpt-oss).
    pub biases: bool,
}

/// Multi-head latent attention's sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mla {
    /// Rank of the queries' compression; 0: queries are not compressed.
    pub q_rank: u32,
    pub kv_rank: u32,
    pub rope_dim: u32,
    pub nope_dim: u32,
    pub v_dim: u32,
}

/// A deep-learning recommendation model.
#[derive(Clone, Debug, PartialEq)]
pub struct Dlrm {
    pub tables: u32,
    pub rows_per_table: u64,
    pub embedding_dim: u32,
    /// Look-ups a table and sample.
    pub pooling: u32,
    pub dense_features: u32,
    /// Widths of the layers after the dense features; the last is `embedding_dim`.
    pub bottom_mlp: Vec<u32>,
    /// Widths of the layers after the pairwise dot products.
    pub top_mlp: Vec<u32>,
}

/// A layer known by its totals only.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub name: String,
    pub params: u64,
    /// Forward FLOPs a sample (2 a multiply-add).
    pub flops: u64,
    /// Bytes a sample that it writes and the backward pass needs, 16-bit: its output, with batch normalisation that one's output too.
    pub activation_bytes: u64,
}

impl Transformer {
    /// Whether layer `layer` (from 0) has experts instead of one feed-forward part.
    pub fn is_moe(&self, layer: u32) -> bool {
        self.moe.is_some_and(|m| layer >= m.dense_layers && (layer - m.dense_layers).is_multiple_of(m.every))
    }

    /// Whether attention in layer `layer` (from 0) sees a window of tokens alone.
    pub fn is_windowed(&self, layer: u32) -> bool {
        self.window > 0 && (self.full_every == 0 || !(layer + 1).is_multiple_of(self.full_every))
    }

    /// How many layers are windowed.
    pub fn windowed_layers(&self) -> u32 {
        match (self.window, self.full_every) {
            (0, _) => 0,
            (_, 0) => self.layers,
            (_, every) => self.layers - self.layers / every,
        }
    }

    /// Layers with experts.
    pub fn moe_layers(&self) -> u32 {
        self.moe.map_or(0, |m| (self.layers - m.dense_layers).div_ceil(m.every))
    }
}

impl Model {
    /// The transformer, if it is one.
    pub fn transformer(&self) -> Option<&Transformer> {
        match &self.body {
            ModelFamily::Transformer(t) => Some(t),
            _ => None,
        }
    }
}
