//! What the backward pass computes again instead of keeping.
//!
//! Layer: model.

use super::{Framework, Layout, Transformer};

/// How much of a layer is computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recompute {
    None,
    /// Some of a layer's modules.
    Selective(RecomputeModules),
    /// All but attention and every other matrix product, as torchtitan selects by operation ([`LayerProduct`](super::LayerProduct)).
    Operations,
    /// Everything from each layer's input.
    Full,
}

impl Recompute {
    /// The attention core alone, which is what Megatron selects by itself.
    pub const CORE: Recompute = Recompute::Selective(RecomputeModules { core_attn: true, ..RecomputeModules::NONE });

    /// The modules, none unless `Selective`.
    pub fn modules(self) -> RecomputeModules {
        match self {
            Recompute::Selective(modules) => modules,
            _ => RecomputeModules::NONE,
        }
    }
}

/// Modules of a layer by the names that Megatron-Core has for them (`recompute_modules` of its `TransformerConfig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecomputeModules {
    pub core_attn: bool,
    /// Latent attention: from the compressed vectors to queries, keys and values, with their rotary embedding.
    pub mla_up_proj: bool,
    /// Norms that are kernels of their own: [`RecomputeModules::norms_alone`].
    pub layernorm: bool,
    /// The feed-forward part of layers without experts.
    pub mlp: bool,
    /// All of the feed-forward part of layers with experts, with its exchanges.
    pub moe: bool,
    /// The activation function of routed experts.
    pub moe_act: bool,
    pub shared_experts: bool,
}

impl RecomputeModules {
    pub const NONE: RecomputeModules = RecomputeModules {
        core_attn: false,
        mla_up_proj: false,
        layernorm: false,
        mlp: false,
        moe: false,
        moe_act: false,
        shared_experts: false,
    };

    /// Whether the norm before attention, and the one before the feed-forward part, are kernels of their own, whose results are kept. Megatron computes a norm together with
    /// the product after it where there is one such product: not before latent attention, which has two, nor before experts and their router.
    pub fn norms_alone(model: &Transformer, layout: &Layout, moe: bool) -> [bool; 2] {
        let separate = layout.framework != Framework::Megatron;
        [separate || model.mla.is_some(), separate || moe]
    }
}
