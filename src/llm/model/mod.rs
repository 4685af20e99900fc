//! Models: hyper-parameters, presets, and the parameters and FLOPs computed from them.
//!
//! Layer: model. Pure; it knows no GPU. [`Layout`] describes how a model is spread over GPUs; lower layers compute the consequences.

mod check;
mod dualpipe;
mod error;
mod flops;
mod layout;
mod orders;
mod params;
pub mod pipeline;
mod presets;
mod products;
mod raw;
mod recompute;
mod split_backward;

pub use error::ModelError;
pub use flops::{TokenFlops, hardware_flops, model_flops, sample_flops, token_flops};
pub use layout::{CudaGraph, ElementBytes, Fp8Scaling, Framework, Gathering, Layout, PipelineSchedule, Precision};
pub use orders::{is_block, pipeline_orders};
pub use params::{LayerParams, Params, parameters};
pub use products::{LayerProduct, ProductPlace, layer_products};
pub use recompute::{Recompute, RecomputeModules};

/// A neural network, described by the properties that determine compute, memory and communication.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Name of the preset or file.
    pub name: String,
    /// Paper or model card with the numbers.
    pub source: String,
    /// Sizes of the network, by family.
    pub body: ModelFamily,
}

/// Families of networks.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelFamily {
    /// A decoder or encoder of equal layers.
    Transformer(Transformer),
    /// A recommendation model: embedding tables and multi-layer perceptrons.
    Dlrm(Dlrm),
    /// A list of layers with their parameters and FLOPs, trained data-parallel: CNNs and similar.
    Layers(Vec<Layer>),
}

/// A decoder (or encoder) stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformer {
    /// Number of layers.
    pub layers: u32,
    /// Width of the model.
    pub hidden: u32,
    /// Inner size of the dense feed-forward part.
    pub ffn: u32,
    /// Number of attention heads.
    pub heads: u32,
    /// Number of key/value heads; `heads` without grouped-query attention.
    pub kv_heads: u32,
    /// Size of one head; `hidden / heads` in most models.
    pub head_dim: u32,
    /// Tokens of the vocabulary.
    pub vocab: u32,
    /// Default sequence length of training.
    pub seq: u32,
    /// Whether the feed-forward part has a gate (SwiGLU), and so three matrices instead of two.
    pub gated: bool,
    /// Whether input and output embedding share their weights.
    pub tied: bool,
    /// Whether positions are learned (GPT), which takes `seq * hidden` parameters. Rotary positions have no parameters.
    pub learned_positions: bool,
    /// Whether attention sees earlier tokens only.
    pub causal: bool,
    /// Whether linear layers have biases.
    pub biases: bool,
    /// Whether norms are RMSNorm (one vector) rather than LayerNorm (two).
    pub rms_norm: bool,
    /// Whether each head's softmax has an additional learned logit without a value (gpt-oss).
    pub attention_sink: bool,
    /// Whether the input of a gated activation function is clamped, and one is added to the half without the gate (gpt-oss).
    pub activation_clamp: bool,
    /// Whether there is dropout, which adds masks to activation memory.
    pub dropout: bool,
    /// Experts, if layers have them.
    pub moe: Option<Moe>,
    /// Sizes of latent attention (DeepSeek), if the model has it.
    pub mla: Option<Mla>,
    /// Number of tokens that attention in a windowed layer sees, its own included; 0 if every layer sees the whole sequence.
    pub window: u32,
    /// Every `full_every`-th layer sees the whole sequence in spite of `window`; 0 if no layer does.
    pub full_every: u32,
    /// Number of modules after the last layer that each predict one more token in training (DeepSeek-V3, arXiv 2412.19437, Section 2.2). A module has a
    /// projection of two hidden states to one, a layer like the last one, and the logits and the loss once more. It shares the model's embedding and output
    /// matrix.
    pub mtp: u32,
}

/// Mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moe {
    /// Number of routed experts.
    pub experts: u32,
    /// Routed experts that a token visits.
    pub top_k: u32,
    /// Inner size of one expert.
    pub expert_ffn: u32,
    /// Number of groups of routed experts from which a token's are chosen; 1 if the router knows no groups.
    pub groups: u32,
    /// Number of these groups that a token's experts may be in: node-limited routing.
    pub top_groups: u32,
    /// Number of experts that every token visits.
    pub shared_experts: u32,
    /// Number of leading layers that are dense.
    pub dense_layers: u32,
    /// Every `every`-th layer after the leading dense layers has experts; 1 if all of them do.
    pub every: u32,
    /// Whether the router has biases, and the experts have biases that are weighted by it like their results (gpt-oss).
    pub biases: bool,
}

/// Sizes of multi-head latent attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mla {
    /// Rank of the queries' compression; 0 if queries are not compressed.
    pub q_rank: u32,
    /// Rank of the compression of keys and values.
    pub kv_rank: u32,
    /// Size of a head's part with rotary position.
    pub rope_dim: u32,
    /// Size of a head's part without position.
    pub nope_dim: u32,
    /// Size of a head's values.
    pub v_dim: u32,
}

/// A deep-learning recommendation model.
#[derive(Clone, Debug, PartialEq)]
pub struct Dlrm {
    /// Number of embedding tables.
    pub tables: u32,
    /// Rows of a table.
    pub rows_per_table: u64,
    /// Width of a row.
    pub embedding_dim: u32,
    /// Look-ups per table and sample.
    pub pooling: u32,
    /// Number of dense features.
    pub dense_features: u32,
    /// Widths of the layers after the dense features; the last is `embedding_dim`.
    pub bottom_mlp: Vec<u32>,
    /// Widths of the layers after the pairwise dot products.
    pub top_mlp: Vec<u32>,
}

/// A layer known only by its totals.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Name of the layer.
    pub name: String,
    /// Number of parameters.
    pub params: u64,
    /// Forward FLOPs per sample (2 per multiply-add).
    pub flops: u64,
    /// Bytes per sample, in 16 bit, that it writes and the backward pass needs: its output, and with batch normalisation also that of the normalisation.
    pub activation_bytes: u64,
}

impl Transformer {
    /// Whether layer `layer` (from 0) has experts instead of one feed-forward part.
    pub fn is_moe(&self, layer: u32) -> bool {
        self.moe.is_some_and(|m| layer >= m.dense_layers && (layer - m.dense_layers).is_multiple_of(m.every))
    }

    /// Whether attention in layer `layer` (from 0) sees only a window of tokens.
    pub fn is_windowed(&self, layer: u32) -> bool {
        self.window > 0 && (self.full_every == 0 || !(layer + 1).is_multiple_of(self.full_every))
    }

    /// Number of windowed layers.
    pub fn windowed_layers(&self) -> u32 {
        match (self.window, self.full_every) {
            (0, _) => 0,
            (_, 0) => self.layers,
            (_, every) => self.layers - self.layers / every,
        }
    }

    /// Number of layers with experts.
    pub fn moe_layers(&self) -> u32 {
        self.moe.map_or(0, |m| (self.layers - m.dense_layers).div_ceil(m.every))
    }
}

impl Model {
    /// The transformer; `None` if the model is not one.
    pub fn transformer(&self) -> Option<&Transformer> {
        match &self.body {
            ModelFamily::Transformer(t) => Some(t),
            _ => None,
        }
    }
}
