//! Activations that the backward pass computes again instead of keeping them.
//!
//! Layer: model.

/// How much of a layer is computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recompute {
    /// Nothing: all activations are kept.
    None,
    /// Some modules of a layer.
    Selective(RecomputeModules),
    /// Everything except attention and every second matrix product, as torchtitan selects by operation ([`LayerProduct`](super::LayerProduct)).
    Operations,
    /// Everything, from each layer's input.
    Full,
}

impl Recompute {
    /// The attention core only, which is Megatron's default selection.
    pub const CORE: Recompute = Recompute::Selective(RecomputeModules { core_attn: true, ..RecomputeModules::NONE });

    /// The chosen modules; none unless the selection is `Selective`.
    pub fn modules(self) -> RecomputeModules {
        match self {
            Recompute::Selective(modules) => modules,
            _ => RecomputeModules::NONE,
        }
    }
}

/// Modules of a layer, named as in Megatron-Core (`recompute_modules` of its `TransformerConfig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecomputeModules {
    /// Attention without its projections.
    pub core_attn: bool,
    /// Latent attention's step from the compressed vectors to queries, keys and values, with their rotary embedding.
    pub mla_up_proj: bool,
    /// Norms that are separate kernels: [`Layout::norms_alone`](super::Layout::norms_alone).
    pub layernorm: bool,
    /// The feed-forward part of layers without experts.
    pub mlp: bool,
    /// The whole feed-forward part of layers with experts, including its exchanges.
    pub moe: bool,
    /// The activation function of routed experts.
    pub moe_act: bool,
    /// The experts that every token visits.
    pub shared_experts: bool,
}

impl RecomputeModules {
    /// Nothing is computed again: no module is set.
    pub const NONE: RecomputeModules = RecomputeModules {
        core_attn: false,
        mla_up_proj: false,
        layernorm: false,
        mlp: false,
        moe: false,
        moe_act: false,
        shared_experts: false,
    };
}
